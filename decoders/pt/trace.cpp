#include "decoders/pt/trace.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <tsl/robin_map.h>

namespace tsomon::pt {
namespace {

using Kind = PathEntry::Kind;
using x86::AccessKind;
using x86::Branch;
using x86::Instruction;

struct Timed {
  Event event;
  int64_t lo = kTimeMin;
  int64_t hi = kTimeMax;
  bool open = false;        // ends at any time
  bool taken_back = false;  // is no event
};

class ThreadEvents : public AccessSink, public UnitEvents {
 public:
  ThreadEvents(const ThreadPath& path, ThreadId thread, const TraceOptions& options,
               DecodedTrace& out, std::vector<Timed>& events)
      : thread_(thread),
        options_(options),
        out_(out),
        events_(events),
        units_(options.units, path.process, *this),
        unseen_store_(options.partial) {}

  void entry(const PathEntry& entry, const std::vector<FoundAccess>& accesses) override {
    lo_ = std::max(lo_, entry.lo);
    hi_ = std::max(entry.hi, lo_);
    if (entry.kind == Kind::kGap || entry.kind == Kind::kElsewhere) {
      units_.interrupt();
      unseen_store_ = true;
      return;
    }
    if (entry.kind == Kind::kValue) {
      units_.value(entry.value);
      return;
    }
    const bool units = !units_.none();
    if (units) {
      units_.block(entry.block->ip());
    }
    auto access = accesses.begin();
    for (const Instruction& instruction : entry.block->instructions) {
      if (units) {
        units_.before(instruction);
      }
      for (; access != accesses.end() && access->instruction == &instruction; ++access) {
        add(*access);
      }
      if (instruction.ordering == x86::Ordering::kFull) {
        push(EventKind::kFence, 0, 0, instruction);
      }
      unseen_store_ = unseen_store_ || instruction.unlisted_stores;
      if (options_.branches && (instruction.branch == Branch::kConditional ||
                                instruction.branch == Branch::kIndirectJump)) {
        push(EventKind::kBranch, 0, 0, instruction);
      }
      if (units) {
        units_.after(instruction);
      }
    }
  }

  size_t begin_unit(const std::string& label, const Instruction* at) override {
    return push_mark(EventKind::kUnitBegin, out_.trace.symbols.labels.intern(label), at);
  }
  size_t end_unit(const Instruction* at) override { return push_mark(EventKind::kUnitEnd, 0, at); }
  void take_back(size_t event) override {
    events_[event].taken_back = true;
    any_taken_back_ = true;
  }

  // The end of the path.
  void finish() {
    out_.counts.incomplete_units += units_.incomplete();
    if (any_taken_back_) {
      events_.erase(std::remove_if(events_.begin(), events_.end(),
                                   [](const Timed& timed) { return timed.taken_back; }),
                    events_.end());
    }
    narrow();
  }

 private:
  // Program order: no event begins before the one in front of it, or ends after the one behind.
  void narrow() {
    int64_t hi = kTimeMax;
    for (size_t i = events_.size(); i-- != 0;) {
      hi = std::min(hi, events_[i].hi);
      events_[i].hi = std::max(hi, events_[i].lo);
    }
    for (Timed& timed : events_) {
      timed.hi = timed.open ? kTimeMax : timed.hi;
    }
  }

  size_t push_mark(EventKind kind, uint64_t label, const Instruction* at) {
    Timed timed;
    timed.event.set_kind(kind);
    timed.event.thread = thread_;
    timed.event.address = label;
    timed.event.location = at == nullptr ? Event::kNoLocation : location(at->address);
    timed.lo = lo_;
    timed.hi = hi_;
    events_.push_back(timed);
    return events_.size() - 1;
  }

  void push(EventKind kind, uint64_t address, uint64_t size, const Instruction& instruction) {
    Timed timed;
    timed.event.set_kind(kind);
    timed.event.thread = thread_;
    timed.event.location = location(instruction.address);
    timed.lo = lo_;
    timed.hi = hi_;
    if (kind == EventKind::kFence || kind == EventKind::kReadModifyWrite) {
      unseen_store_ = false;
    }
    timed.open = kind == EventKind::kRead && unseen_store_;
    do {  // what is longer than an event can be is several
      const uint64_t part = std::min<uint64_t>(size, Event::kMaxSize);
      timed.event.address = address;
      timed.event.size = static_cast<uint32_t>(part) & Event::kMaxSize;
      events_.push_back(timed);
      address += part;
      size -= part;
    } while (size != 0);
  }

  void add(const FoundAccess& found) {
    const bool locked = found.access->kind == AccessKind::kLocked;
    if (found.access->stack_relative() && !locked) {
      ++out_.counts.stack;
      return;
    }
    // What may not have taken place must not order anything.
    const bool certain = locked || (!found.access->masked && !found.access->conditional);
    switch (certain ? found.source : AddressSource::kUnknown) {
      case AddressSource::kUnknown:
        ++out_.counts.unknown;
        // A locked operation is a fence wherever it takes place.
        if (locked) {
          push(EventKind::kFence, 0, 0, *found.instruction);
        } else if (found.access->kind == AccessKind::kStore) {
          unseen_store_ = true;
        }
        return;
      case AddressSource::kOwnStack:
        ++out_.counts.stack;
        if (locked) {
          push(EventKind::kFence, 0, 0, *found.instruction);
        }
        return;
      case AddressSource::kInstruction:
        ++out_.counts.by_instruction;
        break;
      case AddressSource::kForward:
        ++out_.counts.forward;
        break;
      case AddressSource::kBackward:
        ++out_.counts.backward;
        break;
      case AddressSource::kStack:
        ++out_.counts.through_stack;
        break;
      case AddressSource::kMemory:
        ++out_.counts.through_memory;
        break;
    }
    if (found.range.size == 0) {
      return;
    }
    static constexpr EventKind kKinds[] = {EventKind::kRead, EventKind::kWrite,
                                           EventKind::kReadModifyWrite};
    push(kKinds[static_cast<size_t>(found.access->kind)], found.range.address, found.range.size,
         *found.instruction);
  }

  uint32_t location(uint64_t ip) {
    const auto [known, is_new] = locations_.try_emplace(ip, 0);
    if (is_new) {
      known.value() = out_.trace.symbols.intern_location(fmt::format("0x{:x}", ip));
    }
    return known->second;
  }

  ThreadId thread_;
  const TraceOptions& options_;
  DecodedTrace& out_;
  std::vector<Timed>& events_;
  tsl::robin_map<uint64_t, uint32_t> locations_;  // address to id
  UnitsOnPath units_;
  int64_t lo_ = kTimeMin;
  int64_t hi_ = kTimeMax;
  bool any_taken_back_ = false;
  bool unseen_store_;  // one that is not in the trace may still be in the store buffer
};

}  // namespace

DecodedTrace make_trace(const Flow& flow, const TraceOptions& options) {
  DecodedTrace out;
  out.problems = flow.problems;
  out.trace.symbols.initial_zero = false;
  std::map<std::pair<int, int>, std::vector<RegisterSample>> samples;  // by thread
  for (const RegisterSample& sample : options.samples) {
    samples[{sample.process, sample.thread}].push_back(sample);
  }
  std::map<int, size_t> threads;  // of each process
  for (const ThreadPath& path : flow.threads) {
    ++threads[path.process];
  }
  std::vector<std::vector<Timed>> events(flow.threads.size());
  for (size_t i = 0; i < flow.threads.size(); ++i) {
    const ThreadPath& path = flow.threads[i];
    const ThreadId thread =
        out.trace.symbols.threads.intern(fmt::format("{}/{}", path.process, path.thread));
    ThreadEvents sink(path, thread, options, out, events[i]);
    AccessOptions asked;
    asked.constants = &flow.constants;
    asked.memory = options.memory && threads[path.process] == 1;
    asked.registers_only = options.quick;
    asked.frames_before = options.frames_before;
    const auto placed = place_samples(path, samples[{path.process, path.thread}]);
    out.counts.placed_samples += placed.size();
    find_accesses(path, placed, asked, sink);
    sink.finish();
  }
  // The threads' events by time; inside a thread they are so already.
  struct Place {
    int64_t lo;
    uint32_t thread;
    size_t at;
  };
  std::vector<Place> order;
  for (uint32_t i = 0; i < events.size(); ++i) {
    for (size_t at = 0; at < events[i].size(); ++at) {
      order.push_back({events[i][at].lo, i, at});
    }
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Place& a, const Place& b) { return a.lo < b.lo; });
  for (const Place& place : order) {
    const Timed& timed = events[place.thread][place.at];
    out.trace.add(timed.event, timed.lo, timed.hi);
  }
  if (out.counts.unknown != 0) {
    out.problems.push_back(
        fmt::format("{} accesses at addresses that are not known", out.counts.unknown));
  }
  out.trace.complete = out.problems.empty() && flow.gaps == 0;
  out.trace.sampled = !out.trace.complete || options.partial;
  out.trace.lost_events = out.counts.unknown;
  return out;
}

}  // namespace tsomon::pt
