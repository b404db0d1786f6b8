// A key of a set that is not there at first, inserted at most once and removed at most once.
//
// Those that saw the key need a gap between its insertion and its removal, those that missed it one
// before or after. The former want the insertion early and the removal late, the latter the
// opposite, and both have room: the insertion is put in the last gap i that is one of its own and
// not after any that saw the key, the removal in the first gap r that is one of its own and not
// before any that saw it. Nobody that saw the key could have done with a later i or an earlier r.
// If i <= r, whoever missed the key needs a gap at or before i, or at or after r (inside a gap it
// goes first, or last). If r < i, both go into one gap between the two, and whoever missed the key
// finds room before or after it.
#include <algorithm>

#include "offline/linearizability/monitors.h"

namespace tsomon::linearizability {
namespace {

constexpr HistoryValue kMissing = 0;

struct Entry {
  const Op* insertion = nullptr;
  const Op* removal = nullptr;
  bool seen = false;
  uint32_t earliest_return = HistoryOperation::kNever;  // of those that saw the key
  uint32_t latest_call = 0;
};

// False: not of the simple kind.
bool collect(const Part& part, Entry* entry) {
  for (const Op& op : part.ops) {
    if (op.pending || (op.step != Step::kCas && op.step != Step::kRead)) {
      return false;
    }
    if (op.step == Step::kCas) {
      const Op*& change = op.a == kMissing ? entry->insertion : entry->removal;
      if (change != nullptr) {
        return false;
      }
      change = &op;
    } else if (op.a != kMissing) {
      entry->seen = true;
      entry->earliest_return = std::min(entry->earliest_return, op.ret);
      entry->latest_call = std::max(entry->latest_call, op.call);
    }
  }
  return true;
}

bool all_missed_fit(const Part& part, uint32_t insertion_gap, bool removed, uint32_t removal_gap) {
  return std::all_of(part.ops.begin(), part.ops.end(), [&](const Op& op) {
    return op.step != Step::kRead || op.a != kMissing || op.call <= insertion_gap ||
           (removed && op.ret > removal_gap);
  });
}

}  // namespace

std::optional<Monitored> monitor_set_entry(const Part& part) {
  Entry entry;
  if (!collect(part, &entry)) {
    return std::nullopt;
  }
  if (entry.insertion == nullptr) {
    return Monitored{entry.removal == nullptr && !entry.seen, {}, {}};
  }
  // Gap g is after position g, so the last one of an operation is before its return.
  const uint32_t last = std::min(entry.insertion->ret, entry.earliest_return) - 1;
  if (last < entry.insertion->call || entry.earliest_return == 0) {
    return Monitored{false, {}, {}};
  }
  if (entry.removal == nullptr) {
    return Monitored{all_missed_fit(part, last, false, 0), {}, {}};
  }
  const uint32_t first = std::max(entry.removal->call, entry.seen ? entry.latest_call : 0);
  if (first >= entry.removal->ret || entry.insertion->call >= entry.removal->ret) {
    return Monitored{false, {}, {}};
  }
  return Monitored{first < last || all_missed_fit(part, last, true, first), {}, {}};
}

}  // namespace tsomon::linearizability
