#include "tso/model/hand_over.h"

#include <algorithm>
#include <utility>

#include "tso/support/work.h"

namespace tsomon {
namespace {

// What one thread has posted or sent, in program order.
struct Given {
  ThreadId thread = 0;
  std::vector<uint32_t> events;
};

struct Channel {
  std::vector<Given> given;
  std::map<std::pair<ThreadId, ThreadId>, HandOver> latest;  // by the two threads

  void give(const Trace& trace, uint32_t e) {
    const ThreadId thread = trace.events[e].thread;
    auto mine = std::find_if(given.begin(), given.end(),
                             [&](const Given& one) { return one.thread == thread; });
    if (mine == given.end()) {
      mine = given.insert(given.end(), {thread, {}});
    }
    spend(given.size());
    // Almost always behind all others.
    mine->events.insert(std::upper_bound(mine->events.begin(), mine->events.end(), e), e);
  }

  // All of each thread but its last `left` come before e.
  void take(const Trace& trace, uint32_t e, uint64_t left, std::vector<HandOver>* found) {
    const ThreadId thread = trace.events[e].thread;
    spend(4 * given.size());
    for (const Given& one : given) {
      if (one.thread == thread || one.events.size() <= left) {
        continue;
      }
      const HandOver now{one.events[one.events.size() - 1 - left], e};
      const auto [known, is_new] = latest.try_emplace({one.thread, thread}, now);
      if (!is_new && known->second.from >= now.from && known->second.to < now.to) {
        continue;  // by an earlier event of the thread
      }
      known->second = now;
      found->push_back(now);
    }
  }
};

}  // namespace

std::optional<uint64_t> SemaphoreCounts::add(const EventBlock& block, const Event& event) {
  const auto known = counts_.find(event.address);
  if (!has_place(block, event)) {
    counts_.erase(event.address);
    return std::nullopt;
  }
  switch (event.kind()) {
    case EventKind::kCount:
      if (const auto count = block.write_value(event)) {
        counts_[event.address] = *count;
        return count;
      }
      break;
    case EventKind::kPost:
      if (known != counts_.end()) {
        return ++known->second;
      }
      break;
    case EventKind::kTake:
      if (const auto left = block.read_value(event)) {
        counts_[event.address] = *left;
        return left;
      }
      if (known != counts_.end() && known->second > 0) {
        return --known->second;
      }
      break;
    default:
      break;
  }
  if (known != counts_.end()) {
    counts_.erase(known);
  }
  return std::nullopt;
}

void OpenHandOvers::add(const EventBlock& block, const Event& event) {
  if (any_ || !is(event, kinds::kHandOvers) || !hands_over(event.address)) {
    return;
  }
  const bool gives = event.kind() == EventKind::kSend || event.kind() == EventKind::kPost;
  const bool counted = event.kind() == EventKind::kPost || event.kind() == EventKind::kTake;
  Channel& channel = channels_[{event.address, counted}];
  bool& known = gives ? channel.given : channel.taken;
  ThreadId& thread = gives ? channel.giver : channel.taker;
  channel.several = channel.several || (known && thread != event.thread);
  known = true;
  thread = event.thread;
  channel.open = channel.open || !ordered_ || !has_place(block, event);
  any_ = channel.open && channel.given && channel.taken &&
         (channel.several || channel.giver != channel.taker);
}

bool has_open_hand_overs(const EventBlock& block, bool ordered) {
  OpenHandOvers open(ordered);
  for (const Event& event : block.events) {
    open.add(block, event);
  }
  return open.any();
}

std::vector<HandOver> hand_overs(const Trace& trace) {
  constexpr uint32_t kWanted = kinds::kHandOvers | SemaphoreCounts::kKinds;
  std::vector<uint32_t> events;
  bool any = false;
  for (uint32_t e = 0; e < trace.events.size(); ++e) {
    if (is(trace.events[e], kWanted)) {
      events.push_back(e);
      any = any || is(trace.events[e], kinds::kHandOvers);
    }
  }
  std::vector<HandOver> found;
  if (!any) {
    return found;
  }
  std::stable_sort(events.begin(), events.end(),
                   [&](uint32_t a, uint32_t b) { return trace.events[a].lo < trace.events[b].lo; });
  std::map<uint64_t, Channel> channels;
  std::map<uint64_t, Channel> semaphores;
  SemaphoreCounts counts;
  spend(8 * events.size());
  for (const uint32_t e : events) {
    const Event& event = trace.events[e];
    const auto count = is(event, SemaphoreCounts::kKinds) ? counts.add(trace, event) : std::nullopt;
    if (!has_place(trace, event)) {
      continue;
    }
    switch (event.kind()) {
      case EventKind::kSend:
        channels[event.address].give(trace, e);
        break;
      case EventKind::kReceive:
        channels[event.address].take(trace, e, 0, &found);
        break;
      case EventKind::kPost:
        semaphores[event.address].give(trace, e);
        break;
      case EventKind::kTake:
        if (count && trace.complete) {
          semaphores[event.address].take(trace, e, *count, &found);
        }
        break;
      default:
        semaphores.erase(event.address);  // of another one that begins there, or ends
        break;
    }
  }
  std::sort(found.begin(), found.end(), [](const HandOver& a, const HandOver& b) {
    return std::pair(a.to, a.from) < std::pair(b.to, b.from);
  });
  return found;
}

}  // namespace tsomon
