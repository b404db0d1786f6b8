#include "tests/tso/random_trace.h"

#include <algorithm>
#include <array>
#include <deque>

#include <fmt/format.h>

#include "tso/model/location_table.h"

namespace tsomon::testing {
namespace {

constexpr uint64_t kBase = 0x1000;

class Simulation {
 public:
  Simulation(std::mt19937_64& random, const RandomTraceOptions& options)
      : random_(random), options_(options), threads_(options.threads) {
    for (uint32_t t = 0; t < options.threads; ++t) {
      result_.trace.symbols.threads.intern(fmt::format("T{}", t));
      threads_[t].started = t == 0 || !options.threads_start;
    }
    for (uint32_t l = 0; l < options.locations; ++l) {
      result_.trace.symbols.names.intern(fmt::format("v{}", l));
    }
    for (uint32_t l = 0; l < options.lock_count; ++l) {
      locks_[l].name = result_.trace.symbols.names.intern(l == 0 ? "l" : fmt::format("l{}", l));
    }
    if (options.hand_overs != 0) {
      semaphore_names_ = {result_.trace.symbols.names.intern("s0"),
                          result_.trace.symbols.names.intern("s1")};
      channel_ = result_.trace.symbols.names.intern("c");
    }
    label_ = result_.trace.symbols.labels.intern("unit");
  }

  RandomTrace run() {
    for (size_t s = 0; options_.hand_overs != 0 && s < semaphores_.size(); ++s) {
      Event count = event(EventKind::kCount, 0);
      count.address = semaphore_names_[s];
      semaphores_[s] = below(3);
      add(count, {}, semaphores_[s]);
    }
    for (uint32_t step = 0; step < options_.steps;) {
      const uint32_t t = below(options_.threads);
      if (!threads_[t].started || threads_[t].joined) {
        start(t);
        continue;
      }
      if (chance(options_.units)) {
        unit_boundary(t);
      }
      if (options_.waits != 0 && threads_[t].depth > 0 && chance(options_.waits)) {
        if (options_.fenced) {
          fence_stores(t);  // what comes before the wait is a unit that ends here
        }
        Event wait = event(EventKind::kWait, t);
        wait.address = locks_[0].name;
        add(wait);
      }
      if (chance(50)) {
        commit(below(options_.threads));
      }
      if (act(t)) {
        ++step;
      }
      if (options_.fenced && threads_[t].depth == 0) {
        fence_stores(t);
      }
    }
    for (uint32_t t = 0; t < options_.threads && options_.fenced; ++t) {
      fence_stores(t);
    }
    for (uint32_t t = 0; t < options_.threads; ++t) {
      while (commit(t)) {
      }
    }
    return std::move(result_);
  }

 private:
  static constexpr size_t kMostLocks = 4;
  enum class Hold : uint8_t { kNot, kExclusive, kShared };
  struct Lock {
    uint64_t name = 0;
    bool taken = false;
    uint32_t readers = 0;
  };
  struct Store {
    uint32_t event;
    uint64_t address;  // of a release: which lock
    uint32_t size;
    uint64_t value;
    bool release;
    bool send = false;
  };
  struct Thread {
    bool started = true;
    bool joined = false;
    std::array<Hold, kMostLocks> holds{};
    uint32_t depth = 0;
    uint32_t stores = 0;  // since its last fence
    std::deque<Store> buffer;
    std::optional<Event> last_load;  // nothing came behind it
    bool fenced_load = false;        // ... and a fence in front of it
    bool after_fence = false;
  };

  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }
  bool chance(uint32_t percent) { return below(100) < percent; }

  Event event(EventKind kind, uint32_t t) const {
    Event result;
    result.set_kind(kind);
    result.thread = t;
    return result;
  }

  uint32_t add(const Event& event, std::optional<uint64_t> read = {},
               std::optional<uint64_t> written = {}) {
    Trace& trace = result_.trace;
    const auto index = static_cast<uint32_t>(trace.events.size());
    Thread& mine = threads_[event.thread];
    mine.last_load.reset();
    if (event.kind() == EventKind::kRead) {
      mine.last_load = event;
      mine.fenced_load = mine.after_fence;
    }
    mine.after_fence = event.kind() == EventKind::kFence;
    int64_t lo = index;
    int64_t hi = index;
    if (options_.intervals && is(event, kinds::kHandOvers | kind_mask(EventKind::kCount))) {
      lo = static_cast<int64_t>(index) * 4;  // in the order of these
      hi = lo + below(10);
    } else if (options_.intervals) {
      lo = static_cast<int64_t>(index) * 4 - below(10);
      hi = static_cast<int64_t>(index) * 4 + below(10);
    }
    if (!options_.values && event.kind() != EventKind::kCount) {
      read.reset();
      written.reset();
    }
    trace.add(event, lo, hi, read, written);
    return index;
  }

  void issued(uint32_t index) { result_.execution.push_back({false, index}); }

  bool commit(uint32_t t) {
    auto& buffer = threads_[t].buffer;
    if (buffer.empty()) {
      return false;
    }
    const Store store = buffer.front();
    buffer.pop_front();
    if (store.release) {
      locks_[store.address].taken = false;
    } else if (!store.send) {
      write(store.address, store.size, store.value);
    }
    result_.execution.push_back({true, store.event});
    return true;
  }
  void make_room(uint32_t t) {
    if (options_.store_buffer != 0 && threads_[t].buffer.size() == options_.store_buffer) {
      commit(t);
    }
  }
  void drain(uint32_t t) {
    while (commit(t)) {
    }
  }

  void fence(uint32_t t) {
    drain(t);
    threads_[t].stores = 0;
    issued(add(event(EventKind::kFence, t)));
  }
  void fence_stores(uint32_t t) {
    if (threads_[t].stores > 0) {
      fence(t);
    }
  }

  // Named locations are bytes beyond the ranges.
  uint64_t read(uint64_t address, uint32_t size) const {
    uint64_t value = 0;
    for (uint32_t i = 0; i < std::max(size, 1U); ++i) {
      value |= static_cast<uint64_t>(memory_[(size == 0 ? 128 : 0) + (address & 127) + i])
               << (8 * i);
    }
    return value;
  }
  void write(uint64_t address, uint32_t size, uint64_t value) {
    for (uint32_t i = 0; i < std::max(size, 1U); ++i) {
      memory_[(size == 0 ? 128 : 0) + (address & 127) + i] = static_cast<uint8_t>(value >> (8 * i));
    }
  }

  void start(uint32_t t) {
    if (threads_[t].joined || threads_[t].started) {
      return;
    }
    Event fork = event(EventKind::kFork, 0);
    fork.address = t;
    drain(0);
    issued(add(fork));
    threads_[t].started = true;
  }

  void unit_boundary(uint32_t t) {
    Thread& thread = threads_[t];
    if (thread.depth > 0 && (!options_.nesting || chance(50))) {
      if (options_.fenced && thread.depth == 1) {
        fence_stores(t);
      }
      add(event(EventKind::kUnitEnd, t));
      --thread.depth;
    } else {
      Event begin = event(EventKind::kUnitBegin, t);
      begin.address = label_;
      add(begin);
      ++thread.depth;
    }
  }

  void place(Event* access) {
    if (options_.mixed_sizes) {
      const uint32_t size = 1U << below(4);
      access->size = size;
      access->address = kBase + below(8 / size) * size + (chance(20) ? 2 : 0);
    } else {
      access->address = below(options_.locations);
    }
  }

  bool act(uint32_t t) {
    Thread& thread = threads_[t];
    if (thread.last_load && options_.repeats != 0 && chance(options_.repeats)) {
      const Event again = *thread.last_load;
      if (thread.fenced_load && chance(80)) {
        fence(t);
      }
      load(t, again);
      return true;
    }
    if (chance(options_.fences)) {
      fence(t);
      return true;
    }
    if (chance(options_.locks)) {
      return use_lock(t);
    }
    if (options_.hand_overs != 0 && chance(options_.hand_overs)) {
      return hand_over(t);
    }
    if (options_.threads_start && t == 0 && chance(10)) {
      return join();
    }
    Event access = event(EventKind::kRead, t);
    place(&access);
    if (chance(options_.locked)) {
      drain(t);
      access.set_kind(EventKind::kReadModifyWrite);
      const uint64_t old = read(access.address, access.size);
      const uint64_t value = fresh_value(access.size);
      write(access.address, access.size, value);
      issued(add(access, old, value));
      return true;
    }
    if (chance(50)) {
      make_room(t);
      access.set_kind(EventKind::kWrite);
      const uint64_t value = fresh_value(access.size);
      ++thread.stores;
      const bool recorded = options_.unvalued == 0 || !chance(options_.unvalued);
      const uint32_t index =
          add(access, {}, recorded ? std::optional<uint64_t>(value) : std::nullopt);
      thread.buffer.push_back({index, access.address, access.size, value, false});
      issued(index);
      return true;
    }
    load(t, access);
    return true;
  }

  void load(uint32_t t, const Event& access) {
    auto& buffer = threads_[t].buffer;
    const LocationKey here{access.address, access.size};
    for (size_t i = buffer.size(); i-- > 0;) {
      const LocationKey stored{buffer[i].address, buffer[i].size};
      if (buffer[i].release || buffer[i].send || !overlap(stored, here)) {
        continue;
      }
      if (contains(stored, here)) {
        const uint64_t shift = access.size == 0 ? 0 : 8 * (access.address - buffer[i].address);
        const uint64_t mask =
            access.size == 0 || access.size == 8 ? ~0ULL : (1ULL << (8 * access.size)) - 1;
        issued(add(access, (buffer[i].value >> shift) & mask));
        return;
      }
      for (size_t count = i + 1; count > 0; --count) {
        commit(t);
      }
      break;
    }
    issued(add(access, read(access.address, access.size)));
  }

  bool use_lock(uint32_t t) {
    Thread& thread = threads_[t];
    const uint32_t which = options_.lock_count > 1 ? below(options_.lock_count) : 0;
    Lock& lock = locks_[which];
    Hold& hold = thread.holds[which];
    const bool exclusive = hold == Hold::kExclusive;
    Event access = event(exclusive               ? EventKind::kRelease
                         : hold == Hold::kShared ? EventKind::kReleaseShared
                                                 : EventKind::kAcquire,
                         t);
    access.address = lock.name;
    if (hold != Hold::kNot) {
      hold = Hold::kNot;
      if (!exclusive) {
        drain(t);
        --lock.readers;
        issued(add(access));
        return true;
      }
      make_room(t);
      ++thread.stores;
      const uint32_t index = add(access);
      thread.buffer.push_back({index, which, 0, 0, true});
      issued(index);
      return true;
    }
    const bool reads = options_.readers > 0 && chance(options_.readers);
    if (lock.taken || (!reads && lock.readers > 0)) {
      return false;
    }
    drain(t);
    if (reads) {
      ++lock.readers;
      hold = Hold::kShared;
      access.set_kind(EventKind::kAcquireShared);
    } else {
      lock.taken = true;
      hold = Hold::kExclusive;
    }
    issued(add(access));
    return true;
  }

  bool hand_over(uint32_t t) {
    Event access = event(EventKind::kSend, t);
    access.address = channel_;
    const uint32_t which = below(static_cast<uint32_t>(semaphores_.size()));
    switch (below(4)) {
      case 0: {
        make_room(t);
        ++threads_[t].stores;
        const uint32_t index = add(access);
        threads_[t].buffer.push_back({index, access.address, 0, 0, false, true});
        sent_ = true;
        issued(index);
        return true;
      }
      case 1:
        if (!sent_) {
          return false;
        }
        // Who receives finds all that was sent there.
        for (uint32_t other = 0; other < options_.threads; ++other) {
          const auto send = [](const Store& store) { return store.send; };
          auto& buffer = threads_[other].buffer;
          while (other != t && std::any_of(buffer.begin(), buffer.end(), send)) {
            commit(other);
          }
        }
        access.set_kind(EventKind::kReceive);
        break;
      case 2:
        drain(t);
        access.set_kind(EventKind::kPost);
        access.address = semaphore_names_[which];
        ++semaphores_[which];
        break;
      default:
        if (semaphores_[which] == 0) {
          return false;
        }
        drain(t);
        access.set_kind(EventKind::kTake);
        access.address = semaphore_names_[which];
        --semaphores_[which];
        break;
    }
    issued(add(access));
    return true;
  }

  bool join() {
    const uint32_t t = 1 + below(options_.threads);
    if (t >= options_.threads || !threads_[t].started || threads_[t].joined ||
        threads_[t].depth > 0 || threads_[t].holds != std::array<Hold, kMostLocks>{}) {
      return false;
    }
    drain(t);
    threads_[t].joined = true;
    Event join = event(EventKind::kJoin, 0);
    join.address = t;
    issued(add(join));
    return true;
  }

  uint64_t fresh_value(uint32_t size) {
    if (options_.mixed_sizes) {
      return random_() >> (64 - 8 * size);
    }
    if (options_.unique_values) {
      return ++last_value_;
    }
    return options_.flags ? below(2) : 1 + below(3);
  }

  std::mt19937_64& random_;
  const RandomTraceOptions& options_;
  std::vector<Thread> threads_;
  std::array<uint8_t, 272> memory_{};
  std::array<Lock, kMostLocks> locks_;
  std::array<uint64_t, 2> semaphores_{};
  std::array<uint64_t, 2> semaphore_names_{};
  uint64_t channel_ = 0;
  bool sent_ = false;
  uint64_t label_ = 0;
  uint64_t last_value_ = 0;  // below 256: a byte holds it
  RandomTrace result_;
};

}  // namespace

RandomTrace random_trace(std::mt19937_64& random, const RandomTraceOptions& options) {
  return Simulation(random, options).run();
}

RandomTraceOptions random_options(std::mt19937_64& random) {
  RandomTraceOptions options;
  options.threads = 2 + static_cast<uint32_t>(random() % 3);
  options.locations = 1 + static_cast<uint32_t>(random() % 3);
  options.steps = 4 + static_cast<uint32_t>(random() % 5);
  options.units = static_cast<uint32_t>(random() % 3) * 30;
  options.locked = static_cast<uint32_t>(random() % 2) * 15;
  options.fences = static_cast<uint32_t>(random() % 3) * 10;
  options.locks = random() % 4 == 0 ? 30 : 0;
  options.store_buffer = random() % 4 == 0 ? 1 + static_cast<uint32_t>(random() % 2) : 0;
  options.nesting = random() % 2 == 0;
  options.intervals = random() % 3 == 0;
  options.mixed_sizes = random() % 4 == 0;
  options.threads_start = random() % 4 == 0;
  const uint64_t values = random();
  options.values = values % 2 == 0;
  options.flags = values / 2 % 3 == 0;
  options.waits = values / 6 % 4 == 0 ? 20 : 0;
  options.hand_overs = values / 24 % 4 == 0 ? 25 : 0;
  return options;
}

AnalysisOptions random_analysis(std::mt19937_64& random, const RandomTraceOptions& made) {
  AnalysisOptions options;
  options.values = false;
  options.relation.store_buffer = made.store_buffer;
  options.relation.semantics = random() % 3 == 0 ? Semantics::kPaper : Semantics::kExact;
  options.relation.order = random() % 10 == 0 ? TraceOrder::kThread : TraceOrder::kIssue;
  options.property = static_cast<Property>(random() % 3);
  return options;
}

}  // namespace tsomon::testing
