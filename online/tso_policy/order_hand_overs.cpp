#include "online/tso_policy/order_hand_overs.h"

#include <algorithm>

#include "tso/support/work.h"

namespace tsomon {

void OrderHandOvers::begin(const EventBlock& block, const Event& event) {
  counts_.add(block, event);
  semaphores_.erase(event.address);
}

void OrderHandOvers::add(const EventBlock& block, const OrderEvent& now) {
  const Event& event = *now.event;
  const auto count = is(event, SemaphoreCounts::kKinds) ? counts_.add(block, event) : std::nullopt;
  open_.add(block, event);
  graph_.statistics().unordered = open_.any();
  if (now.late || !ordered_ || !has_place(block, event)) {
    return;
  }
  switch (event.kind()) {
    case EventKind::kSend:
      give(now, 1, channels_[event.address]);
      break;
    case EventKind::kReceive:
      if (const auto channel = channels_.find(event.address); channel != channels_.end()) {
        take(now, 0, channel->second);
      }
      break;
    case EventKind::kPost:
      if (count) {
        give(now, kMostPosts, semaphores_[event.address]);
      }
      break;
    default:
      if (const auto semaphore = semaphores_.find(event.address);
          count && semaphore != semaphores_.end()) {
        take(now, *count, semaphore->second);
      }
      break;
  }
}

void OrderHandOvers::give(const OrderEvent& now, size_t most, Channel& channel) {
  spend(channel.size());
  auto mine = std::find_if(channel.begin(), channel.end(),
                           [&](const OfThread& one) { return one.thread == now.event->thread; });
  if (mine == channel.end()) {
    mine = channel.insert(channel.end(), OfThread());
    mine->thread = now.event->thread;
  }
  if (mine->given.size() == most) {
    mine->evicted = most > 1;
    mine->given.pop_front();
  }
  if (mine->given.size() >= kMostClocks) {
    (mine->given.end() - kMostClocks)->clock = StoreClock();
  }
  mine->given.emplace_back();
  Given& given = mine->given.back();
  OrderThread& thread = *now.thread;
  given.event = {now.unit, now.access()};
  given.store = thread.stores;
  given.hi = now.hi;
  threads_.trim_clock(thread);
  given.clock = thread.clock;
  given.clock.raise(thread.id, thread.stores);
}

void OrderHandOvers::take(const OrderEvent& now, uint64_t left, Channel& channel) {
  spend(2 * channel.size());
  for (OfThread& theirs : channel) {
    if (theirs.thread == now.event->thread) {
      continue;
    }
    if (theirs.given.size() <= left) {
      graph_.statistics().evicted += theirs.evicted ? 1 : 0;
      continue;
    }
    Given& given = *(theirs.given.end() - 1 - static_cast<ptrdiff_t>(left));
    auto& taken = given.taken_by;
    if (std::find(taken.begin(), taken.end(), now.event->thread) != taken.end()) {
      continue;  // by an earlier event of the thread
    }
    taken.push_back(now.event->thread);
    if (given.event.unit != kNone) {
      graph_.add_directed(given.event.unit, now.unit, EdgeKind::kHandOver,
                          [&](DetectedAccess& source, DetectedAccess& target) {
                            source = given.event.access;
                            target = now.access();
                          });
    }
    now.thread->clock.join(given.clock);
    if (OrderThread* const thread = threads_.find(theirs.thread); thread != nullptr) {
      threads_.mark_visible(*thread, given.store, now.hi);
    }
  }
}

void OrderHandOvers::follow_units(Channels& channels) {
  for (auto channel = channels.begin(); channel != channels.end();) {
    for (OfThread& theirs : channel->second) {
      spend(theirs.given.size());
      for (Given& given : theirs.given) {
        Policy::Node& unit = given.event.unit;
        unit = unit == kNone ? kNone : graph_.moved_to(unit);
      }
      // Whatever comes finds all before them visible.
      while (!theirs.given.empty() && theirs.given.front().event.unit == kNone &&
             theirs.given.front().hi < threads_.now() &&
             threads_.has_committed(theirs.thread, theirs.given.front().store)) {
        theirs.given.pop_front();
      }
    }
    std::erase_if(channel->second,
                  [](const OfThread& one) { return one.given.empty() && !one.evicted; });
    channel = channel->second.empty() ? channels.erase(channel) : std::next(channel);
  }
}

void OrderHandOvers::follow_units() {
  follow_units(channels_);
  follow_units(semaphores_);
}

}  // namespace tsomon
