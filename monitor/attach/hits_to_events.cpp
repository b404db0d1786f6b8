#include "monitor/attach/hits_to_events.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "decoders/x86/dataflow.h"

namespace tsomon::attach {
namespace {

using x86::Register;

// Stack pointers that are further apart belong to different stacks.
constexpr uint64_t kStackReach = uint64_t{8} << 20;
// Looking at a thread in /proc costs some microseconds; not before it has been silent so long.
constexpr int64_t kLookAfter = 20'000'000;  // nanoseconds

EventKind event_kind(x86::AccessKind kind) {
  switch (kind) {
    case x86::AccessKind::kLoad:
      return EventKind::kRead;
    case x86::AccessKind::kStore:
      return EventKind::kWrite;
    case x86::AccessKind::kLocked:
      break;
  }
  return EventKind::kReadModifyWrite;
}

bool is_unit(Action::Kind kind) {
  return kind == Action::Kind::kEnter || kind == Action::Kind::kBegin;
}

// The instruction as it runs where the file is mapped.
x86::Instruction moved(x86::Instruction instruction, uint64_t bias) {
  if (instruction.lea.constant()) {
    instruction.lea.displacement += static_cast<int64_t>(bias);
  }
  return instruction;
}

}  // namespace

HitsToEvents::HitsToEvents(const Plan& plan, Symbols& symbols, EventMerge& merge,
                           HitsToEventsOptions options)
    : plan_(plan),
      symbols_(symbols),
      merge_(merge),
      options_(std::move(options)),
      control_(merge.open(UINT64_MAX - 1)),
      hits_of_groups_(plan.groups.size()) {}

HitsToEvents::Thread& HitsToEvents::thread_of(uint32_t number) {
  const auto found = threads_.find(number);
  if (found != threads_.end()) {
    return found->second;
  }
  // The kernel gives numbers of threads that have ended to new ones.
  std::string name = fmt::format("T{}", number);
  for (int again = 2; symbols_.threads.find(name) != Interner::kNone; ++again) {
    name = fmt::format("T{}#{}", number, again);
  }
  Thread thread;
  thread.id = symbols_.threads.intern(name);
  thread.stream = merge_.open(thread.id);
  thread.between = old_threads_.erase(number) != 0;
  return threads_.emplace(number, std::move(thread)).first->second;
}

void HitsToEvents::settle(Thread& thread, int64_t hi) {
  if (options_.values != Values::kNone) {
    conclude_values(plan_, options_.values, thread.pending, values_);
  }
  for (PendingAccess& pending : thread.pending) {
    pending.event.thread = thread.id;
    thread.block.add(pending.event, pending.lo, std::max(hi, pending.lo), pending.read,
                     pending.written);
  }
  thread.pending.clear();
}

void HitsToEvents::units_were_set(const std::vector<pid_t>& threads) {
  for (const pid_t number : threads) {
    const auto known = threads_.find(static_cast<uint32_t>(number));
    if (known == threads_.end()) {
      old_threads_.insert(static_cast<uint32_t>(number));
    } else if (std::none_of(known->second.frames.begin(), known->second.frames.end(),
                            [](const Frame& frame) { return is_unit(frame.kind); })) {
      known->second.between = true;
    }
  }
}

// The thread went straight on from its last hit to this one.
void HitsToEvents::note_gap(const Thread& thread, const Site& site, const Hit& hit) {
  constexpr uint32_t kNear = 8;  // instructions
  if (thread.last_site == kNoSite || gaps_.size() == kMaxGaps) {
    return;
  }
  const Site& last = plan_.sites[thread.last_site];
  if (last.function != site.function || last.module != site.module ||
      last.instruction >= site.instruction || last.instruction + kNear < site.instruction) {
    return;
  }
  const std::vector<x86::Instruction>& code = plan_.functions[site.function].code;
  if (site.instruction >= code.size() || code[site.instruction].address != site.address ||
      code[last.instruction].address != last.address) {
    return;  // markers have no instruction
  }
  for (uint32_t i = last.instruction; i < site.instruction; ++i) {
    if (code[i].branch != x86::Branch::kNone || code[i].next() != code[i + 1].address) {
      return;
    }
  }
  gaps_.push_back(hit.time - thread.last);
}

void HitsToEvents::point(Thread& thread, EventKind kind, uint64_t address, int64_t time) {
  if (!telling_) {
    return;
  }
  Event event;
  event.set_kind(kind);
  event.address = address;
  event.thread = thread.id;
  thread.block.add(event, time, time);
}

void HitsToEvents::end_frame(Thread& thread, int64_t time) {
  const Frame frame = thread.frames.back();
  thread.frames.pop_back();
  if (is_unit(frame.kind)) {
    point(thread, EventKind::kUnitEnd, 0, time);
  }
}

void HitsToEvents::leave_what_is_left(Thread& thread, uint64_t stack, bool at_entry) {
  while (!thread.frames.empty()) {
    const Frame& frame = thread.frames.back();
    const bool left = stack > frame.stack || (at_entry && stack == frame.stack);
    if (frame.stack == 0 || !left || stack - frame.stack > kStackReach) {
      return;
    }
    end_frame(thread, thread.last);
  }
}

void HitsToEvents::acquire(Thread& thread, int64_t time, uint64_t lock, bool shared) {
  Held& held = thread.locks[lock];
  if (held.depth++ == 0) {
    held.shared = shared;
    point(thread, shared ? EventKind::kAcquireShared : EventKind::kAcquire, lock, time);
  }
}

void HitsToEvents::release(Thread& thread, int64_t time, uint64_t lock, LockRole role) {
  const auto found = thread.locks.find(lock);
  if (found == thread.locks.end()) {
    thread.unknown_locks -= thread.unknown_locks != 0 ? 1 : 0;
    // The acquisition was not seen. The lock is held all the same, so that whoever had it before
    // has given it back by now; unless there are other readers.
    const auto reads = [&](const auto& other) { return other.second.locks.count(lock) != 0; };
    if (role != LockRole::kReleaseEither || std::none_of(threads_.begin(), threads_.end(), reads)) {
      point(thread, EventKind::kAcquire, lock, time);
      point(thread, EventKind::kRelease, lock, time);
    }
    return;
  }
  if (--found->second.depth != 0) {
    return;
  }
  point(thread, found->second.shared ? EventKind::kReleaseShared : EventKind::kRelease, lock, time);
  thread.locks.erase(found);
}

bool HitsToEvents::inside_old_unit(const Thread& thread, const Action& action) const {
  return thread.between ||
         (plan_.functions[action.function].unit &&
          std::none_of(thread.frames.begin(), thread.frames.end(), [&](const Frame& frame) {
            return frame.kind == Action::Kind::kEnter && frame.function == action.function;
          }));
}

void HitsToEvents::access(Thread& thread, const Hit& hit, const Site& site, const Action& action) {
  const std::vector<x86::Instruction>& code = plan_.functions[action.function].code;
  const x86::Instruction& instruction = code[action.instruction];
  const uint64_t bias = hit.ip - site.address;
  x86::RegisterFile registers = hit.registers;
  if (inside_old_unit(thread, action) || thread.unknown_locks != 0) {
    ++left_out_;
    return;
  }
  if (action.after && !thread.any) {
    return;  // it may have begun before the probes were there
  }
  if (!action.after && site.function == action.function) {
    for (uint32_t i = site.instruction; i < action.instruction; ++i) {
      x86::step_forward(moved(code[i], bias), registers);
    }
  }
  PendingAccess made;
  made.lo = action.after ? thread.last : hit.time;
  made.event.location = action.location;
  if (action.fence) {
    made.event.set_kind(EventKind::kFence);
  } else {
    auto address = action.access.address.evaluate(registers);
    if (!address) {
      ++unmatched_;
      return;
    }
    if (action.access.repeat != x86::Repeat::kOnce &&
        registers.get(Register::kRcx).value_or(0) == 0) {
      return;  // nothing is left to repeat; each repetition is a hit of its own
    }
    made.event.address = *address + (action.access.address.constant() ? bias : 0);
    made.event.size = action.access.size & Event::kMaxSize;
    made.event.set_kind(event_kind(action.access.kind));
    if (options_.values != Values::kNone && action.access.size <= 8 &&
        action.access.repeat == x86::Repeat::kOnce) {
      if (action.after) {
        made.read = x86::loaded_value(instruction, hit.registers);
      } else {
        made.function = action.function;
        made.instruction = action.instruction;
        made.stack = hit.registers.value(Register::kRsp);
        made.before = registers;
      }
      if (hit.memory && &action == &site.actions[site.memory_action]) {
        made.memory = hit.memory;
        made.memory_exact =
            site.instruction == action.instruction && options_.alone && options_.alone(hit.time);
      }
    }
  }
  thread.pending.push_back(made);
  if (action.after) {
    settle(thread, hit.time + kClockError);
  }
}

void HitsToEvents::act(Thread& thread, const Hit& hit, const Site& site, const Action& action) {
  const uint64_t stack = hit.registers.value(Register::kRsp);
  switch (action.kind) {
    case Action::Kind::kEnter:
      leave_what_is_left(thread, stack, true);
      thread.between = false;
      thread.frames.push_back({action.kind, {}, stack, 0, action.label, action.function});
      point(thread, EventKind::kUnitBegin, action.label, hit.time);
      break;
    case Action::Kind::kLeave: {
      // What was entered deeper has been left; the unit itself was entered with this stack.
      const auto entered =
          std::find_if(thread.frames.rbegin(), thread.frames.rend(), [&](const Frame& frame) {
            return frame.kind == Action::Kind::kEnter && frame.stack == stack;
          });
      if (entered != thread.frames.rend()) {
        const auto keep = static_cast<size_t>(thread.frames.rend() - entered) - 1;
        while (thread.frames.size() > keep) {
          end_frame(thread, hit.time);
        }
      }
      break;
    }
    case Action::Kind::kBegin:
      thread.between = false;
      thread.frames.push_back({action.kind, {}, 0, 0, action.label, 0});
      point(thread, EventKind::kUnitBegin, action.label, hit.time);
      break;
    case Action::Kind::kEnd: {
      const auto begun =
          std::find_if(thread.frames.rbegin(), thread.frames.rend(), [&](const Frame& frame) {
            return frame.kind == Action::Kind::kBegin && frame.label == action.label;
          });
      if (begun != thread.frames.rend()) {
        const auto keep = static_cast<size_t>(thread.frames.rend() - begun) - 1;
        while (thread.frames.size() > keep) {
          end_frame(thread, hit.time);
        }
      }
      break;
    }
    case Action::Kind::kAccess:
      access(thread, hit, site, action);
      break;
    case Action::Kind::kLock: {
      leave_what_is_left(thread, stack, true);
      const uint64_t lock =
          hit.registers.value(action.role == LockRole::kWait ? Register::kRsi : Register::kRdi);
      const bool releases = is_release(action.role);
      if (releases || action.role == LockRole::kWait) {
        release(thread, hit.time, lock, action.role);
      }
      if (action.role == LockRole::kWait) {
        point(thread, EventKind::kWait, hit.registers.value(Register::kRdi), hit.time);
      }
      if (!releases) {
        thread.frames.push_back({action.kind, action.role, stack, lock, 0, 0});
      }
      break;
    }
    case Action::Kind::kLockReturn: {
      leave_what_is_left(thread, stack, false);
      constexpr uint64_t kTimedOut = 110;  // ETIMEDOUT: a wait has taken the mutex again
      const uint64_t result = hit.registers.value(Register::kRax) & 0xFFFFFFFF;
      const bool taken =
          action.result == LockResult::kAlways ||
          (action.result == LockResult::kNonZero ? (result & 0xFF) != 0 : result == 0) ||
          (action.role == LockRole::kWait && result == kTimedOut);
      if (thread.frames.empty() || thread.frames.back().kind != Action::Kind::kLock ||
          thread.frames.back().stack != stack) {
        // Called before the probes were there: which lock this is nobody knows.
        thread.unknown_locks += taken ? 1 : 0;
        break;
      }
      const Frame frame = thread.frames.back();
      thread.frames.pop_back();
      if (taken) {
        acquire(thread, hit.time, frame.lock, frame.role == LockRole::kAcquireShared);
      }
      break;
    }
  }
}

void HitsToEvents::watched(Thread& thread, const Hit& hit) {
  const WatchedAccess found = options_.watched ? options_.watched(hit) : WatchedAccess();
  if (found.probed) {
    return;
  }
  if (thread.between || thread.unknown_locks != 0) {
    ++left_out_;
    return;
  }
  if (found.size == 0) {
    ++unmatched_;
    return;
  }
  // The trap follows the instruction. What the processor had begun of it is bounded by what it
  // keeps in flight, some hundred instructions: far less than this.
  constexpr int64_t kInFlight = 1'000'000;  // nanoseconds
  PendingAccess made;
  made.lo = hit.time - kInFlight;
  if (thread.any) {
    made.lo = std::max(made.lo, thread.last);
  }
  made.event.address = found.address;
  made.event.size = found.size & Event::kMaxSize;
  made.event.location = found.location;
  made.event.set_kind(event_kind(found.kind));
  thread.pending.push_back(made);
  if (found.also_stores) {
    made.event.set_kind(EventKind::kWrite);
    thread.pending.push_back(made);
  }
  settle(thread, hit.time + kClockError);
}

// The scheduler's locked instructions drain the buffer of a thread that sleeps. Where it slept is
// not known: after its last access, or (a page had to be read) in the middle of it. After loads,
// and before stores, the fence says no more than is true of both.
void HitsToEvents::slept(Thread& thread, int64_t time) {
  const auto is_kind = [](EventKind kind) {
    return [kind](const PendingAccess& pending) { return pending.event.kind() == kind; };
  };
  PendingAccess fence;
  fence.event.set_kind(EventKind::kFence);
  if (thread.pending.empty()) {
    fence.event.thread = thread.id;
    thread.block.add(fence.event, time, time + kClockError);
  } else if (std::all_of(thread.pending.begin(), thread.pending.end(), is_kind(EventKind::kRead))) {
    fence.lo = time;
    thread.pending.push_back(fence);
  } else if (std::all_of(thread.pending.begin(), thread.pending.end(),
                         is_kind(EventKind::kWrite))) {
    fence.event.thread = thread.id;
    const int64_t lo = thread.pending.front().lo;
    thread.block.add(fence.event, lo, std::max(lo, time) + kClockError);
  }
}

void HitsToEvents::group_live_from(uint32_t group, int64_t time) {
  live_.resize(std::max<size_t>(live_.size(), group + 1));
  live_[group].from = time;
}

void HitsToEvents::group_gone_at(uint32_t group, int64_t time) {
  live_.resize(std::max<size_t>(live_.size(), group + 1));
  live_[group].until = time;
}

bool HitsToEvents::counts(const Hit& hit) const {
  if (hit.time > ends_at_ || (hit.kind == Hit::Kind::kWatch && hit.time > watching_ends_at_)) {
    return false;
  }
  if (hit.kind != Hit::Kind::kProbe || hit.source >= plan_.sites.size()) {
    return true;
  }
  const uint32_t group = plan_.sites[hit.source].group;
  return group >= live_.size() || (live_[group].from <= hit.time && hit.time <= live_[group].until);
}

// Only what says which locks are held when all probes are live.
void HitsToEvents::before_all_is_live(const Hit& hit) {
  if (began_ && hit.kind == Hit::Kind::kProbe) {
    lost(1);  // it comes too late for that
    return;
  }
  if (hit.kind != Hit::Kind::kProbe || hit.source >= plan_.sites.size()) {
    left_out_ += hit.kind == Hit::Kind::kWatch ? 1 : 0;
    return;
  }
  const Site& site = plan_.sites[hit.source];
  const auto of_lock = [](const Action& action) {
    return action.kind == Action::Kind::kLock || action.kind == Action::Kind::kLockReturn;
  };
  telling_ = false;
  for (const Action& action : site.actions) {
    if (of_lock(action)) {
      act(thread_of(hit.thread), hit, site, action);
    }
  }
  telling_ = true;
  left_out_ += std::any_of(site.actions.begin(), site.actions.end(), of_lock) ? 0 : 1;
}

void HitsToEvents::tell_held_locks() {
  began_ = true;
  for (auto& [number, thread] : threads_) {
    for (const auto& [lock, held] : thread.locks) {
      point(thread, held.shared ? EventKind::kAcquireShared : EventKind::kAcquire, lock,
            live_from_);
    }
  }
}

void HitsToEvents::add(const Hit& hit_as_read) {
  if (!counts(hit_as_read)) {
    left_out_ += hit_as_read.kind != Hit::Kind::kSleep ? 1 : 0;
    return;
  }
  if (hit_as_read.time < live_from_) {
    before_all_is_live(hit_as_read);
    return;
  }
  if (!began_) {
    tell_held_locks();
  }
  if (hit_as_read.kind == Hit::Kind::kSleep) {
    // Of threads that have never been at a probe nothing is known that could be drained.
    const auto known = threads_.find(hit_as_read.thread);
    if (known != threads_.end() && !known->second.drained) {
      const int64_t time = std::max(hit_as_read.time, known->second.last);
      slept(known->second, time);
      known->second.last = time;
      known->second.last_site = kNoSite;
      known->second.drained = true;
    }
    return;
  }
  Hit hit = hit_as_read;
  Thread& thread = thread_of(hit.thread);
  // The clock may have gone back a little (hit.h); a thread's own hits are in order all the same.
  hit.time = std::max(hit.time, thread.last);
  if (hit.kind == Hit::Kind::kProbe && hit.source < plan_.sites.size()) {
    note_gap(thread, plan_.sites[hit.source], hit);
    if (options_.values != Values::kNone) {
      see_registers(plan_, plan_.sites[hit.source], hit, thread.pending);
    }
  }
  settle(thread, hit.time + kClockError);
  if (hit.kind == Hit::Kind::kWatch) {
    ++hits_of_watch_points_;
    hits_by_watch_point_.resize(std::max<size_t>(hits_by_watch_point_.size(), hit.source + 1));
    ++hits_by_watch_point_[hit.source];
    leave_what_is_left(thread, hit.registers.value(Register::kRsp), false);
    watched(thread, hit);
  } else if (hit.source < plan_.sites.size()) {
    const Site& site = plan_.sites[hit.source];
    hits_of_groups_.resize(plan_.groups.size());  // modules that are loaded later bring new ones
    ++hits_of_groups_[site.group];
    leave_what_is_left(thread, hit.registers.value(Register::kRsp), false);
    for (const Action& action : site.actions) {
      act(thread, hit, site, action);
    }
  }
  thread.last = hit.time;
  thread.last_site = hit.kind == Hit::Kind::kProbe ? hit.source : kNoSite;
  thread.any = true;
  thread.drained = false;
}

void HitsToEvents::advance(int64_t time) {
  if (!began_ && time >= live_from_) {
    tell_held_locks();
  }
  for (auto& [number, thread] : threads_) {
    if ((!thread.drained || !thread.pending.empty()) && thread.last + kLookAfter < time) {
      // The clock is read after the look: what was seen was so before.
      if (options_.in_system_call && options_.in_system_call(number)) {
        const int64_t now = hit_clock();
        settle(thread, now + kClockError);
        if (!thread.drained) {
          Event fence;
          fence.set_kind(EventKind::kFence);
          fence.thread = thread.id;
          thread.block.add(fence, std::max(thread.last, time), now + kClockError);
        }
        thread.drained = true;
      } else if (thread.last + kPatience < time) {
        settle(thread, kTimeMax);
      }
    }
    if (!thread.block.events.empty()) {
      EventBlock block = merge_.take_block();
      std::swap(block, thread.block);
      merge_.push(thread.stream, std::move(block));
    }
    merge_.promise(thread.stream, thread.pending.empty()
                                      ? std::max(thread.last, time)
                                      : std::min(time, thread.pending.front().lo));
  }
  merge_.promise(control_, time);
}

void HitsToEvents::thread_ended(uint32_t number) {
  const auto found = threads_.find(number);
  if (found == threads_.end()) {
    return;
  }
  Thread& thread = found->second;
  settle(thread, hit_clock() + kClockError);
  if (!thread.block.events.empty()) {
    merge_.push(thread.stream, std::move(thread.block));
  }
  merge_.close(thread.stream);
  threads_.erase(found);
}

void HitsToEvents::lost(uint64_t hits) { merge_.lose(control_, {EventLoss::kUnknownThread, hits}); }

void HitsToEvents::finish() {
  for (const uint32_t number : threads()) {
    thread_ended(number);
  }
  merge_.close(control_);
}

std::vector<uint32_t> HitsToEvents::threads() const {
  std::vector<uint32_t> all;
  all.reserve(threads_.size());
  for (const auto& [number, thread] : threads_) {
    all.push_back(number);
  }
  return all;
}

}  // namespace tsomon::attach
