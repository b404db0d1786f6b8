#include "decoders/pt/flow/path_pieces.h"

#include <algorithm>
#include <utility>

#include <sys/mman.h>

namespace tsomon::pt {
namespace {

using Kind = PathEntry::Kind;
constexpr size_t kMostReserved = size_t{1} << 22;  // entries, before there are any

// Of branches that the trace decides the next block tells.
uint64_t goes_on_at(const CodeBlock& block) {
  const x86::Instruction& last = block.instructions.back();
  switch (last.branch) {
    case x86::Branch::kNone:
    case x86::Branch::kFar:
      return last.next();
    case x86::Branch::kJump:
    case x86::Branch::kCall:
      return last.target;
    default:
      return 0;
  }
}

}  // namespace

PathPieces::PathPieces(const Input& input, const TraceStream& stream, Times& times,
                       DecodedStream& out, Entered entered)
    : stream_(stream), times_(times), out_(out), told_(std::move(entered)) {
  for (const Switch& item : input.switches) {
    if (item.cpu == stream.cpu && stream.cpu >= 0) {
      switches_.push_back(item);
    }
  }
}

void PathPieces::mark(Kind kind, uint64_t value) {
  if (piece_ == nullptr) {
    return;
  }
  PathEntry& entry = piece_->entries.emplace_back();
  entry.kind = kind;
  entry.value = value;
  entry.lo = times_.not_before(read_);
  entry.hi = times_.not_after(read_);
}

PathPieces::Runs PathPieces::runs(uint64_t at, uint64_t until) const {
  Runs runs;
  runs.earliest = times_.written_before(at);
  if (stream_.cpu < 0) {
    runs.process = stream_.process;
    runs.thread = stream_.thread;
    return runs;
  }
  const int64_t latest = times_.written_after(until);
  const auto running = [&](int64_t time) {
    const auto next =
        std::upper_bound(switches_.begin(), switches_.end(), time,
                         [](int64_t value, const Switch& item) { return value < item.time; });
    return next == switches_.begin() ? Switch{} : *(next - 1);
  };
  // Nothing later than the switch that follows the one before.
  const Switch first = running(runs.earliest);
  const Switch last = running(latest == kTimeMax ? runs.earliest : latest);
  runs.certain = first.thread == last.thread && first.time == last.time;
  runs.somebody = first.thread != 0;
  runs.process = first.process;
  runs.thread = first.thread;
  runs.since = runs.run = first.time;
  return runs;
}

void PathPieces::prepare(uint64_t at) {
  const Runs who = runs(at, at);
  if (who.certain && who.somebody) {
    told_(who.process, std::max(who.earliest, who.since));
  }
}

void PathPieces::enter_thread(uint64_t at, uint64_t until) {
  leave_thread();
  const Runs who = runs(at, until);
  if (!who.certain) {
    ++out_.problems["which thread ran cannot be told"];
    unknown_from_ = unknown_from_.value_or(who.earliest);
    return;
  }
  if (!who.somebody) {
    out_.of_nobody += lost_ ? 0 : 1;
    return;
  }
  const int64_t earliest = std::max(who.earliest, who.since);
  const bool apart = unknown_from_.has_value();
  end_unknown(at);
  told_(who.process, earliest);
  if (!apart && !out_.pieces.empty() && out_.pieces.back().thread == who.thread &&
      out_.pieces.back().process == who.process && out_.pieces.back().run == who.run) {
    // The same thread goes on.
    current_ = std::move(out_.pieces.back());
    out_.pieces.pop_back();
    continues_ = true;
  } else {
    current_ = {};
    current_.process = who.process;
    current_.thread = who.thread;
    current_.run = who.run;
    current_.lo = earliest;
    if (stream_.cpu < 0) {  // all of it will be here
      make_room(std::min(2 * stream_.bytes.size(), kMostReserved));
    }
    continues_ = false;
  }
  piece_ = &current_;
  transaction_.reset();
  expect(0);
  if (lost_) {
    lost_ = false;
    gap(at);
  }
}

// Paths are long: faults of their pages would be most of what they cost.
void PathPieces::make_room(size_t entries) {
  constexpr uintptr_t kPage = uintptr_t{1} << 12;
  std::vector<PathEntry>& room = current_.entries;
  room.reserve(entries);
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(room.data()) + kPage - 1) & ~(kPage - 1);
  const uintptr_t end = reinterpret_cast<uintptr_t>(room.data() + room.capacity()) & ~(kPage - 1);
  if (end > begin) {
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);  // a hint
  }
}

void PathPieces::enabled(uint64_t ip) {
  if (piece_ == nullptr) {
    return;
  }
  if (!continues_) {
    piece_->entered = ip;
  } else if (ip != piece_->expected && piece_->entries.back().kind != Kind::kGap) {
    mark(Kind::kElsewhere);
  }
  continues_ = false;
}

void PathPieces::leave_thread() {
  resumed_ = true;
  if (piece_ == nullptr) {
    return;
  }
  piece_->expected = last_ == nullptr ? expected_ : goes_on_at(*last_);
  if (!piece_->entries.empty()) {
    out_.pieces.push_back(std::move(*piece_));
  }
  piece_ = nullptr;
  expect(0);
}

void PathPieces::gap(uint64_t at) {
  mark(Kind::kGap);
  out_.gaps.push_back({last_lo_, times_.not_after(at)});
}

void PathPieces::end_unknown(uint64_t at) {
  if (unknown_from_) {
    out_.gaps.push_back({*unknown_from_, times_.written_after(at)});
    unknown_from_.reset();
  }
}

void PathPieces::transaction(bool speculative, bool aborted) {
  if (piece_ == nullptr) {
    return;
  }
  if (aborted && transaction_) {
    piece_->entries.resize(*transaction_);
    mark(Kind::kElsewhere);
  }
  transaction_.reset();
  if (speculative) {
    transaction_ = piece_->entries.size();
  }
}

}  // namespace tsomon::pt
