#include "offline/predict/hard_edges.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "offline/predict/semaphores.h"
#include "tso/support/work.h"

namespace tsomon::predict {
namespace {

constexpr uint32_t kNoEvent = 0xFFFFFFFFU;

class Finder {
 public:
  Finder(const Trace& trace, const CellTable& cells)
      : trace_(trace), cells_(cells), semaphores_(trace) {
    for (const Event& event : trace.events) {
      has_objects_ =
          has_objects_ || event.kind() == EventKind::kAllocate || event.kind() == EventKind::kFree;
    }
  }

  std::vector<HardEdge> find(uint32_t carried) {
    after(carried);
    for (uint32_t i = 0; i < trace_.events.size(); ++i) {
      spend(1);
      visit(i, trace_.events[i]);
    }
    std::map<std::pair<uint64_t, uint32_t>, const Semaphore*> before;  // at the same address
    for (const Semaphore& semaphore : semaphores_.all()) {
      if (semaphore.begin != kNone) {
        const Event& event = trace_.events[semaphore.begin];
        const Semaphore*& last = before[{event.address, event.size}];
        if (last != nullptr) {
          ends_before(*last, semaphore.begin);
        }
        last = &semaphore;
      }
      count(semaphore);
    }
    std::sort(edges_.begin(), edges_.end(), [](const HardEdge& a, const HardEdge& b) {
      return std::tie(a.to, a.from) < std::tie(b.to, b.from);
    });
    return std::move(edges_);
  }

 private:
  struct ThreadState {
    uint32_t last = kNoEvent;                            // of its events
    std::vector<uint32_t> started_by;                    // forks since then
    std::vector<std::pair<LocationId, uint32_t>> depth;  // of locks that it holds
  };
  // Of an object's bytes since the last allocation or end there.
  struct CellState {
    uint32_t barrier = kNoEvent;
    std::vector<std::pair<ThreadId, uint32_t>> last;  // access of each thread
  };

  void after(uint32_t carried) {
    for (uint32_t i = 1; i < carried; ++i) {
      edges_.push_back({i - 1, i});
    }
    std::vector<bool> seen;
    for (uint32_t i = carried; carried > 0 && i < trace_.events.size(); ++i) {
      const ThreadId thread = trace_.events[i].thread;
      if (thread >= seen.size()) {
        seen.resize(thread + 1);
      }
      if (!seen[thread]) {
        edges_.push_back({carried - 1, i});
      }
      seen[thread] = true;
    }
  }

  struct Channel {
    std::vector<std::pair<ThreadId, uint32_t>> sent;  // last of each thread
    std::map<ThreadId, uint32_t> received;            // likewise
  };

  ThreadState& thread(uint64_t id) {
    if (id >= threads_.size()) {
      threads_.resize(id + 1);
    }
    return threads_[id];
  }

  void visit(uint32_t i, const Event& event) {
    for (const uint32_t fork : thread(event.thread).started_by) {
      edges_.push_back({fork, i});
    }
    thread(event.thread).started_by.clear();
    switch (event.kind()) {
      case EventKind::kFork:
        thread(event.address).started_by.push_back(i);
        break;
      case EventKind::kJoin:
        if (thread(event.address).last != kNoEvent) {
          edges_.push_back({thread(event.address).last, i});
        }
        break;
      case EventKind::kAcquire:
      case EventKind::kAcquireShared:
        acquire(i, event);
        break;
      case EventKind::kRelease:
      case EventKind::kReleaseShared:
        release(i, event);
        break;
      case EventKind::kSend:
        send(i, event);
        break;
      case EventKind::kReceive:
        receive(i, event);
        break;
      case EventKind::kAllocate:
        sizes_[event.address] = event.size;
        barrier(i, event);
        break;
      case EventKind::kFree:
        barrier(i, event);
        break;
      case EventKind::kTake:
        if (semaphores_.of_event(i) == kNone) {
          after_all(i, event.thread);
        }
        break;
      default:
        if (event.kind() == EventKind::kRead && event.atomic() &&
            channels_.count({event.address, 0}) != 0) {
          receive(i, event);
        }
        if (has_objects_) {
          access(i, event);
        }
    }
    thread(event.thread).last = i;
  }

  uint32_t& depth(ThreadId id, LocationId lock) {
    auto& held = thread(id).depth;
    // Few are held at a time: those that are not held any more make room.
    const auto at = std::find_if(held.begin(), held.end(),
                                 [&](const auto& entry) { return entry.first == lock; });
    if (at != held.end()) {
      return at->second;
    }
    std::erase_if(held, [](const auto& entry) { return entry.second == 0; });
    return held.emplace_back(lock, 0).second;
  }

  void acquire(uint32_t i, const Event& event) {
    const LocationId lock = cells_.lock_of(i);
    ++depth(event.thread, lock);
    const auto [first, last] = held_at_start_.equal_range(lock);
    for (auto at = first; at != last; ++at) {
      const bool both_shared = event.kind() == EventKind::kAcquireShared &&
                               trace_.events[at->second].kind() == EventKind::kReleaseShared;
      if (trace_.events[at->second].thread != event.thread && !both_shared) {
        edges_.push_back({at->second, i});
      }
    }
  }

  void release(uint32_t i, const Event& event) {
    const LocationId lock = cells_.lock_of(i);
    if (uint32_t& held = depth(event.thread, lock); held > 0) {
      --held;
      return;
    }
    // One for each thread: a second one follows the first.
    const auto [first, last] = held_at_start_.equal_range(lock);
    const bool known = std::any_of(first, last, [&](const auto& entry) {
      return trace_.events[entry.second].thread == event.thread;
    });
    if (!known) {
      held_at_start_.emplace(lock, i);
    }
  }

  void send(uint32_t i, const Event& event) {
    auto& sent = channels_[{event.address, event.size}].sent;
    const auto mine = std::find_if(sent.begin(), sent.end(),
                                   [&](const auto& entry) { return entry.first == event.thread; });
    if (mine != sent.end()) {
      mine->second = i;
    } else {
      sent.emplace_back(event.thread, i);
    }
    spend(sent.size());
  }

  // After the last one that each other thread has sent; what this thread has received is known.
  void receive(uint32_t i, const Event& event) {
    const bool load = event.kind() == EventKind::kRead;
    Channel& channel = channels_[{event.address, load ? 0 : event.size}];
    uint32_t& received = channel.received.try_emplace(event.thread, 0).first->second;
    for (const auto& [thread, last] : channel.sent) {
      if (thread != event.thread && last >= received) {
        edges_.push_back({last, i});
      }
    }
    received = i;
    spend(channel.sent.size());
  }

  void after_all(uint32_t i, ThreadId mine) {
    for (ThreadId other = 0; other < threads_.size(); ++other) {
      if (other != mine && threads_[other].last != kNoEvent) {
        edges_.push_back({threads_[other].last, i});
      }
    }
    spend(threads_.size());
  }

  void ends_before(const Semaphore& semaphore, uint32_t next) {
    std::map<ThreadId, uint32_t> last;
    for (const Semaphore::Step& step : semaphore.steps) {
      last[trace_.events[step.event].thread] = step.event;
    }
    for (const auto& [thread, event] : last) {
      edges_.push_back({event, next});
    }
    spend(semaphore.steps.size());
  }

  // The k-th take of a thread needs as many posts less the initial count. What the other threads
  // cannot give, and it has not posted itself, a thread has to.
  void count(const Semaphore& semaphore) {
    if (!semaphore.counted) {
      return;
    }
    struct Mine {
      std::vector<uint32_t> posts;
      int64_t takes = 0;
      int64_t posted = 0;
      std::map<ThreadId, int64_t> known;  // posts of the other thread that came before
    };
    std::map<ThreadId, Mine> threads;
    int64_t all = 0;
    for (const Semaphore::Step& step : semaphore.steps) {
      Mine& mine = threads[trace_.events[step.event].thread];
      if (!step.takes) {
        mine.posts.push_back(step.event);
        ++all;
      }
      if (semaphore.begin != kNone && mine.takes + mine.posted == 0 &&
          trace_.events[semaphore.begin].thread != trace_.events[step.event].thread) {
        edges_.push_back({semaphore.begin, step.event});
      }
      ++(step.takes ? mine.takes : mine.posted);
    }
    for (auto& [thread, mine] : threads) {
      mine.takes = mine.posted = 0;
    }
    for (const Semaphore::Step& step : semaphore.steps) {
      const ThreadId thread = trace_.events[step.event].thread;
      Mine& mine = threads[thread];
      ++(step.takes ? mine.takes : mine.posted);
      if (!step.takes) {
        continue;
      }
      const int64_t needed = mine.takes - semaphore.initial - mine.posted;
      const int64_t others = all - static_cast<int64_t>(mine.posts.size());
      for (auto& [other, theirs] : threads) {
        const auto count = static_cast<int64_t>(theirs.posts.size());
        const int64_t owed = other == thread ? 0 : needed - (others - count);
        if (owed <= 0) {
          continue;
        }
        int64_t& known = mine.known[other];
        const auto post = static_cast<size_t>(owed) - 1;
        if (owed > known && post < theirs.posts.size() && theirs.posts[post] < step.event) {
          edges_.push_back({theirs.posts[post], step.event});
          known = owed;
        }
      }
      spend(threads.size());
    }
  }

  void access(uint32_t i, const Event& event) {
    if (event.size == 0 || !is(event, kinds::kAccesses & ~kinds::kLocks)) {
      return;
    }
    const CellSpan span = cells_.of_event(i);
    for (uint32_t cell = span.first; cell < span.first + span.count; ++cell) {
      CellState& state = cell_states_[cell];
      auto at = std::find_if(state.last.begin(), state.last.end(),
                             [&](const auto& entry) { return entry.first == event.thread; });
      if (at != state.last.end()) {
        at->second = i;
        continue;
      }
      state.last.emplace_back(event.thread, i);
      if (state.barrier != kNoEvent) {
        edges_.push_back({state.barrier, i});
      }
    }
    spend(span.count);
  }

  void barrier(uint32_t i, const Event& event) {
    // Of an object that was allocated before the trace began, its end may say the size.
    const auto known = sizes_.find(event.address);
    const uint64_t size = known != sizes_.end() ? known->second : event.size;
    if (size == 0) {
      return;
    }
    const CellSpan span = cells_.of_range(event.address, size);
    for (uint32_t cell = span.first; cell < span.first + span.count; ++cell) {
      CellState& state = cell_states_[cell];
      for (const auto& [thread, last] : state.last) {
        edges_.push_back({last, i});
      }
      if (state.barrier != kNoEvent) {
        edges_.push_back({state.barrier, i});
      }
      spend(1 + state.last.size());
      state.last.clear();
      state.barrier = i;
    }
  }

  const Trace& trace_;
  const CellTable& cells_;
  const SemaphoreTable semaphores_;
  bool has_objects_ = false;
  std::vector<ThreadState> threads_;
  std::unordered_multimap<LocationId, uint32_t> held_at_start_;
  std::map<std::pair<uint64_t, uint32_t>, Channel> channels_;  // by address and size
  std::unordered_map<uint64_t, uint64_t> sizes_;
  std::unordered_map<uint32_t, CellState> cell_states_;
  std::vector<HardEdge> edges_;
};

}  // namespace

std::vector<HardEdge> hard_edges(const Trace& trace, const CellTable& cells, uint32_t carried) {
  return Finder(trace, cells).find(carried);
}

}  // namespace tsomon::predict
