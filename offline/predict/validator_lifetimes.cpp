// The validator's word about uses of what has ended, or has not begun.
#include <algorithm>

#include <fmt/format.h>

#include "offline/predict/block_names.h"
#include "offline/predict/validator.h"
#include "offline/predict/witness.h"
#include "tso/model/channels.h"
#include "tso/support/work.h"

namespace tsomon::predict {
namespace {

constexpr uint32_t kReadsOrWrites = kind_mask(EventKind::kRead) | kind_mask(EventKind::kWrite) |
                                    kind_mask(EventKind::kReadModifyWrite);

}  // namespace

bool Validator::ends(uint32_t end, uint32_t use) const {
  const Event& ending = trace_.events[end];
  const Event& used = trace_.events[use];
  if (ending.kind() == EventKind::kDestroy) {
    return is(used, kUsesOfLocks) && ending.address == used.address && ending.size == used.size;
  }
  if (ending.kind() != EventKind::kFree) {
    return false;
  }
  const uint64_t bytes = block_bytes(trace_, ending);
  const bool lock = used.size == 0 && is(used, kUsesOfLocks);
  if (lock && !BlockNames::has_locks(used.address)) {
    return false;
  }
  if (lock || used.kind() == EventKind::kFree) {
    return used.address - ending.address < bytes;
  }
  const CellSpan block = cells_.of_event(end);
  const CellSpan span = cells_.of_event(use);
  return is(used, kReadsOrWrites) && span.first < block.first + block.count &&
         block.first < span.first + span.count;
}

// A lock that is made at `begin`, and no other one that was, or is, at its place.
bool Validator::begins(uint32_t begin, uint32_t use) const {
  const Event& beginning = trace_.events[begin];
  const Event& used = trace_.events[use];
  if (!lock_begins(beginning) || used.size != 0 || !is(used, kUsesOfLocks) ||
      BlockNames::place(used.address) != (beginning.address & ~kBegins)) {
    return false;
  }
  const uint64_t place = BlockNames::place(used.address);
  for (uint32_t i = std::min(begin, use) + 1; i < std::max(begin, use); ++i) {
    const Event& between = trace_.events[i];
    const bool block = between.kind() == EventKind::kAllocate || between.kind() == EventKind::kFree;
    const uint64_t from = BlockNames::place(between.address);
    if ((between.kind() == EventKind::kDestroy && from == place) ||
        (block && place - from < block_bytes(trace_, between)) ||
        (between.kind() == EventKind::kSend && between.address == beginning.address)) {
      return false;
    }
  }
  spend(std::max(begin, use) - std::min(begin, use));
  return true;
}

// Whether a call that uses a lock goes on from there does not matter. Empty: the event can be next.
std::string Validator::not_next(uint32_t event) const {
  const auto edges = edges_to(event);
  const bool held_up = std::any_of(edges.begin(), edges.end(), [&](const HardEdge& edge) {
    return !edge.if_both && !executed(edge.from);
  });
  return next_in_thread(event) && !held_up
             ? ""
             : fmt::format("event {} is not what its thread does next", event);
}

std::string Validator::check_lifetime_race(std::span<const uint32_t> tail, uint32_t start) {
  if (tail.size() < 2) {
    return "a race is between two events";
  }
  const uint32_t a = tail[tail.size() - 2];
  const uint32_t b = tail[tail.size() - 1];
  if ((a & kCommit) != 0 || (b & kCommit) != 0 || a >= size() || b >= size()) {
    return "a race is between two events when they are issued";
  }
  if (std::string wrong = replay(tail.first(tail.size() - 2), start, 0); !wrong.empty()) {
    return wrong;
  }
  for (const uint32_t event : {a, b}) {
    if (std::string wrong = not_next(event); !wrong.empty()) {
      return wrong;
    }
  }
  const bool meet = ends(a, b) || ends(b, a) || begins(a, b) || begins(b, a);
  return meet && thread_of(a) != thread_of(b) ? "" : "the last two events are no end and no use";
}

std::string Validator::check_use(std::span<const uint32_t> tail, uint32_t start, uint32_t end) {
  if (tail.empty() || (tail.back() & kCommit) != 0) {
    return "a use is an event when it is issued";
  }
  if (std::string wrong = replay(tail.first(tail.size() - 1), start, 0); !wrong.empty()) {
    return wrong;
  }
  const uint32_t use = tail.back();
  if (std::string wrong = not_next(use); !wrong.empty()) {
    return wrong;
  }
  if (!executed(end)) {
    return fmt::format("event {} does not come before the use", end);
  }
  return ends(end, tail.back()) ? "" : "the last event does not use what has ended";
}

}  // namespace tsomon::predict
