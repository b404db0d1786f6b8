#include "monitor/findings/last_waits.h"

#include <algorithm>

#include "tso/model/waited.h"

namespace tsomon {
namespace {

// What a handler may do while its thread waits; what it orders is none of it.
constexpr uint32_t kOfHandlers = kind_mask(EventKind::kRead) | kind_mask(EventKind::kWrite) |
                                 kind_mask(EventKind::kReadModifyWrite) |
                                 kind_mask(EventKind::kBranch) | kind_mask(EventKind::kAllocate);

}  // namespace

LastWaits::State& LastWaits::state(ThreadId thread) {
  if (thread >= threads_.size()) {
    threads_.resize(thread + 1);
  }
  threads_[thread].seen = true;
  return threads_[thread];
}

void LastWaits::acquire(const LastEvent& taken, int64_t until, bool shared) {
  std::vector<Hold>& holds = locks_[taken.event.address];
  std::erase_if(holds, [&](const Hold& hold) {
    const bool gone = hold.thread != taken.event.thread && !(shared && hold.shared);
    if (gone) {
      threads_[hold.thread].overtaken = true;
      if (!shared && !hold.shared && hold.until < taken.event.lo) {
        overtaken_[taken.event.address] = {hold, {taken.event.thread, shared, 1, taken, until}};
      }
    }
    return gone;
  });
  const auto own = std::find_if(holds.begin(), holds.end(), [&](const Hold& hold) {
    return hold.thread == taken.event.thread && hold.shared == shared;
  });
  if (own != holds.end()) {
    ++own->times;
  } else {
    holds.push_back({taken.event.thread, shared, 1, taken, until});
  }
}

// One that somebody else gives back: who holds what is not known.
void LastWaits::release(const LastEvent& given_back, bool shared) {
  const Event& event = given_back.event;
  if (const auto found = overtaken_.find(event.address); found != overtaken_.end()) {
    const auto& [before, by] = found->second;
    if (event.thread == before.thread && !shared && by.until < event.lo && !two_holders_) {
      two_holders_ = TwoHolders{before.taken, by.taken, given_back};
    }
    overtaken_.erase(found);
  }
  const auto lock = locks_.find(event.address);
  if (lock == locks_.end()) {
    return;
  }
  std::vector<Hold>& holds = lock->second;
  const auto own = std::find_if(holds.begin(), holds.end(), [&](const Hold& hold) {
    return hold.thread == event.thread && hold.shared == shared;
  });
  if (own == holds.end()) {
    locks_.erase(lock);
    return;
  }
  if (--own->times == 0) {
    holds.erase(own);
  }
  if (holds.empty()) {
    locks_.erase(lock);
  }
}

// The memory of locks that are gone.
void LastWaits::forget(uint64_t begin, uint64_t end) {
  const auto from = [&](auto& locks) {
    locks.erase(locks.lower_bound(begin), locks.lower_bound(std::max(end, begin + 1)));
  };
  from(locks_);
  from(overtaken_);
}

void LastWaits::add(const EventBlock& block, uint64_t first, const std::vector<uint64_t>& lines) {
  for (size_t i = 0; i != block.events.size(); ++i) {
    const Event& event = block.events[i];
    State& mine = state(event.thread);
    if (is(event, kOfHandlers)) {
      continue;
    }
    const LastEvent here{event, lines.empty() ? first + i : lines[i]};
    switch (event.kind()) {
      case EventKind::kFree:
        forget(event.address, event.address + block.write_value(event).value_or(event.size));
        continue;
      case EventKind::kDestroy:
        forget(event.address, event.address);
        continue;
      case EventKind::kNotify:
        for (State& other : threads_) {
          if (other.wait && other.wait->kind == StuckThread::For::kCondition &&
              other.wait->event.event.address == event.address) {
            other.wait.reset();
          }
        }
        continue;
      default:
        break;
    }
    mine.wait.reset();
    switch (event.kind()) {
      case EventKind::kAcquire:
      case EventKind::kAcquireShared:
        acquire(here, block.hi(event), event.kind() == EventKind::kAcquireShared);
        break;
      case EventKind::kRelease:
      case EventKind::kReleaseShared:
        release(here, event.kind() == EventKind::kReleaseShared);
        break;
      case EventKind::kFork:
        state(static_cast<ThreadId>(event.address)).ended = false;
        break;
      case EventKind::kJoin:
        state(static_cast<ThreadId>(event.address)).ended = true;
        break;
      case EventKind::kTry:
        mine.tries = event.address;
        continue;
      case EventKind::kWait:
        if (mine.tries != event.address) {
          mine.wait = Wait{StuckThread::For::kCondition, false, here};
        }
        break;
      case EventKind::kRequest: {
        const auto what = static_cast<Waited>(block.write_value(event).value_or(0));
        if (what == Waited::kThread) {
          state(static_cast<ThreadId>(event.address));
        }
        if (what != Waited::kSemaphore) {
          threads_[event.thread].wait =
              Wait{what == Waited::kThread ? StuckThread::For::kThread : StuckThread::For::kLock,
                   what == Waited::kReadLock, here};
        }
        break;
      }
      default:
        continue;
    }
    // What was tried for was something else, or is done; a wait gives its mutex back in between.
    if (event.kind() != EventKind::kRelease) {
      threads_[event.thread].tries.reset();
    }
  }
}

bool LastWaits::blocks(const Wait& wait, const Hold& hold) const {
  return !threads_[hold.thread].overtaken && !(wait.shared && hold.shared);
}

std::vector<StuckThread> LastWaits::stuck() const {
  std::vector<bool> in(threads_.size());
  for (ThreadId t = 0; t != threads_.size(); ++t) {
    in[t] = threads_[t].wait.has_value() && !threads_[t].ended && !threads_[t].overtaken;
  }
  const auto all_in = [&] {
    for (ThreadId t = 0; t != threads_.size(); ++t) {
      if (threads_[t].seen && !threads_[t].ended && !in[t]) {
        return false;
      }
    }
    return true;
  };
  const auto whom = [&](ThreadId t) {
    std::vector<ThreadId> threads;
    const Wait& wait = *threads_[t].wait;
    const uint64_t address = wait.event.event.address;
    if (wait.kind == StuckThread::For::kThread) {
      threads.push_back(static_cast<ThreadId>(address));
    } else if (const auto lock = locks_.find(address);
               wait.kind == StuckThread::For::kLock && lock != locks_.end()) {
      for (const Hold& hold : lock->second) {
        if (blocks(wait, hold)) {
          threads.push_back(hold.thread);
        }
      }
    }
    return threads;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (ThreadId t = 0; t != threads_.size(); ++t) {
      if (!in[t]) {
        continue;
      }
      const StuckThread::For kind = threads_[t].wait->kind;
      const std::vector<ThreadId> those = whom(t);
      const bool waits =
          kind == StuckThread::For::kCondition
              ? all_in()
              : std::any_of(those.begin(), those.end(), [&](ThreadId other) {
                  return in[other] || (threads_[other].ended && kind == StuckThread::For::kLock);
                });
      if (!waits) {
        in[t] = false;
        changed = true;
      }
    }
  }
  // From whoever is stuck to whom it waits for, until one comes again.
  std::vector<ThreadId> order;
  size_t circle = 0;
  for (ThreadId start = 0; start != threads_.size() && circle == 0; ++start) {
    std::vector<ThreadId> path;
    for (std::optional<ThreadId> t = start; t && in[*t];) {
      if (const auto again = std::find(path.begin(), path.end(), *t); again != path.end()) {
        order.assign(again, path.end());
        circle = order.size();
        break;
      }
      path.push_back(*t);
      const std::vector<ThreadId> those = whom(*t);
      const auto next = std::find_if(those.begin(), those.end(), [&](ThreadId o) { return in[o]; });
      t = next == those.end() ? std::nullopt : std::optional(*next);
    }
  }
  for (ThreadId t = 0; t != threads_.size(); ++t) {
    if (in[t] && std::find(order.begin(), order.end(), t) == order.end()) {
      order.push_back(t);
    }
  }
  std::vector<StuckThread> all;
  for (const ThreadId t : order) {
    StuckThread one;
    one.thread = t;
    one.waits_for = threads_[t].wait->kind;
    one.wait = threads_[t].wait->event;
    one.held_by = whom(t);
    one.in_circle = all.size() < circle;
    for (const auto& [address, holds] : locks_) {
      for (const Hold& hold : holds) {
        if (hold.thread == t) {
          one.holds.push_back(hold.taken);
        }
        if (one.waits_for == StuckThread::For::kLock && address == one.wait.event.address &&
            !one.taken && !one.held_by.empty() && hold.thread == one.held_by.front()) {
          one.taken = hold.taken;
        }
      }
    }
    std::sort(one.holds.begin(), one.holds.end(),
              [](const LastEvent& a, const LastEvent& b) { return a.index < b.index; });
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace tsomon
