#include "tests/tso/naive_checker.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "tests/tso/plain_units.h"

namespace tsomon::testing {
namespace {

using Bytes = NaiveChecker::Bytes;

Bytes bytes_of(const Event& event) {
  Bytes bytes;
  if (!is(event, kinds::kAccesses)) {
    return bytes;
  }
  if (event.size == 0) {
    bytes.insert({1, event.address});
  }
  for (uint32_t i = 0; i < event.size; ++i) {
    bytes.insert({0, event.address + i});
  }
  return bytes;
}

bool share(const Bytes& a, const Bytes& b) {
  return std::any_of(a.begin(), a.end(), [&](const auto& byte) { return b.contains(byte); });
}

bool reader(const Event& event) {
  return event.kind() == EventKind::kRead || event.kind() == EventKind::kAcquireShared ||
         event.kind() == EventKind::kReleaseShared;
}

using Matrix = std::vector<uint64_t>;  // bit j of row i: i before j

bool has(const Matrix& matrix, size_t i, size_t j) { return ((matrix[i] >> j) & 1) != 0; }
void add(Matrix* matrix, size_t i, size_t j) { (*matrix)[i] |= uint64_t{1} << j; }

bool cyclic(Matrix reach) {
  const size_t n = reach.size();
  for (size_t k = 0; k < n; ++k) {
    for (size_t i = 0; i < n; ++i) {
      if (has(reach, i, k)) {
        reach[i] |= reach[k];
      }
    }
  }
  for (size_t i = 0; i < n; ++i) {
    if (has(reach, i, i)) {
      return true;
    }
  }
  return false;
}

}  // namespace

NaiveChecker::NaiveChecker(const Trace& trace, const RelationOptions& options)
    : trace_(trace), options_(options) {
  const auto n = static_cast<uint32_t>(trace.events.size());
  for (const Event& event : trace.events) {
    bytes_.push_back(bytes_of(event));
  }
  common_.assign(n, std::vector<bool>(n));
  for (uint32_t e = 0; e < n; ++e) {
    for (uint32_t f = 0; f < n; ++f) {
      common_[e][f] = share(bytes_[e], bytes_[f]);
    }
  }
  hands_over_.assign(n, std::vector<bool>(n));
  for (uint32_t e = 0; e < n; ++e) {
    for (uint32_t f = 0; f < n; ++f) {
      hands_over_[e][f] = find_hand_over(e, f);
    }
  }
  // Each answer is asked for once for every pair of events.
  for (uint32_t e = 0; e < n; ++e) {
    visible_.push_back(find_visible(e));
  }
  for (uint32_t e = 0; e < n; ++e) {
    source_.push_back(find_source(e));
    release_read_.push_back(find_release_read(e));
  }
}

bool NaiveChecker::drains(uint32_t e) const {
  const EventKind kind = trace_.events[e].kind();
  return kind == EventKind::kReadModifyWrite || kind == EventKind::kFence ||
         kind == EventKind::kAcquire || kind == EventKind::kAcquireShared ||
         kind == EventKind::kReleaseShared || kind == EventKind::kFork ||
         kind == EventKind::kPost || kind == EventKind::kTake ||
         (kind == EventKind::kRelease && options_.fenced_release);
}

bool NaiveChecker::store(uint32_t e) const {
  const EventKind kind = trace_.events[e].kind();
  return kind == EventKind::kWrite || kind == EventKind::kSend ||
         (kind == EventKind::kRelease && !options_.fenced_release);
}

bool NaiveChecker::program_order(uint32_t e, uint32_t f) const {
  return trace_.events[e].thread == trace_.events[f].thread && e < f;
}

bool NaiveChecker::hands_over(uint32_t e, uint32_t f) const { return hands_over_[e][f]; }

// A later receive comes after all sends. A take comes after the posts of another thread that had to
// be there: had the thread stopped before that one, the take would have found no count left.
bool NaiveChecker::find_hand_over(uint32_t e, uint32_t f) const {
  const Event& a = trace_.events[e];
  const Event& b = trace_.events[f];
  const auto earlier = [&](uint32_t i, uint32_t j) {
    const int64_t at_i = trace_.events[i].lo;
    const int64_t at_j = trace_.events[j].lo;
    return at_i < at_j || (at_i == at_j && i < j);
  };
  if (options_.order != TraceOrder::kIssue || !options_.lock_order || a.thread == b.thread ||
      a.address != b.address || !earlier(e, f)) {
    return false;
  }
  if (a.kind() == EventKind::kSend && b.kind() == EventKind::kReceive) {
    return true;
  }
  if (a.kind() != EventKind::kPost || b.kind() != EventKind::kTake || !trace_.complete) {
    return false;
  }
  // The latest count, which has to come before e, or be where all begins.
  std::optional<uint32_t> start;
  for (uint32_t g = 0; g < trace_.events.size(); ++g) {
    const EventKind kind = trace_.events[g].kind();
    if (trace_.events[g].address == a.address && earlier(g, f) &&
        (kind == EventKind::kCount || kind == EventKind::kDestroy) &&
        (!start || earlier(*start, g))) {
      start = g;
    }
  }
  if (!start || trace_.events[*start].kind() != EventKind::kCount || !earlier(*start, e)) {
    return false;
  }
  auto count = static_cast<int64_t>(*trace_.write_value(trace_.events[*start]));
  for (uint32_t g = 0; g < trace_.events.size(); ++g) {
    const Event& other = trace_.events[g];
    if (other.address != a.address || !earlier(*start, g) || (g != f && !earlier(g, f))) {
      continue;
    }
    if (other.kind() == EventKind::kPost && (other.thread != a.thread || g < e)) {
      ++count;
    } else if (other.kind() == EventKind::kTake) {
      --count;
    }
  }
  return count < 0;
}

bool NaiveChecker::of_lock(uint32_t e, uint32_t f) const {
  return common_[e][f] && trace_.events[e].has_write_value != 0 &&
         trace_.events[f].has_write_value != 0 && is(trace_.events[e], kinds::kLocks) &&
         is(trace_.events[f], kinds::kLocks);
}

bool NaiveChecker::before(uint32_t e, uint32_t f) const {
  const int64_t over =
      of_lock(e, f) ? trace_.events[e].lo : trace_.hi(trace_.events[e]);  // where that counts
  return options_.order == TraceOrder::kIssue && over < trace_.events[f].lo;
}

// The first later event of the thread by which store e has committed.
std::optional<uint32_t> NaiveChecker::find_visible(uint32_t e) const {
  uint32_t stores = 0;
  for (uint32_t f = e + 1; f < trace_.events.size(); ++f) {
    if (!program_order(e, f)) {
      continue;
    }
    if (drains(f) || (store(f) && ++stores == options_.store_buffer)) {
      return f;
    }
    if (trace_.events[f].kind() != EventKind::kRead) {
      continue;
    }
    // A load that cannot be forwarded whole from the newest matching store waits for it.
    for (uint32_t s = f; s-- > e;) {
      if (!(s == e || program_order(e, s)) || !store(s)) {
        continue;
      }
      if (common_[f][s]) {
        if (!std::includes(bytes_[s].begin(), bytes_[s].end(), bytes_[f].begin(),
                           bytes_[f].end())) {
          return f;
        }
        break;
      }
    }
  }
  return std::nullopt;
}

std::optional<uint32_t> NaiveChecker::find_source(uint32_t e) const {
  if (trace_.events[e].kind() != EventKind::kRead || options_.model == MemoryModel::kSc) {
    return std::nullopt;
  }
  for (uint32_t s = e; s-- > 0;) {
    if (program_order(s, e) && store(s) && common_[s][e]) {
      const auto by = visible(s);
      return by && *by <= e ? std::nullopt : std::optional(s);
    }
  }
  return std::nullopt;
}

// The latest of the releases that an acquisition certainly comes after.
std::optional<uint32_t> NaiveChecker::find_release_read(uint32_t e) const {
  const Event& acquire = trace_.events[e];
  std::optional<uint32_t> latest;
  if (options_.lock_order &&
      (acquire.kind() == EventKind::kAcquire || acquire.kind() == EventKind::kAcquireShared)) {
    for (uint32_t r = 0; r < trace_.events.size(); ++r) {
      const Event& release = trace_.events[r];
      if (release.kind() == EventKind::kRelease && common_[r][e] && before(r, e) &&
          (!latest ||
           (of_lock(r, *latest) ? release.lo >= trace_.events[*latest].lo
                                : trace_.hi(release) >= trace_.hi(trace_.events[*latest])))) {
        latest = r;
      }
    }
  }
  return latest;
}

bool NaiveChecker::directed(uint32_t e, uint32_t f) const {
  const Event& a = trace_.events[e];
  const Event& b = trace_.events[f];
  if (a.thread == b.thread) {
    if (e > f) {
      return false;
    }
    const bool load = b.kind() == EventKind::kRead || b.kind() == EventKind::kJoin ||
                      b.kind() == EventKind::kReceive;
    if (options_.model == MemoryModel::kSc || !load) {
      return true;
    }
    const std::optional<uint32_t> held = store(e) ? std::optional(e) : source(e);
    if (!held) {
      return true;
    }
    const auto by = visible(*held);
    return (by && *by <= f) || common_[e][f];
  }
  if (options_.thread_order && ((a.kind() == EventKind::kFork && a.address == b.thread) ||
                                (b.kind() == EventKind::kJoin && b.address == a.thread))) {
    return true;
  }
  if (hands_over(e, f)) {
    return true;
  }
  if (!common_[e][f] || (reader(a) && reader(b)) || !before(e, f)) {
    return false;
  }
  if (options_.model == MemoryModel::kSc || drains(e) || of_lock(e, f)) {
    return true;
  }
  if (a.kind() == EventKind::kRelease && release_read(f) == e) {
    return true;
  }
  const std::optional<uint32_t> held = store(e) ? std::optional(e) : source(e);
  if (!held) {
    return true;
  }
  // The event that makes a later store visible may be over sooner.
  for (uint32_t g = *held; g < trace_.events.size(); ++g) {
    if (g != *held && !program_order(*held, g)) {
      continue;
    }
    if (g != *held && drains(g) && before(g, f)) {
      return true;
    }
    if (const auto by = store(g) ? visible(g) : std::nullopt; by && before(*by, f)) {
      return true;
    }
  }
  for (uint32_t j = 0; j < trace_.events.size(); ++j) {
    if (options_.thread_order && trace_.events[j].kind() == EventKind::kJoin &&
        trace_.events[j].address == a.thread && before(j, f)) {
      return true;  // the thread has ended, drained
    }
    const auto release = release_read(j);
    if (release && trace_.events[*release].thread == a.thread &&
        trace_.events[j].thread != a.thread && (*release == e || program_order(e, *release)) &&
        before(j, f)) {
      return true;  // the lock was taken after all that came before its release
    }
    for (uint32_t s = 0; s < trace_.events.size(); ++s) {
      if (hands_over(s, j) && (s == e || program_order(e, s)) && before(j, f)) {
        return true;  // likewise with what was posted or sent
      }
    }
  }
  return false;
}

Order NaiveChecker::between(uint32_t e, uint32_t f) const {
  if (directed(e, f)) {
    return Order::kBefore;
  }
  if (directed(f, e)) {
    return Order::kAfter;
  }
  const Event& a = trace_.events[e];
  const Event& b = trace_.events[f];
  const auto of_thread = [](const Event& one, const Event& other) {
    return (one.kind() == EventKind::kFork || one.kind() == EventKind::kJoin) &&
           one.address == other.thread && one.thread != other.thread;
  };
  if (of_thread(a, b) || of_thread(b, a)) {
    return Order::kUndirected;
  }
  const bool conflict = a.thread != b.thread && common_[e][f] && !(reader(a) && reader(b));
  return conflict ? Order::kUndirected : Order::kNone;
}

std::vector<NaiveChecker::Section> NaiveChecker::sections() const {
  std::vector<Section> result;
  if (options_.semantics != Semantics::kExact || !options_.lock_order || !trace_.complete) {
    return result;
  }
  const auto is_lock = [&](uint32_t e, uint32_t f) {
    const Event& a = trace_.events[e];
    const Event& b = trace_.events[f];
    return is(a, kinds::kLocks) && is(b, kinds::kLocks) && a.address == b.address &&
           a.size == b.size;
  };
  // How often the thread holds the lock of e before e.
  const auto holds = [&](uint32_t e) {
    int times = 0;
    for (uint32_t f = 0; f < e; ++f) {
      if (program_order(f, e) && is_lock(f, e)) {
        times = std::max(0, times + (is(trace_.events[f], kinds::kAcquisitions) ? 1 : -1));
      }
    }
    return times;
  };
  const auto given_away = [&](uint32_t e) {
    for (uint32_t f = 0; f < trace_.events.size(); ++f) {
      if (is_lock(f, e) && !is(trace_.events[f], kinds::kAcquisitions) && holds(f) == 0) {
        return true;
      }
    }
    return false;
  };
  for (uint32_t e = 0; e < trace_.events.size(); ++e) {
    if (!is(trace_.events[e], kinds::kAcquisitions) || holds(e) > 0 || given_away(e)) {
      continue;
    }
    for (uint32_t f = e + 1; f < trace_.events.size(); ++f) {
      if (program_order(e, f) && trace_.events[f].kind() == EventKind::kWait) {
        break;
      }
      if (program_order(e, f) && is_lock(e, f) && !is(trace_.events[f], kinds::kAcquisitions) &&
          holds(f) == 1) {
        result.push_back({e, f});
        break;
      }
    }
  }
  return result;
}

bool NaiveChecker::exclude(const Section& a, const Section& b) const {
  const Event& one = trace_.events[a.acquisition];
  const Event& other = trace_.events[b.acquisition];
  return one.thread != other.thread && one.address == other.address && one.size == other.size &&
         !(reader(one) && reader(other));
}

std::optional<Verdict> NaiveChecker::verdict(Property property) const {
  std::vector<uint32_t> events;
  for (uint32_t e = 0; e < trace_.events.size(); ++e) {
    if (node(e)) {
      events.push_back(e);
    }
  }
  const size_t n = events.size();
  const std::vector<uint32_t> unit_of = plain_units(trace_);
  std::map<uint32_t, uint32_t> units;
  for (const uint32_t e : events) {
    units.emplace(unit_of[e], static_cast<uint32_t>(units.size()));
  }
  if (n > 64) {
    return std::nullopt;
  }
  Matrix fixed(n, 0);
  Matrix program(n, 0);
  std::vector<std::pair<size_t, size_t>> open;
  std::map<std::pair<size_t, size_t>, size_t> open_index;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      if (program_order(events[i], events[j])) {
        add(&program, i, j);
      }
      if (i != j && directed(events[i], events[j])) {
        add(&fixed, i, j);
      }
      if (i < j && between(events[i], events[j]) == Order::kUndirected) {
        open_index[{i, j}] = open_index[{j, i}] = open.size();
        open.emplace_back(i, j);
      }
    }
  }
  if (open.size() > kMaxUndirected || cyclic(fixed)) {
    return std::nullopt;
  }
  struct ForwardingConstraint {
    size_t load, source, store;
  };
  std::vector<ForwardingConstraint> constraints;
  for (const auto& [a, b] : open) {
    for (const auto& [load, store] : {std::pair{a, b}, std::pair{b, a}}) {
      const auto from = source(events[load]);
      if (from && before(events[load], events[store]) && options_.semantics == Semantics::kExact) {
        const auto at = std::find(events.begin(), events.end(), *from) - events.begin();
        constraints.push_back({load, static_cast<size_t>(at), store});
      }
    }
  }
  // Of two sections one is over before the other begins: one of two edges.
  std::vector<std::array<size_t, 4>> exclusions;
  const auto place = [&](uint32_t e) {
    return static_cast<size_t>(std::find(events.begin(), events.end(), e) - events.begin());
  };
  const std::vector<Section> held = sections();
  for (size_t i = 0; i < held.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (exclude(held[i], held[j])) {
        exclusions.push_back({place(held[i].release), place(held[j].acquisition),
                              place(held[j].release), place(held[i].acquisition)});
      }
    }
  }
  // The node of the conflict graph of every event.
  std::vector<uint32_t> group(n);
  for (size_t i = 0; i < n; ++i) {
    group[i] =
        property == Property::kRobustness ? static_cast<uint32_t>(i) : units.at(unit_of[events[i]]);
  }
  const size_t groups = property == Property::kRobustness ? n : units.size();
  bool bad = false;
  bool good = false;
  for (uint32_t choice = 0; choice < (1U << open.size()); ++choice) {
    Matrix edges = fixed;
    for (size_t i = 0; i < open.size(); ++i) {
      const auto [a, b] = open[i];
      ((choice >> i) & 1) != 0 ? add(&edges, a, b) : add(&edges, b, a);
    }
    const bool constrained =
        std::all_of(constraints.begin(), constraints.end(), [&](const ForwardingConstraint& one) {
          return !has(edges, one.source, one.store) || has(edges, one.load, one.store);
        });
    const bool excluded =
        std::all_of(exclusions.begin(), exclusions.end(), [&](const std::array<size_t, 4>& one) {
          return has(edges, one[0], one[1]) || has(edges, one[2], one[3]);
        });
    if (!constrained || !excluded || cyclic(edges)) {
      continue;
    }
    Matrix conflict_graph(groups, 0);
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        if (group[i] != group[j] &&
            (has(edges, i, j) || (property == Property::kRobustness && has(program, i, j)))) {
          add(&conflict_graph, group[i], group[j]);
        }
      }
    }
    (cyclic(conflict_graph) ? bad : good) = true;
  }
  return !bad ? Verdict::kClean : good ? Verdict::kPossible : Verdict::kDefinite;
}

}  // namespace tsomon::testing
