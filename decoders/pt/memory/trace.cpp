#include "decoders/pt/memory/trace.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <tsl/robin_map.h>

#include "decoders/pt/flow/path_times.h"
#include "decoders/pt/memory/cross_thread_propagation.h"

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
               Symbols& symbols)
      : thread_(thread),
        options_(options),
        symbols_(symbols),
        units_(options.units, path.process, *this),
        unseen_store_(options.partial) {}

  void entry(const PathEntry& entry, const std::vector<FoundAccess>& accesses) override {
    const bool began_elsewhere = std::exchange(elsewhere_, false) && began_earlier(entry);
    if (!began_earlier(entry)) {
      lo_ = std::max(lo_, entry.lo);
    }
    hi_ = std::max(entry.hi, lo_);
    if (entry.kind == Kind::kGap || entry.kind == Kind::kElsewhere) {
      units_.interrupt();
      unseen_store_ = true;
      elsewhere_ = true;
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
        // Perhaps a part of it came before what a handler did: it has no place in the order.
        const bool in_parts = began_elsewhere && &instruction == &entry.block->instructions.front();
        add(*access, !in_parts);
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
    return push_mark(EventKind::kUnitBegin, symbols_.labels.intern(label), at);
  }
  size_t end_unit(const Instruction* at) override { return push_mark(EventKind::kUnitEnd, 0, at); }
  void take_back(size_t event) override {
    events_[event].taken_back = true;
    any_taken_back_ = true;
  }

  std::vector<Timed>& events() { return events_; }
  const TraceCounts& counts() const { return counts_; }

  // The end of the path.
  void finish() {
    counts_.incomplete_units += units_.incomplete();
    if (any_taken_back_) {
      events_.erase(std::remove_if(events_.begin(), events_.end(),
                                   [](const Timed& timed) { return timed.taken_back; }),
                    events_.end());
    }
    narrow();
  }

 private:
  // Program order: no event begins before the one before it, or ends after the one after.
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

  void add(const FoundAccess& found, bool in_order) {
    const bool locked = found.access->kind == AccessKind::kLocked;
    if (found.access->stack_relative() && !locked) {
      ++counts_.stack;
      return;
    }
    // What may not have taken place must not order anything.
    const bool certain =
        locked || (in_order && !found.access->masked && !found.access->conditional);
    switch (certain ? found.source : AddressSource::kUnknown) {
      case AddressSource::kUnknown:
        ++counts_.unknown;
        // A locked operation is a fence wherever it takes place.
        if (locked) {
          push(EventKind::kFence, 0, 0, *found.instruction);
        } else if (found.access->kind == AccessKind::kStore) {
          unseen_store_ = true;
        }
        return;
      case AddressSource::kOwnStack:
        ++counts_.stack;
        if (locked) {
          push(EventKind::kFence, 0, 0, *found.instruction);
        }
        return;
      case AddressSource::kLoader:
        ++counts_.loader;
        return;
      case AddressSource::kInstruction:
        ++counts_.by_instruction;
        break;
      case AddressSource::kForward:
        ++counts_.forward;
        break;
      case AddressSource::kBackward:
        ++counts_.backward;
        break;
      case AddressSource::kStack:
        ++counts_.through_stack;
        break;
      case AddressSource::kMemory:
        ++counts_.through_memory;
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
      known.value() = symbols_.intern_location(fmt::format("0x{:x}", ip));
    }
    return known->second;
  }

  ThreadId thread_;
  const TraceOptions& options_;
  Symbols& symbols_;
  TraceCounts counts_;
  std::vector<Timed> events_;
  tsl::robin_map<uint64_t, uint32_t> locations_;  // address to id
  UnitsOnPath units_;
  int64_t lo_ = kTimeMin;
  int64_t hi_ = kTimeMax;
  bool any_taken_back_ = false;
  bool elsewhere_ = false;  // the entry before
  bool unseen_store_;       // one that is not in the trace may still be in the store buffer
};

// Whether the process began with exec: not where a call returns that made it, perhaps in memory
// that it shares (vfork).
bool began_with_exec(const Flow& flow, const std::vector<size_t>& members) {
  return std::any_of(members.begin(), members.end(), [&](size_t member) {
    const ThreadPath& path = flow.threads[member];
    if (path.thread != path.process || path.entries.empty() ||
        path.entries.front().kind != Kind::kBlock) {
      return false;
    }
    static constexpr uint8_t kCalls[][2] = {{0x0F, 0x05}, {0x0F, 0x34}, {0xCD, 0x80}};
    uint8_t before[2];
    return flow.constants.read(path.process, path.entries.front().block->ip() - sizeof before,
                               before, sizeof before) &&
           std::none_of(std::begin(kCalls), std::end(kCalls), [&](const uint8_t(&call)[2]) {
             return std::equal(std::begin(call), std::end(call), before);
           });
  });
}

}  // namespace

void TraceCounts::add(const TraceCounts& more) {
  by_instruction += more.by_instruction;
  forward += more.forward;
  backward += more.backward;
  through_stack += more.through_stack;
  through_memory += more.through_memory;
  unknown += more.unknown;
  stack += more.stack;
  loader += more.loader;
  incomplete_units += more.incomplete_units;
  placed_samples += more.placed_samples;
}

DecodedTrace make_trace(const Flow& flow, const TraceOptions& options) {
  DecodedTrace out;
  out.problems = flow.problems;
  out.trace.symbols.initial_zero = false;
  std::map<std::pair<int, int>, std::vector<RegisterSample>> samples;  // by thread
  for (const RegisterSample& sample : options.samples) {
    samples[{sample.process, sample.thread}].push_back(sample);
  }
  std::map<int, std::vector<size_t>> processes;  // their threads
  for (size_t i = 0; i < flow.threads.size(); ++i) {
    processes[flow.threads[i].process].push_back(i);
  }
  const bool whole = options.all_threads && !options.partial && flow.problems.empty() &&
                     flow.gaps == 0 && flow.of_nobody == 0;
  std::vector<std::unique_ptr<ThreadEvents>> sinks(flow.threads.size());
  for (const auto& of_process : processes) {
    const int process = of_process.first;
    const std::vector<size_t>& members = of_process.second;
    std::vector<ThreadToFind> threads;
    for (const size_t i : members) {
      const ThreadPath& path = flow.threads[i];
      threads.push_back({&path, place_samples(path, samples[{process, path.thread}])});
      out.counts.placed_samples += threads.back().samples.size();
    }
    AccessOptions asked;
    asked.constants = &flow.constants;
    asked.memory = options.memory && threads.size() == 1;
    asked.registers_only = options.quick;
    asked.frames_before = options.frames_before;
    const auto sink = [&](size_t member) -> AccessSink& {
      const ThreadPath& path = flow.threads[members[member]];
      const ThreadId thread =
          out.trace.symbols.threads.intern(fmt::format("{}/{}", path.process, path.thread));
      auto& made = sinks[members[member]];
      made = std::make_unique<ThreadEvents>(path, thread, options, out.trace.symbols);
      return *made;
    };
    // Of several processes, all but the one that perf started may share memory with another one.
    const bool alone = processes.size() == 1 || began_with_exec(flow, members);
    if (whole && alone && !options.quick) {
      find_with_proofs(threads, asked, sink);
    } else {
      for (size_t i = 0; i < threads.size(); ++i) {
        find_accesses(*threads[i].path, threads[i].samples, asked, sink(i));
      }
    }
  }
  for (const auto& sink : sinks) {
    sink->finish();
    out.counts.add(sink->counts());
  }
  // The threads' events by time; inside a thread they are so already.
  struct Place {
    int64_t lo;
    uint32_t thread;
    size_t at;
  };
  std::vector<Place> order;
  for (uint32_t i = 0; i < sinks.size(); ++i) {
    const std::vector<Timed>& events = sinks[i]->events();
    for (size_t at = 0; at < events.size(); ++at) {
      order.push_back({events[at].lo, i, at});
    }
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Place& a, const Place& b) { return a.lo < b.lo; });
  for (const Place& place : order) {
    const Timed& timed = sinks[place.thread]->events()[place.at];
    out.trace.add(timed.event, timed.lo, timed.hi);
  }
  if (out.counts.unknown != 0) {
    out.problems.push_back(
        fmt::format("{} accesses at addresses that are not known", out.counts.unknown));
  }
  if (flow.instructions == 0) {
    out.problems.emplace_back("the trace has no instructions that could be decoded");
  }
  out.trace.complete = out.problems.empty() && flow.gaps == 0;
  out.trace.sampled = !out.trace.complete || options.partial;
  out.trace.lost_events = out.counts.unknown;
  return out;
}

}  // namespace tsomon::pt
