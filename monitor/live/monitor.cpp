#include "monitor/live/monitor.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "decoders/capture/clock_margin.h"
#include "monitor/findings/result_json.h"
#include "monitor/judge/watch.h"
#include "monitor/live/machine_clock.h"
#include "monitor/probe/clock.h"
#include "monitor/probe/last_stamps.h"
#include "monitor/probe/stamp.h"
#include "online/stream/stream_merger.h"
#include "tso/model/cancelled_units.h"

namespace tsomon {
namespace {

constexpr const char* kTool = "tsomon monitor";
// An idle thread of the monitor looks at what there is this often.
constexpr std::chrono::milliseconds kWait{50};

WatchOptions watch_options(const Monitor::Options& options) {
  WatchOptions result;
  RelationOptions& relation = result.detector.relation;
  relation.model = options.store_buffers ? MemoryModel::kTso : MemoryModel::kSc;
  relation.store_buffer = options.store_buffer_size;
  result.source = BasisSource::kFed;
  result.detector.policy = options.atomic_sets     ? DetectorPolicy::kAtomicSets
                           : options.store_buffers ? DetectorPolicy::kTso
                                                   : DetectorPolicy::kSc;
  return result;
}

StreamMergerOptions merger_options(const Monitor::Options& options) {
  StreamMergerOptions result;
  result.max_blocks = std::max<size_t>(options.max_blocks, 8);
  result.drop_when_full = options.drop;
  return result;
}

Monitor::Verdict verdict_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kClean:
      return Monitor::Verdict::kClean;
    case Verdict::kPossible:
      return Monitor::Verdict::kPossible;
    case Verdict::kDefinite:
      return Monitor::Verdict::kDefinite;
    case Verdict::kInconclusive:
      break;
  }
  return Monitor::Verdict::kInconclusive;
}

nlohmann::ordered_json summary_json(const Monitor::Summary& summary, Verdict verdict,
                                    const WatchSummary& found) {
  nlohmann::ordered_json object = {{"events", summary.events},
                                   {"threads", found.threads},
                                   {"units", summary.units},
                                   {"verdict", verdict_name(verdict)},
                                   {"complete", summary.complete},
                                   {"violations", summary.findings},
                                   {"occurrences", summary.occurrences},
                                   {"rests_on", basis_json(found.basis)}};
  if (!summary.why.empty()) {
    object["why"] = summary.why;
  }
  return object;
}

}  // namespace

class Monitor::Impl {
 public:
  Impl(Callback callback, const Options& options)
      : margin_(capture::ClockMargin::allowed(measure_margin())),
        merger_(merger_options(options)),
        callback_(std::move(callback)),
        watch_(symbols_, watch_options(options),
               [this](const ReportedFinding& found) { report(found); }),
        cancels_(options.cancels),
        thread_([this] { run(); }) {}
  ~Impl() { stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  uint32_t intern(Interner Symbols::*table, std::string_view text) {
    const std::lock_guard guard(texts_lock_);
    const uint32_t known = (texts_.*table).size();
    const uint32_t id = (texts_.*table).intern(text);
    if (id == known) {
      texts_count_.fetch_add(1, std::memory_order_release);
    }
    return id;
  }
  uint32_t new_thread(std::string_view name) {
    const std::lock_guard guard(texts_lock_);
    std::string text(name);
    for (uint32_t i = 2; texts_.threads.find(text) != Interner::kNone; ++i) {
      text = std::string(name) + "#" + std::to_string(i);
    }
    const uint32_t id = texts_.threads.intern(text);
    texts_count_.fetch_add(1, std::memory_order_release);
    return id;
  }

  void declare(std::string_view name, uint64_t address, size_t size) {
    const std::lock_guard guard(texts_lock_);
    auto set = std::find_if(texts_.sets.begin(), texts_.sets.end(),
                            [&](const AtomicSet& known) { return known.name == name; });
    if (set == texts_.sets.end()) {
      set = texts_.sets.insert(set, {std::string(name), {}});
    }
    add_range(&set->members, address, size);
    sets_changed_ = true;
    texts_count_.fetch_add(1, std::memory_order_release);
  }

  StreamMerger& merger() { return merger_; }
  // Cycles by which every interval begins earlier (decoders/capture/clock_margin.h).
  int64_t margin() const { return margin_; }

  Summary finish() {
    const bool moved = margin_ < capture::ClockMargin::kMost && measure_margin(margin_) > margin_;
    stop();
    const WatchSummary found = watch_.summary();
    Summary summary;
    summary.events = found.events;
    summary.units = found.detector.units;
    summary.findings = found.found.all();
    summary.occurrences = found.occurrences;
    const bool trusted = !moved && probe::most_backwards() <= static_cast<uint64_t>(margin_);
    summary.complete = found.complete() && merger_.complete() && trusted;
    summary.accesses = found.basis.accesses;
    summary.larger_units = found.basis.larger_units;
    const std::vector<Shortfall> shortfalls = found.shortfalls();
    // Orders of stamps, which "definite" rests on, may have been the wrong way round.
    tsomon::Verdict verdict = found.verdict();
    if (verdict == tsomon::Verdict::kDefinite && !trusted) {
      verdict = tsomon::Verdict::kPossible;
    }
    if (verdict == tsomon::Verdict::kClean && !summary.complete) {
      verdict = tsomon::Verdict::kInconclusive;
    }
    summary.verdict = verdict_of(verdict);
    if (summary.verdict == Verdict::kInconclusive) {
      summary.why =
          !shortfalls.empty() ? shortfalls.front().reason + "; " + shortfalls.front().remedy
          : !trusted ? "the processors' time-stamp counters differ by more than was measured"
          : found.notes.empty() ? "events were lost or late, or a bound was hit"
                                : found.notes.front();
    }
    summary.json = json_line(summary_json(summary, verdict, found), kTool);
    return summary;
  }

 private:
  void stop() {
    stopping_.store(true, std::memory_order_release);
    merger_.wake();
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  void run() {
    EventBlock block;
    std::vector<EventLoss> losses;
    bool idle = false;  // nothing came while it waited
    if (cancels_) {
      watch_.expect_cancels();
    }
    for (;;) {
      const bool last = stopping_.load(std::memory_order_acquire);
      block.clear();
      losses.clear();
      if (merger_.next(block, losses)) {
        take_texts();
        for (const EventLoss& loss : losses) {
          watch_.lost(loss);
        }
        watch_.add(block);
        idle = false;
      } else if (last && merger_.drained()) {
        break;
      } else {
        if (idle) {
          watch_.idle();
        }
        merger_.wait(kWait);
        idle = true;
      }
    }
    watch_.finish();
  }

  // What producers have named since; what an event names was named before it.
  void take_texts() {
    const uint64_t count = texts_count_.load(std::memory_order_acquire);
    if (count == texts_taken_) {
      return;
    }
    texts_taken_ = count;
    const std::lock_guard guard(texts_lock_);
    for (Interner Symbols::*table : {&Symbols::threads, &Symbols::labels, &Symbols::locations}) {
      for (uint32_t id = (symbols_.*table).size(); id != (texts_.*table).size(); ++id) {
        (symbols_.*table).intern((texts_.*table).text(id));
      }
    }
    if (sets_changed_) {
      symbols_.sets = texts_.sets;
      sets_changed_ = false;
    }
  }

  void report(const ReportedFinding& found) {
    if (!callback_) {
      return;
    }
    Finding finding;
    finding.number = found.number;
    finding.verdict = verdict_of(found.verdict);
    finding.text = found.text();
    finding.json = json_line(found.json(), kTool);
    callback_(finding);
  }

  const int64_t margin_;
  StreamMerger merger_;
  std::mutex texts_lock_;
  Symbols texts_;  // under the lock, as is
  bool sets_changed_ = false;
  std::atomic<uint64_t> texts_count_{0};
  std::atomic<bool> stopping_{false};
  // The monitor thread's:
  uint64_t texts_taken_ = 0;
  Symbols symbols_;
  Callback callback_;
  Watch watch_;
  bool cancels_;
  std::thread thread_;  // last: everything is there when it starts
};

struct Monitor::Producer {
  Impl* monitor;
  StreamMerger::Stream stream;
  uint32_t number;
  int64_t last;  // stamp: what follows has none that is smaller
  bool begun = false;

  ~Producer() { probe::leave_stamp(end_of(number), static_cast<uint64_t>(last), true); }

  // The stamp of what happens now, in the order of the thread's others and after `before`, the
  // stamp of another thread (monitor/probe/stamp.h).
  int64_t stamp(uint64_t before = 0) {
    const int64_t time = now();
    if (!std::exchange(begun, true)) {
      before = std::max(before, probe::last_stamp(begin_of(number)));
    }
    const int64_t least = std::max(last, static_cast<int64_t>(before) + (before != 0 ? 1 : 0));
    if (time < least) {
      probe::note_backwards(static_cast<uint64_t>(least - time));
    }
    return last = std::max(time, least);
  }
  // Under which the stamps of a thread's start and end are left. No addresses.
  uint64_t begin_of(uint32_t thread) const { return key(2 * uint64_t{thread}); }
  uint64_t end_of(uint32_t thread) const { return key(2 * uint64_t{thread} + 1); }
  uint64_t key(uint64_t id) const {
    return reinterpret_cast<uint64_t>(monitor) + (uint64_t{1} << 48) + 8 * id;
  }

  void lock(EventKind kind, const volatile void* address, uint32_t location) {
    const auto id = reinterpret_cast<uint64_t>(address);
    const bool acquires = kind == EventKind::kAcquire;
    const int64_t time = stamp(acquires ? probe::last_stamp(id) : 0);
    if (!acquires) {
      probe::leave_stamp(id, static_cast<uint64_t>(time), false);
    }
    Event event;
    event.set_kind(kind);
    event.address = id;
    event.thread = number;
    event.location = location == 0 ? Event::kNoLocation : location - 1;
    // Events of a lock come in the order of their stamps (tso/model/lock_order.h).
    stream.add(event, capture::widened(time, monitor->margin()), time, std::nullopt,
               static_cast<uint64_t>(time));
  }

  void add(EventKind kind, uint64_t address, size_t size, uint32_t location, Interval when) {
    Event event;
    event.set_kind(kind);
    event.address = address;
    event.size = static_cast<uint32_t>(std::min<size_t>(size, Event::kMaxSize)) & Event::kMaxSize;
    event.thread = number;
    event.location = location == 0 ? Event::kNoLocation : location - 1;
    stream.add(event, capture::widened(when.from, monitor->margin()), std::max(when.from, when.to));
  }
  void add(EventKind kind, const volatile void* address, size_t size, uint32_t location) {
    const int64_t time = stamp();
    add(kind, reinterpret_cast<uint64_t>(address), size, location, {time, time});
  }
  // `operand`: of what has no address, a label or a thread.
  void add(EventKind kind, uint64_t operand = 0) {
    const int64_t time = stamp();
    add(kind, operand, 0, 0, {time, time});
  }
};

int64_t Monitor::now() { return static_cast<int64_t>(probe::stamp()); }

Monitor::Thread::Thread(std::unique_ptr<Producer> producer)
    : producer_(std::move(producer)), id_(producer_->number) {}
Monitor::Thread::Thread() = default;
Monitor::Thread::Thread(Thread&&) noexcept = default;
Monitor::Thread& Monitor::Thread::operator=(Thread&&) noexcept = default;
Monitor::Thread::~Thread() = default;

template <typename... Arguments>
void Monitor::Thread::add(Arguments... arguments) {
  if (producer_ != nullptr) {
    producer_->add(arguments...);
  }
}

void Monitor::Thread::begin(uint32_t label) { add(EventKind::kUnitBegin, label); }
void Monitor::Thread::begin(std::string_view label) {
  if (producer_ != nullptr) {
    begin(producer_->monitor->intern(&Symbols::labels, label));
  }
}
void Monitor::Thread::end() { add(EventKind::kUnitEnd); }
void Monitor::Thread::cancel() { add(kUnitCancel); }
void Monitor::Thread::read(const volatile void* address, size_t size, uint32_t location) {
  add(EventKind::kRead, address, size, location);
}
void Monitor::Thread::read(const volatile void* address, size_t size, uint32_t location,
                           Interval when) {
  add(EventKind::kRead, reinterpret_cast<uint64_t>(address), size, location, when);
}
void Monitor::Thread::write(const volatile void* address, size_t size, uint32_t location) {
  add(EventKind::kWrite, address, size, location);
}
void Monitor::Thread::write(const volatile void* address, size_t size, uint32_t location,
                            Interval when) {
  add(EventKind::kWrite, reinterpret_cast<uint64_t>(address), size, location, when);
}
void Monitor::Thread::update(const volatile void* address, size_t size, uint32_t location) {
  add(EventKind::kReadModifyWrite, address, size, location);
}
void Monitor::Thread::update(const volatile void* address, size_t size, uint32_t location,
                             Interval when) {
  add(EventKind::kReadModifyWrite, reinterpret_cast<uint64_t>(address), size, location, when);
}
void Monitor::Thread::fence() { add(EventKind::kFence); }
void Monitor::Thread::acquire(const volatile void* lock, uint32_t location) {
  if (producer_ != nullptr) {
    producer_->lock(EventKind::kAcquire, lock, location);
  }
}
void Monitor::Thread::release(const volatile void* lock, uint32_t location) {
  if (producer_ != nullptr) {
    producer_->lock(EventKind::kRelease, lock, location);
  }
}
void Monitor::Thread::allocate(const volatile void* address, size_t size, uint32_t location) {
  if (size != 0 && size <= Event::kMaxSize) {
    add(EventKind::kAllocate, address, size, location);
  }
}
void Monitor::Thread::free(const volatile void* address, uint32_t location) {
  add(EventKind::kFree, address, size_t{0}, location);
}
void Monitor::Thread::fork(const Thread& started) {
  if (started.id() != kNoThread && producer_ != nullptr) {
    add(EventKind::kFork, started.id());
    probe::leave_stamp(producer_->begin_of(started.id()), static_cast<uint64_t>(producer_->last),
                       true);
  }
}
void Monitor::Thread::join(uint32_t ended) {
  if (ended != kNoThread && producer_ != nullptr) {
    producer_->stamp(probe::last_stamp(producer_->end_of(ended)));
    add(EventKind::kJoin, ended);
  }
}
void Monitor::Thread::lost(uint64_t events) {
  if (producer_ != nullptr) {
    producer_->stream.lost({id_, events});
  }
}
void Monitor::Thread::pause() {
  if (producer_ != nullptr) {
    producer_->stream.advance(capture::widened(producer_->stamp(), producer_->monitor->margin()));
  }
}
void Monitor::Thread::close() { producer_.reset(); }

Monitor::Monitor(Callback callback) : Monitor(std::move(callback), Options()) {}
Monitor::Monitor(Callback callback, const Options& options)
    : impl_(std::make_unique<Impl>(std::move(callback), options)) {}
Monitor::~Monitor() = default;

Monitor::Thread Monitor::thread(std::string_view name) {
  auto producer = std::make_unique<Producer>();
  producer->monitor = impl_.get();
  producer->number = impl_->new_thread(name);
  producer->last = now();
  producer->stream = impl_->merger().open(capture::widened(producer->last, impl_->margin()));
  return Thread(std::move(producer));
}
uint32_t Monitor::label(std::string_view text) { return impl_->intern(&Symbols::labels, text); }
uint32_t Monitor::location(std::string_view text) {
  return impl_->intern(&Symbols::locations, text) + 1;
}
void Monitor::atomic_set(std::string_view name, const volatile void* address, size_t size) {
  impl_->declare(name, reinterpret_cast<uint64_t>(address), size);
}
Monitor::Summary Monitor::finish() { return impl_->finish(); }

}  // namespace tsomon
