#include "offline/consistency/value_problem.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "tso/model/location_table.h"
#include "tso/support/flat_map.h"

namespace tsomon {
namespace {

class Builder {
 public:
  Builder(const Trace& trace, bool fenced_release)
      : trace_(trace), fenced_release_(fenced_release), table_(trace) {
    for (const InitialValue& value : trace.symbols.initial_values) {
      declared_[{value.location.address, value.location.size}] = value.value;  // the last counts
    }
  }

  ValueProblem build(const std::vector<InitialValue>& final_values) {
    find_mixed_ranges();
    for (uint32_t e = 0; e < trace_.events.size(); ++e) {
      add_event(e);
    }
    add_thread_edges();
    add_final_values(final_values);
    index_stores();
    if (dropped_ranges_) {
      weaken("values of locations that are accessed with different ranges were ignored");
    }
    if (reader_locks_) {
      weaken("the exclusion that reader locks give was ignored");
    }
    return std::move(problem_);
  }

 private:
  static constexpr uint32_t kNone = Operation::kNone;

  void weaken(const char* why) {
    problem_.weakened = true;
    problem_.notes.emplace_back(why);
  }

  void find_mixed_ranges() {
    std::vector<bool> written(table_.size(), false);
    for (uint32_t e = 0; e < trace_.events.size(); ++e) {
      const Event& event = trace_.events[e];
      if (is(event, kind_mask(EventKind::kWrite) | kind_mask(EventKind::kReadModifyWrite))) {
        written[table_.of_event(e)] = true;
      }
    }
    mixed_.assign(table_.size(), false);
    for (LocationId id = 0; id < table_.size(); ++id) {
      const auto& others = table_.overlapping(id);
      mixed_[id] = std::any_of(others.begin(), others.end(), [&](LocationId other) {
        return other != id && (written[other] || written[id]);
      });
    }
  }

  // A lock and a variable of one name are two locations.
  uint32_t location(const LocationKey& key, bool lock) {
    const auto [at, is_new] =
        location_of_.try_emplace({lock, key.size, key.address}, problem_.locations.size());
    if (is_new) {
      problem_.locations.emplace_back();
      problem_.locations.back().initial = lock ? std::optional<uint64_t>(0) : initial(key);
    }
    return static_cast<uint32_t>(at->second);
  }

  std::optional<uint64_t> initial(const LocationKey& key) const {
    if (const auto at = declared_.find({key.address, key.size}); at != declared_.end()) {
      return at->second;
    }
    return trace_.symbols.initial_zero ? std::optional<uint64_t>(0) : std::nullopt;
  }

  Operation& add(ThreadId thread, Operation::Kind kind, uint32_t event) {
    if (thread >= problem_.threads.size()) {
      problem_.threads.resize(thread + 1);
    }
    auto& members = problem_.threads[thread];
    Operation operation;
    operation.kind = kind;
    operation.thread = thread;
    operation.position = static_cast<uint32_t>(members.size());
    operation.event = event;
    members.push_back(static_cast<uint32_t>(problem_.operations.size()));
    problem_.operations.push_back(operation);
    return problem_.operations.back();
  }

  void add_access(uint32_t e, Operation::Kind kind) {
    const Event& event = trace_.events[e];
    const LocationId id = table_.of_event(e);
    if (mixed_[id]) {
      dropped_ranges_ = dropped_ranges_ || event.has_read_value != 0;
      add(event.thread, kind, e);
      return;
    }
    const uint32_t where = location(table_.key(id), false);
    Operation& operation = add(event.thread, kind, e);
    operation.location = where;
    operation.read = trace_.read_value(event);
    operation.written = trace_.write_value(event);
  }

  void add_lock(uint32_t e) {
    const Event& event = trace_.events[e];
    const LocationId id = table_.of_event(e);
    uint32_t& depth = held_[{event.thread, id}];
    const bool acquired = event.kind() == EventKind::kAcquire;
    const bool inner = acquired ? depth > 0 : depth > 1;
    depth = acquired ? depth + 1 : std::max(depth, 1U) - 1;
    if (inner) {
      if (acquired || fenced_release_) {
        add(event.thread, Operation::Kind::kFence, e);
      }
      return;
    }
    const uint32_t where = location(table_.key(id), true);
    const bool locked = acquired || fenced_release_;
    Operation& operation =
        add(event.thread, locked ? Operation::Kind::kLocked : Operation::Kind::kStore, e);
    operation.location = where;
    operation.written = acquired ? 1 : 0;
    if (acquired) {
      operation.read = 0;
    }
  }

  void add_event(uint32_t e) {
    const Event& event = trace_.events[e];
    switch (event.kind()) {
      case EventKind::kRead:
        return add_access(e, Operation::Kind::kLoad);
      case EventKind::kWrite:
        return add_access(e, Operation::Kind::kStore);
      case EventKind::kReadModifyWrite:
        return add_access(e, Operation::Kind::kLocked);
      case EventKind::kAcquire:
      case EventKind::kRelease:
        return add_lock(e);
      case EventKind::kAcquireShared:
      case EventKind::kReleaseShared:
        reader_locks_ = true;
        add(event.thread, Operation::Kind::kFence, e);
        return;
      case EventKind::kFence:
        add(event.thread, Operation::Kind::kFence, e);
        return;
      case EventKind::kFork:
        forks_.push_back(static_cast<uint32_t>(problem_.operations.size()));
        add(event.thread, Operation::Kind::kFence, e);
        return;
      case EventKind::kJoin:
        joins_.push_back(static_cast<uint32_t>(problem_.operations.size()));
        add(event.thread, Operation::Kind::kLoad, e);
        return;
      default:
        return;
    }
  }

  // The first, or last, operation of a thread that orders like a load, and like a store.
  template <typename Function>
  void for_each_end(uint64_t thread, bool first, const Function& function) const {
    if (thread >= problem_.threads.size()) {
      return;
    }
    const auto& members = problem_.threads[thread];
    for (const bool load : {true, false}) {
      const auto matches = [&](uint32_t operation) {
        const Operation& other = problem_.operations[operation];
        return load ? other.loads() : other.stores();
      };
      if (first) {
        if (const auto at = std::find_if(members.begin(), members.end(), matches);
            at != members.end()) {
          function(*at);
        }
      } else if (const auto at = std::find_if(members.rbegin(), members.rend(), matches);
                 at != members.rend()) {
        function(*at);
      }
    }
  }

  void add_thread_edges() {
    for (const uint32_t fork : forks_) {
      const uint64_t child = trace_.events[problem_.operations[fork].event].address;
      for_each_end(child, true, [&](uint32_t first) { problem_.order.push_back({fork, first}); });
    }
    for (const uint32_t join : joins_) {
      const uint64_t child = trace_.events[problem_.operations[join].event].address;
      for_each_end(child, false, [&](uint32_t last) { problem_.order.push_back({last, join}); });
    }
  }

  void add_final_values(const std::vector<InitialValue>& values) {
    if (values.empty()) {
      return;
    }
    const auto thread = static_cast<ThreadId>(problem_.threads.size());
    for (const InitialValue& value : values) {
      const uint32_t where = location(value.location, false);
      Operation& load = add(thread, Operation::Kind::kLoad, kNone);
      load.location = where;
      load.read = value.value;
    }
    const uint32_t first = problem_.threads[thread].front();
    for (ThreadId other = 0; other < thread; ++other) {
      for_each_end(other, false, [&](uint32_t last) { problem_.order.push_back({last, first}); });
    }
  }

  void index_stores() {
    problem_.own_store.assign(problem_.operations.size(), kNone);
    FlatMap<uint32_t, uint32_t> newest;  // clearing it costs what is in it
    for (uint32_t thread = 0; thread < problem_.threads.size(); ++thread) {
      newest.clear();
      for (const uint32_t i : problem_.threads[thread]) {
        const Operation& operation = problem_.operations[i];
        if (operation.location == kNone) {
          continue;
        }
        if (const uint32_t* const store = newest.find(operation.location)) {
          problem_.own_store[i] = *store;
        }
        if (operation.is_write()) {
          newest[operation.location] = i;
          auto& writers = problem_.locations[operation.location].writers;
          if (writers.empty() || writers.back().thread != thread) {
            writers.push_back({thread, {}});
          }
          writers.back().stores.push_back(i);
        }
      }
    }
  }

  const Trace& trace_;
  bool fenced_release_;
  LocationTable table_;
  ValueProblem problem_;
  std::vector<bool> mixed_;
  bool dropped_ranges_ = false;
  bool reader_locks_ = false;
  std::map<std::tuple<bool, uint32_t, uint64_t>, size_t> location_of_;
  std::map<std::pair<uint64_t, uint32_t>, uint64_t> declared_;
  std::map<std::pair<ThreadId, LocationId>, uint32_t> held_;
  std::vector<uint32_t> forks_;
  std::vector<uint32_t> joins_;
};

}  // namespace

ValueProblem make_value_problem(const Trace& trace, bool fenced_release,
                                const std::vector<InitialValue>& final_values) {
  return Builder(trace, fenced_release).build(final_values);
}

}  // namespace tsomon
