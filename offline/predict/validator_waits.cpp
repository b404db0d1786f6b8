// The validator's word about waits that nobody ends.
#include <algorithm>

#include <fmt/format.h>

#include "offline/predict/validator.h"
#include "tso/support/work.h"

namespace tsomon::predict {

// Events that come after the event in every schedule: in its thread, after a hard edge, and after a
// read that is certainly bound and sees one of them.
std::vector<bool> Validator::needing(uint32_t event) const {
  std::vector<bool> after(size());
  std::vector<bool> threads(done_.size());
  std::vector<std::vector<uint32_t>> free(done_.size());  // reads since the last branch
  const auto sees = [&](uint32_t read) {
    const CellSpan span = cells_.of_event(read);
    for (uint32_t cell = span.first; cell < span.first + span.count; ++cell) {
      const uint32_t write = source(read, cell);
      if (write != kInitial && after[write]) {
        return true;
      }
    }
    return false;
  };
  for (uint32_t i = event; i < size(); ++i) {
    const ThreadId thread = thread_of(i);
    const EventKind kind = trace_.events[i].kind();
    spend(1);
    bool here = i == event || threads[thread];
    for (const HardEdge& edge : edges_to(i)) {
      here = here || (edge.from >= event && after[edge.from]);
    }
    if (kind == EventKind::kReadModifyWrite ||
        (kind == EventKind::kRead && branches_ == Branches::kAfterEveryRead)) {
      here = here || sees(i);
    } else if (kind == EventKind::kRead) {
      free[thread].push_back(i);
    } else if (kind == EventKind::kBranch && branches_ == Branches::kAsRecorded) {
      here = here || std::any_of(free[thread].begin(), free[thread].end(), sees);
      free[thread].clear();
    }
    threads[thread] = here;
    after[i] = here;
  }
  return after;
}

std::string Validator::check_lost(std::span<const uint32_t> tail, uint32_t release, uint32_t wait,
                                  uint32_t start) {
  if (std::string wrong = replay(tail, start, 0); !wrong.empty()) {
    return wrong;
  }
  if (release >= size() || wait >= size() || !next_in_thread(release)) {
    return fmt::format("event {} is not next in its thread", release);
  }
  const Event& event = trace_.events[wait];
  if (event.kind() != EventKind::kWait || release > wait ||
      trace_.events[release].kind() != EventKind::kRelease ||
      thread_of(release) != thread_of(wait)) {
    return "there is no wait";
  }
  // Nothing but a try comes between the two.
  for (uint32_t at = previous_[wait]; at != release; at = previous_[at]) {
    if (at == kNobody || trace_.events[at].kind() != EventKind::kTry) {
      return "the release does not begin the wait";
    }
  }
  const std::vector<bool> after = needing(wait);
  bool lost = false;
  for (uint32_t i = 0; i < size(); ++i) {
    const Event& other = trace_.events[i];
    if (other.kind() != EventKind::kNotify || other.address != event.address ||
        other.size != event.size || other.thread == event.thread) {
      continue;
    }
    if (!executed(i) && !after[i]) {
      return fmt::format("event {} may still come", i);
    }
    lost = lost || executed(i);
  }
  spend(size());
  return lost ? "" : "nobody has notified";
}

}  // namespace tsomon::predict
