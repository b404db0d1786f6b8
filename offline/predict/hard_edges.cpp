#include "offline/predict/hard_edges.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <unordered_map>

#include "offline/predict/block_names.h"
#include "offline/predict/semaphores.h"
#include "tso/support/work.h"

namespace tsomon::predict {
namespace {

constexpr uint32_t kNoEvent = 0xFFFFFFFFU;

class Finder {
 public:
  Finder(const Trace& trace, const CellTable& cells)
      : trace_(trace), cells_(cells), semaphores_(trace) {
    find_used_before();
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
  using Accesses = std::vector<std::pair<ThreadId, uint32_t>>;  // the last of each thread

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
        begin_block(i, event);
        break;
      case EventKind::kFree:
        after_its_beginning(i, event);
        end_locks(i, event, BlockNames::has_locks(event.address) ? block_bytes(trace_, event) : 0);
        end_block(i, event);
        break;
      case EventKind::kDestroy:
        end_locks(i, event, 1);
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
        if (has_blocks_) {
          after_its_beginning(i, event);
        }
    }
    if (event.size == 0 && is(event, kUsesOfLocks)) {
      lock_uses_[event.address].push_back(i);
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

  // Those that lie in the range.
  void end_locks(uint32_t i, const Event& event, uint64_t bytes) {
    auto at = lock_uses_.lower_bound(event.address);
    while (at != lock_uses_.end() && at->first - event.address < bytes) {
      for (const uint32_t use : at->second) {
        if (trace_.events[use].thread != event.thread) {
          edges_.push_back({use, i, true});
        }
      }
      spend(at->second.size());
      at = lock_uses_.erase(at);
    }
  }

  // Cells that are accessed before a block begins there.
  void find_used_before() {
    std::vector<bool> used(cells_.size());
    for (uint32_t i = 0; i < trace_.events.size(); ++i) {
      const Event& event = trace_.events[i];
      const bool begins = event.kind() == EventKind::kAllocate;
      has_blocks_ = has_blocks_ || begins;
      const CellSpan span = begins             ? of_block(event)
                            : is_access(event) ? cells_.of_event(i)
                                               : CellSpan{};
      spend(1 + span.count);
      for (uint32_t cell = span.first; cell < span.first + span.count; ++cell) {
        if (begins && used[cell]) {
          used_before_.try_emplace(cell);
        }
        used[cell] = used[cell] || !begins;
      }
    }
    block_of_.assign(has_blocks_ ? cells_.size() : 0, kNoEvent);
  }

  static bool is_access(const Event& event) {
    return event.kind() == EventKind::kFree ||
           (event.size != 0 && is(event, kinds::kAccesses & ~kinds::kLocks));
  }
  CellSpan of_block(const Event& event) const {
    return cells_.starting_in(event.address, block_bytes(trace_, event));
  }

  void after_its_beginning(uint32_t i, const Event& event) {
    if (!is_access(event) || !has_blocks_) {
      return;
    }
    const CellSpan span = cells_.of_event(i);
    uint32_t last = kNoEvent;
    spend(span.count);
    for (uint32_t cell = span.first; cell < span.first + span.count; ++cell) {
      const uint32_t block = block_of_[cell];
      if (block != kNoEvent && block != last && trace_.events[block].thread != event.thread &&
          is_first(block, event.thread)) {
        edges_.push_back({block, i});
      }
      last = block;
      if (const auto before = used_before_.find(cell); before != used_before_.end()) {
        note(&before->second, event.thread, i);
      }
    }
  }

  // Of what the thread does in the block.
  bool is_first(uint32_t block, ThreadId thread) {
    std::vector<ThreadId>& known = threads_of_[block];
    if (std::find(known.begin(), known.end(), thread) != known.end()) {
      return false;
    }
    known.push_back(thread);
    return true;
  }

  static void note(Accesses* all, ThreadId thread, uint32_t i) {
    const auto mine = std::find_if(all->begin(), all->end(),
                                   [&](const auto& entry) { return entry.first == thread; });
    if (mine != all->end()) {
      mine->second = i;
    } else {
      all->emplace_back(thread, i);
    }
  }

  void begin_block(uint32_t i, const Event& event) {
    const CellSpan span = of_block(event);
    spend(1 + span.count);
    for (uint32_t cell = span.first; cell < span.first + span.count; ++cell) {
      if (const auto before = used_before_.find(cell); before != used_before_.end()) {
        for (const auto& [thread, last] : before->second) {
          if (thread != event.thread) {
            edges_.push_back({last, i});
          }
        }
        before->second.clear();
      }
      block_of_[cell] = i;
    }
    begun_[event.address] = i;
    const uint64_t begin = BlockNames::place(event.address);
    const uint64_t end = begin + block_bytes(trace_, event);
    auto at = ended_.upper_bound(begin);
    at = at == ended_.begin() ? at : std::prev(at);
    while (at != ended_.end() && at->first < end) {
      const auto [until, free] = at->second;
      spend(1);
      if (until > begin) {
        if (trace_.events[free].thread != event.thread) {
          edges_.push_back({free, i, true});
        }
        at = ended_.erase(at);
      } else {
        ++at;
      }
    }
  }

  void end_block(uint32_t i, const Event& event) {
    // Of a block that nobody accesses, too.
    const auto begun = begun_.find(event.address);
    if (begun != begun_.end() && trace_.events[begun->second].thread != event.thread &&
        is_first(begun->second, event.thread)) {
      edges_.push_back({begun->second, i});
    }
    const uint64_t begin = BlockNames::place(event.address);
    ended_[begin] = {begin + block_bytes(trace_, event), i};
  }

  const Trace& trace_;
  const CellTable& cells_;
  const SemaphoreTable semaphores_;
  bool has_blocks_ = false;
  std::vector<ThreadState> threads_;
  std::unordered_multimap<LocationId, uint32_t> held_at_start_;
  std::map<std::pair<uint64_t, uint32_t>, Channel> channels_;  // by address and size
  std::map<uint64_t, std::vector<uint32_t>> lock_uses_;        // by address, since its beginning
  std::unordered_map<uint32_t, Accesses> used_before_;         // by cell
  std::vector<uint32_t> block_of_;                             // by cell: where it began
  std::unordered_map<uint32_t, std::vector<ThreadId>> threads_of_;  // by beginning of a block
  std::unordered_map<uint64_t, uint32_t> begun_;                    // by name
  std::map<uint64_t, std::pair<uint64_t, uint32_t>> ended_;  // memory: begin; end and who freed it
  std::vector<HardEdge> edges_;
};

}  // namespace

std::vector<HardEdge> hard_edges(const Trace& trace, const CellTable& cells, uint32_t carried) {
  return Finder(trace, cells).find(carried);
}

}  // namespace tsomon::predict
