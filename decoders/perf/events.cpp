#include "decoders/perf/events.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "decoders/perf/losses.h"
#include "decoders/perf/ordered.h"
#include "decoders/perf/probes.h"
#include "decoders/perf/reader.h"
#include "decoders/perf/sample.h"
#include "decoders/perf/spaces.h"

namespace tsomon::perf {

namespace {

constexpr uint32_t kWatchWrites = 2;
constexpr uint32_t kWatchAccesses = 3;

int64_t clock(uint64_t time) {
  return static_cast<int64_t>(std::min(time, static_cast<uint64_t>(kTimeMax)));
}

// What perf's data_src says of one sample.
struct DataSource {
  bool load = false;
  bool store = false;
  bool locked = false;
  explicit DataSource(uint64_t word)
      : load((word & 2) != 0), store((word & 4) != 0), locked((word >> 24 & 2) != 0) {}
};

enum class Role : uint8_t { kNone, kBreakpoint, kProbe, kMemory };

struct Source {  // an attribute, as far as it matters here
  Role role = Role::kNone;
  std::optional<Probe> probe;
};

// An event of a thread that is not yet in the trace.
struct Pending {
  Event event;
  int64_t lo = 0;
  int64_t hi = 0;
  uint32_t child = 0;  // kFork: the thread
  bool only_if_lossless = false;
  bool of_memory = false;  // a sample of perf mem
  bool kept = true;
};

struct OpenUnit {
  size_t begin = 0;  // position among the events of the thread
  uint64_t function = 0;
  uint64_t time = 0;
};

struct ClosedUnit {
  size_t begin = 0;
  size_t end = 0;
  uint64_t from = 0;
  uint64_t to = 0;
};

// Consecutive hits of a thread at one instruction. One exception reports the hits of several
// breakpoints one after another, in any order; a loop over the instruction looks the same.
struct Hit {
  uint32_t attribute = 0;
  int64_t time = 0;
  std::optional<uint64_t> address;  // with the number of the address space at that time
};

struct Run {
  uint64_t ip = 0;
  uint64_t pc = 0;  // with the number of the address space
  uint32_t pid = 0;
  int64_t lo = 0;
  std::vector<Hit> hits;
};

struct ThreadEvents {
  int64_t after = 0;      // the program's next instruction comes after this
  int64_t after_hit = 0;  // ... the kernel's, too
  int64_t latest_lo = 0;
  std::vector<Pending> events;
  std::vector<OpenUnit> open;
  std::vector<ClosedUnit> units;
  Run run;

  // What comes later in program order does not begin earlier.
  void add(Pending pending) {
    pending.lo = latest_lo = std::max(pending.lo, latest_lo);
    pending.hi = std::max(pending.hi, pending.lo);
    events.push_back(pending);
  }
};

class Sampler {
 public:
  explicit Sampler(Reader reader) : records_(std::move(reader)) {}

  SampledTrace run() {
    Record record;
    while (records_.next(record)) {
      take(record);
    }
    for (auto& [tid, thread] : threads_) {
      finish_run(thread);
    }
    losses_.finish();
    finish_units();
    finish_trace();
    report();
    return std::move(result_);
  }

 private:
  const FileInfo& info() const { return records_.reader().info(); }
  const AttributeTable& attributes() const { return info().attributes; }

  const Source& source_of(uint32_t index) {
    while (sources_.size() < attributes().all().size()) {
      const Attribute& attribute = attributes()[static_cast<uint32_t>(sources_.size())];
      Source source;
      if (attribute.type == kTypeBreakpoint) {
        source.role = Role::kBreakpoint;
        has_breakpoints_ = true;
      } else if ((source.probe = find_probe(info(), attribute))) {
        source.role = Role::kProbe;
      } else if (attribute.has(sample_type::kAddress) && attribute.has(sample_type::kDataSource)) {
        source.role = Role::kMemory;
      }
      matters_.push_back(source.role == Role::kBreakpoint || source.role == Role::kProbe);
      sources_.push_back(std::move(source));
    }
    return sources_[index];
  }

  void take(const Record& record) {
    if (record.attribute != AttributeTable::kNone) {
      source_of(record.attribute);
    }
    losses_.see(record, attributes(), matters_);
    spaces_.see(record);
    if (record.type == RecordType::kSample) {
      take_sample(record);
    } else if (record.type == RecordType::kFork) {
      take_fork(record);
    }
    take_bound(record);
  }

  // What the kernel wrote while it worked for a thread comes before that thread's next instruction:
  // the kernel takes locks after it reads the clock, or returns by a serialising instruction. Not
  // so what it may have written in the middle of an exception that then reports a hit.
  static bool bounds(const Record& record) {
    switch (record.type) {
      case RecordType::kSample:
        return (record.misc & misc::kCpuModeMask) == misc::kUser;
      case RecordType::kSwitch:
      case RecordType::kSwitchCpuWide:
      case RecordType::kMmap:
      case RecordType::kMmap2:
      case RecordType::kComm:
      case RecordType::kFork:
        return true;
      default:
        return false;
    }
  }

  void take_bound(const Record& record) {
    constexpr uint64_t kNeeded = sample_type::kTid | sample_type::kTime;
    const uint32_t tid = record.sample_id.tid;
    if (!bounds(record) || (record.sample_fields & kNeeded) != kNeeded || tid == 0 ||
        tid == UINT32_MAX || record.sample_id.time == 0) {
      return;
    }
    const bool sample = record.type == RecordType::kSample;
    if (sample && sources_[record.attribute].role == Role::kMemory) {
      return;  // the processor wrote it, perhaps much earlier
    }
    ThreadEvents& thread = threads_[tid];
    if (!sample) {
      finish_run(thread);  // not inside an exception
    }
    thread.after = std::max(thread.after, clock(record.sample_id.time));
  }

  void take_fork(const Record& record) {
    const auto task = parse_task(record);
    if (!task || task->tid == task->parent_tid) {
      return;
    }
    const uint64_t time = record.has_time() ? record.sample_id.time : 0;
    if (time == 0) {
      return;  // one of those that perf writes for what is running already
    }
    ThreadEvents& child = threads_[task->tid];
    finish_run(child);  // of a former thread with that id
    child.open.clear();
    child.after = std::max(child.after, clock(time));
    child.after_hit = std::max(child.after_hit, clock(time));
    if (task->pid != task->parent_pid) {
      return;
    }
    ThreadEvents& parent = threads_[task->parent_tid];
    finish_run(parent);
    Pending fork = make(EventKind::kFork, parent.after, clock(time));
    fork.child = task->tid;
    parent.add(fork);
  }

  void take_sample(const Record& record) {
    const Attribute& attribute = attributes()[record.attribute];
    const Source& source = source_of(record.attribute);
    if (source.role == Role::kNone) {
      return;
    }
    const auto sample = parse_sample(attribute, record);
    if (!sample || !attribute.has(sample_type::kTid) || sample->tid == 0 ||
        sample->tid == UINT32_MAX) {
      ++without_thread_;
      return;
    }
    if (!attribute.has(sample_type::kTime)) {
      ++without_time_;
      return;
    }
    ThreadEvents& thread = threads_[sample->tid];
    switch (source.role) {
      case Role::kBreakpoint:
        return take_hit(record.attribute, attribute, *sample, thread);
      case Role::kProbe:
        return take_probe(*source.probe, attribute, *sample, thread);
      default:
        return take_memory(record, *sample, thread);
    }
  }

  static Pending make(EventKind kind, int64_t lo, int64_t hi) {
    Pending pending;
    pending.event.set_kind(kind);
    pending.lo = lo;
    pending.hi = hi;
    return pending;
  }

  // `pc` is a return address, as in captures: one after the instruction's begin.
  uint32_t location(uint64_t pc) {
    return result_.trace.symbols.intern_location(fmt::format("0x{:x}", pc));
  }

  // ---- Breakpoints

  void take_hit(uint32_t index, const Attribute& attribute, const Sample& sample,
                ThreadEvents& thread) {
    if (attribute.breakpoint_type != kWatchWrites && attribute.breakpoint_type != kWatchAccesses) {
      ++not_data_;
      return;
    }
    Run& run = thread.run;
    if (run.hits.empty() || run.ip != sample.ip || run.pid != sample.pid) {
      finish_run(thread);
      run.ip = sample.ip;
      run.pc = spaces_.tagged(sample.pid, sample.ip).value_or(sample.ip);
      run.pid = sample.pid;
      run.lo = sample.ip >> 63 != 0 ? thread.after_hit : thread.after;
    }
    run.hits.push_back({index, clock(sample.time), spaces_.tagged(sample.pid, attribute.config1)});
    thread.after_hit = std::max(thread.after_hit, clock(sample.time));
  }

  bool same_bytes(uint32_t left, uint32_t right) const {
    return attributes()[left].config1 == attributes()[right].config1 &&
           attributes()[left].config2 == attributes()[right].config2;
  }

  void finish_run(ThreadEvents& thread) {
    Run& run = thread.run;
    if (run.hits.empty()) {
      return;
    }
    std::map<uint32_t, uint64_t> counts;  // by attribute
    for (const Hit& hit : run.hits) {
      ++counts[hit.attribute];
    }
    bool only_reads = true;
    bool one_range = true;
    for (const auto& [attribute, count] : counts) {
      only_reads = only_reads && !watches_writes(attribute);
      one_range = one_range && same_bytes(attribute, counts.begin()->first);
    }
    // An access comes before the stamp of its hit, but perhaps before that of another's, too.
    int64_t lo = run.lo;
    for (const Hit& hit : run.hits) {
      const bool is_write = watches_writes(hit.attribute);
      if (is_write || only_reads) {
        add_hit(hit, is_write, lo, thread);
        lo = one_range ? std::max(lo, hit.time) : lo;
      }
    }
    if (!only_reads) {
      count_doubtful(counts);
    }
    run.hits.clear();
  }

  bool watches_writes(uint32_t attribute) const {
    return attributes()[attribute].breakpoint_type == kWatchWrites;
  }

  // Of a run with writes: hits of read-write breakpoints that no write explains.
  void count_doubtful(const std::map<uint32_t, uint64_t>& counts) {
    for (const auto& [both, hits] : counts) {
      if (watches_writes(both)) {
        continue;
      }
      uint64_t explained = 0;
      for (const auto& [other, writes] : counts) {
        if (watches_writes(other) && same_bytes(other, both)) {
          explained = std::max(explained, writes);
        }
      }
      unknown_direction_ += hits - std::min(hits, explained);
    }
  }

  void add_hit(const Hit& hit, bool is_write, int64_t lo, ThreadEvents& thread) {
    const Attribute& attribute = attributes()[hit.attribute];
    const uint32_t at = location(thread.run.pc);
    if (!is_write && !has_write_twin(hit.attribute)) {
      ++unknown_direction_;
    } else if (!hit.address || attribute.config2 == 0 || attribute.config2 > 8) {
      ++without_address_;
    } else {
      Pending access = make(is_write ? EventKind::kWrite : EventKind::kRead, lo, hit.time);
      access.event.address = *hit.address;
      access.event.size = static_cast<uint32_t>(attribute.config2) & Event::kMaxSize;
      access.event.location = at;
      access.only_if_lossless = !is_write;
      thread.add(access);
    }
    Pending drained = make(EventKind::kFence, lo, hit.time);
    drained.event.location = at;
    thread.add(drained);
  }

  // Whether a write to the bytes that this breakpoint watches would have hit another one, too.
  bool has_write_twin(uint32_t index) const {
    constexpr uint64_t kSame = attribute_flag::kExclude | attribute_flag::kEnableOnExec |
                               attribute_flag::kInherit | attribute_flag::kFrequency;
    const Attribute& both = attributes()[index];
    if ((both.flags & attribute_flag::kEnableOnExec) == 0 || !both.every_occurrence()) {
      return false;
    }
    const auto& all = attributes().all();
    return std::any_of(all.begin(), all.end(), [&](const Attribute& other) {
      return other.type == kTypeBreakpoint && other.breakpoint_type == kWatchWrites &&
             other.config1 == both.config1 && other.config2 == both.config2 &&
             other.every_occurrence() && (other.flags & kSame) == (both.flags & kSame);
    });
  }

  // ---- Units

  void take_probe(const Probe& probe, const Attribute& attribute, const Sample& sample,
                  ThreadEvents& thread) {
    const auto function = probed_function(probe, sample);
    if (!attribute.every_occurrence() || !function) {
      ++unusable_probes_;
      return;
    }
    finish_run(thread);
    Pending boundary = make(probe.is_return ? EventKind::kUnitEnd : EventKind::kUnitBegin,
                            thread.after, clock(sample.time));
    boundary.kept = false;
    if (!probe.is_return) {
      boundary.event.address = result_.trace.symbols.labels.intern(label(probe.label));
      boundary.event.location =
          location(spaces_.tagged(sample.pid, sample.ip).value_or(sample.ip) + 1);
      thread.open.push_back({thread.events.size(), *function, sample.time});
      thread.add(boundary);
      return;
    }
    while (!thread.open.empty() && thread.open.back().function != *function) {
      // Left without a return, or this return belongs to a call from before the recording: the
      // units that enclose it tell.
      if (std::none_of(thread.open.begin(), thread.open.end(),
                       [&](const OpenUnit& unit) { return unit.function == *function; })) {
        break;
      }
      thread.open.pop_back();
      ++half_units_;
    }
    if (thread.open.empty() || thread.open.back().function != *function) {
      ++half_units_;
      return;
    }
    const OpenUnit unit = thread.open.back();
    thread.open.pop_back();
    thread.units.push_back({unit.begin, thread.events.size(), unit.time, sample.time});
    thread.add(boundary);
  }

  // ';' separates a label from its atomic sets, '|' the fields of a line.
  static std::string label(std::string name) {
    for (char& c : name) {
      if (c == ';' || c == '|' || c == '(' || c == ')' || static_cast<unsigned char>(c) < ' ') {
        c = '_';
      }
    }
    return name;
  }

  void finish_units() {
    for (auto& [tid, thread] : threads_) {
      half_units_ += thread.open.size();
      for (const ClosedUnit& unit : thread.units) {
        const bool whole = !losses_.overlap(unit.from, unit.to);
        thread.events[unit.begin].kept = thread.events[unit.end].kept = whole;
        dissolved_ += whole ? 0 : 1;
      }
    }
  }

  // ---- Sampled instructions

  void take_memory(const Record& record, const Sample& sample, ThreadEvents& thread) {
    const DataSource source(sample.data_source);
    if (!source.load && !source.store) {
      return;  // a sample of something else that carries the fields
    }
    const auto address = spaces_.tagged(sample.pid, sample.address);
    if (sample.address == 0 || !address || (source.load && source.store && !source.locked)) {
      ++without_address_;
      return;
    }
    const EventKind kind = source.locked ? EventKind::kReadModifyWrite
                           : source.load ? EventKind::kRead
                                         : EventKind::kWrite;
    // Nothing says when it happened, but that its thread had begun.
    Pending access = make(kind, 0, kind == EventKind::kRead ? kTimeMax : clock(sample.time));
    access.event.address = *address;
    access.event.size = 1;
    const uint64_t exact = (record.misc & misc::kExactIp) != 0 ? 1 : 0;
    access.event.location =
        location(spaces_.tagged(sample.pid, sample.ip).value_or(sample.ip) + exact);
    access.of_memory = true;
    thread.add(access);
    memory_samples_ = true;
  }

  // ---- The end

  bool keep(const Pending& pending) const {
    if (!pending.kept || (pending.only_if_lossless && losses_.any())) {
      return false;
    }
    return !(pending.of_memory && has_breakpoints_);
  }

  void finish_trace() {
    struct Place {
      int64_t lo = 0;
      const Pending* pending = nullptr;
      uint32_t tid = 0;
    };
    std::vector<Place> places;
    for (const auto& [tid, thread] : threads_) {
      for (const Pending& pending : thread.events) {
        if (keep(pending)) {
          places.push_back({pending.lo, &pending, tid});
        }
      }
    }
    std::stable_sort(places.begin(), places.end(),
                     [](const Place& a, const Place& b) { return a.lo < b.lo; });
    Trace& trace = result_.trace;
    // Threads with accesses or units come first by their appearance; a thread that only started
    // others is one, too.
    std::unordered_map<uint32_t, ThreadId> ids;
    const auto id_of = [&](uint32_t tid) {
      const auto [entry, is_new] = ids.try_emplace(tid, 0);
      if (is_new) {
        entry->second = trace.symbols.threads.intern(fmt::format("{}", tid));
      }
      return entry->second;
    };
    std::unordered_map<uint32_t, bool> busy;
    for (const Place& place : places) {
      if (place.pending->event.kind() != EventKind::kFork) {
        busy[place.tid] = true;
      }
    }
    for (const Place& place : places) {
      Event event = place.pending->event;
      if (event.kind() == EventKind::kFork) {
        if (busy.count(place.pending->child) == 0 || busy.count(place.tid) == 0) {
          continue;
        }
        event.thread = id_of(place.tid);
        event.address = id_of(place.pending->child);
      } else {
        event.thread = id_of(place.tid);
      }
      trace.add(event, place.pending->lo, place.pending->hi);
    }
    trace.complete = records_.reader().problems().empty() && losses_.lost() == 0;
    trace.sampled = true;
    trace.symbols.initial_zero = false;
    trace.lost_events = losses_.lost();
    std::vector<std::pair<std::string, std::string>> build_ids;
    for (const FileBuildId& entry : info().build_ids) {
      build_ids.emplace_back(entry.path, entry.id);
    }
    result_.mappings = spaces_.mappings(build_ids);
  }

  void note(uint64_t count, const char* what) {
    if (count != 0) {
      result_.notes.push_back(fmt::format("{} {}", count, what));
    }
  }

  void report() {
    result_.problems = records_.reader().problems();
    if (losses_.lost() != 0) {
      result_.problems.push_back(
          fmt::format("{} records were lost while recording", losses_.lost()));
    }
    note(losses_.throttled(), "times the kernel switched an event off because it came too often");
    note(records_.late(), "records came out of the order of time");
    note(unknown_direction_,
         "hits of read-write breakpoints left out: loads or stores, which is not known (watch "
         "the same bytes with a write breakpoint, too, and start the program with perf record)");
    note(not_data_, "hits of breakpoints on instructions left out");
    note(without_thread_, "samples left out that name no thread, or cannot be read");
    note(without_time_, "samples left out that have no time (perf record -T)");
    note(without_address_, "samples left out whose address or direction is not known");
    note(unusable_probes_,
         "samples of probes left out that do not count every call or name no function");
    note(half_units_, "calls are no units: only their begin or only their end was seen");
    note(dissolved_, "calls are no units: records were lost meanwhile");
    if (memory_samples_ && has_breakpoints_) {
      result_.notes.emplace_back("samples of perf mem left out: there are breakpoints");
    }
    for (const auto& [type, count] : records_.reader().unknown()) {
      result_.notes.push_back(fmt::format("{} records of type {} skipped: not known", count, type));
    }
  }

  OrderedReader records_;
  SampledTrace result_;
  AddressSpaces spaces_;
  Losses losses_;
  std::map<uint32_t, ThreadEvents> threads_;  // by tid
  std::vector<Source> sources_;               // by attribute
  std::vector<bool> matters_;                 // by attribute
  bool has_breakpoints_ = false;
  bool memory_samples_ = false;

  uint64_t unknown_direction_ = 0;
  uint64_t not_data_ = 0;
  uint64_t without_thread_ = 0;
  uint64_t without_time_ = 0;
  uint64_t without_address_ = 0;
  uint64_t unusable_probes_ = 0;
  uint64_t half_units_ = 0;
  uint64_t dissolved_ = 0;
};

}  // namespace

Result<SampledTrace> read_samples(std::string_view bytes) {
  auto reader = Reader::open(bytes);
  if (!reader) {
    return tl::unexpected<Error>(reader.error());
  }
  return Sampler(std::move(*reader)).run();
}

}  // namespace tsomon::perf
