#include "online/stream/unit_stacks.h"

#include <algorithm>
#include <utility>

namespace tsomon {

void UnitStacks::Stack::apply(const Event& event, uint64_t index) {
  switch (event.kind()) {
    case EventKind::kUnitBegin:
      begins.push_back({event, index});
      break;
    case EventKind::kUnitEnd:
      if (!begins.empty()) {
        begins.pop_back();
      }
      if (begins.empty()) {
        wait.clear();
      }
      break;
    case EventKind::kWait:
      if (!begins.empty()) {
        wait.assign(1, {event, index});
      }
      break;
    default:
      break;
  }
}

UnitStacks::Live& UnitStacks::live(ThreadId thread) {
  if (thread >= live_.size()) {
    live_.resize(thread + 1);
  }
  Live& live = live_[thread];
  if (!std::exchange(live.changed, true)) {
    changed_.push_back(thread);
  }
  return live;
}

void UnitStacks::change(const Event& event, uint64_t index) {
  live(event.thread).stack.apply(event, index);
}

void UnitStacks::lost(ThreadId thread, uint64_t index) {
  losses_.push_back({index, thread});
  for (ThreadId each = 0; each < live_.size(); ++each) {
    if ((thread == kNoThread || thread == each) && !live_[each].stack.begins.empty()) {
      live(each).stack.clear();
    }
  }
}

void UnitStacks::start_block(uint64_t first, uint64_t oldest) {
  for (const ThreadId thread : changed_) {
    versions_[thread].push_back({first, live_[thread].stack});
    live_[thread].changed = false;
  }
  pushed_.push_back({first, std::move(changed_)});
  changed_.clear();
  forget(oldest);
}

// What nobody can ask for any more.
void UnitStacks::forget(uint64_t oldest) {
  while (!losses_.empty() && losses_.front().index < oldest) {
    losses_.pop_front();
  }
  for (; !pushed_.empty() && pushed_.front().first <= oldest; pushed_.pop_front()) {
    for (const ThreadId thread : pushed_.front().threads) {
      const auto found = versions_.find(thread);
      if (found == versions_.end()) {
        continue;
      }
      std::deque<Version>& versions = found->second;
      while (versions.size() > 1 && versions[1].first <= oldest) {
        versions.pop_front();
      }
      if (versions.size() == 1 && versions.front().stack.begins.empty()) {
        versions_.erase(found);
      }
    }
  }
}

// nullptr: nothing was open.
const UnitStacks::Stack* UnitStacks::at_block(ThreadId thread, uint64_t first) const {
  const auto found = versions_.find(thread);
  if (found == versions_.end()) {
    return nullptr;
  }
  const std::deque<Version>& versions = found->second;
  const auto after =
      std::partition_point(versions.begin(), versions.end(),
                           [&](const Version& version) { return version.first <= first; });
  return after == versions.begin() ? nullptr : &(after - 1)->stack;
}

std::vector<UnitStacks::Boundary> UnitStacks::open_at(const std::unordered_set<ThreadId>& threads,
                                                      uint64_t block_first,
                                                      std::span<const Event> events) const {
  std::unordered_map<ThreadId, Stack> open;
  for (const ThreadId thread : threads) {
    if (const Stack* const stack = at_block(thread, block_first)) {
      open.emplace(thread, *stack);
    }
  }
  auto loss = std::partition_point(losses_.begin(), losses_.end(),
                                   [&](const Loss& one) { return one.index < block_first; });
  for (size_t i = 0; i <= events.size(); ++i) {
    for (; loss != losses_.end() && loss->index == block_first + i; ++loss) {
      std::erase_if(open, [&](const auto& each) {
        return loss->thread == kNoThread || loss->thread == each.first;
      });
    }
    if (i < events.size() && is(events[i], kBoundaries) && threads.contains(events[i].thread)) {
      open[events[i].thread].apply(events[i], block_first + i);
    }
  }
  std::vector<Boundary> all;
  for (const auto& [thread, stack] : open) {
    all.insert(all.end(), stack.begins.begin(), stack.begins.end());
    all.insert(all.end(), stack.wait.begin(), stack.wait.end());
  }
  std::sort(all.begin(), all.end(),
            [](const Boundary& a, const Boundary& b) { return a.index < b.index; });
  return all;
}

}  // namespace tsomon
