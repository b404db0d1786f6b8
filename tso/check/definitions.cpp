#include "tso/check/definitions.h"

#include <numeric>

namespace tsomon {

ThreadDefinitions::ThreadDefinitions(const Trace& trace, const RelationOptions& options,
                                     std::vector<uint32_t> events)
    : trace_(trace),
      options_(options),
      events_(std::move(events)),
      all_(events_.size() == trace.events.size()) {
  std::sort(events_.begin(), events_.end());
  position_.reserve(events_.size());
  for (const uint32_t e : events_) {
    std::vector<uint32_t>& thread = threads_[trace.events[e].thread];
    position_.push_back(static_cast<uint32_t>(thread.size()));
    thread.push_back(e);
  }
}

bool ThreadDefinitions::drains(uint32_t e) const {
  switch (event(e).kind()) {
    case EventKind::kReadModifyWrite:
    case EventKind::kFence:
    case EventKind::kAcquire:
    case EventKind::kAcquireShared:
    case EventKind::kReleaseShared:
    case EventKind::kFork:
    case EventKind::kPost:
    case EventKind::kTake:
      return true;
    case EventKind::kRelease:
      return options_.fenced_release;
    default:
      return false;
  }
}

bool ThreadDefinitions::store(uint32_t e) const {
  const EventKind kind = event(e).kind();
  return kind == EventKind::kWrite || kind == EventKind::kSend ||
         (kind == EventKind::kRelease && !options_.fenced_release);
}

bool ThreadDefinitions::same_bytes(uint32_t e, uint32_t f) const {
  const Event& a = event(e);
  const Event& b = event(f);
  if (!is(a, kinds::kAccesses) || !is(b, kinds::kAccesses)) {
    return false;
  }
  if (a.size == 0 || b.size == 0) {
    return a.address == b.address && a.size == b.size;
  }
  const auto first_after = [](const Event& x) {
    return static_cast<unsigned __int128>(x.address) + x.size;
  };
  return a.address < first_after(b) && b.address < first_after(a);
}

bool ThreadDefinitions::inside(uint32_t load, uint32_t store) const {
  const Event& a = event(load);
  const Event& b = event(store);
  if (a.size == 0 || b.size == 0) {
    return a.address == b.address && a.size == b.size;
  }
  return a.address >= b.address && static_cast<unsigned __int128>(a.address) + a.size <=
                                       static_cast<unsigned __int128>(b.address) + b.size;
}

// The newest store before `load` that matches and that no fence separates from it.
uint32_t ThreadDefinitions::newest_match(uint32_t load) const {
  const auto known = newest_match_.find(load);
  return known != newest_match_.end()
             ? known->second
             : newest_match_.emplace(load, find_newest_match(load)).first->second;
}

uint32_t ThreadDefinitions::visible(uint32_t s) const {
  const auto known = visible_.find(s);
  return known != visible_.end() ? known->second
                                 : visible_.emplace(s, find_visible(s)).first->second;
}

uint32_t ThreadDefinitions::source(uint32_t load) const {
  const uint32_t match = newest_match(load);
  return match != kNone && !visible_by(match, load) ? match : kNone;
}

uint32_t ThreadDefinitions::find_newest_match(uint32_t load) const {
  const auto& thread = threads_.at(event(load).thread);
  for (uint32_t at = position(load); at-- > 0;) {
    spend(1);
    if (drains(thread[at])) {
      return kNone;
    }
    if (store(thread[at]) && same_bytes(thread[at], load)) {
      return thread[at];
    }
  }
  return kNone;
}

uint32_t ThreadDefinitions::find_visible(uint32_t s) const {
  const auto& thread = threads_.at(event(s).thread);
  uint32_t later_stores = 0;
  // The stores from s on, of each range the newest.
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> newest;
  uint64_t longest = 0;
  const auto newest_of = [&](uint32_t load) {
    const Event& a = event(load);
    uint32_t found = kNone;
    const uint64_t first = a.address - std::min<uint64_t>(a.address, longest);
    for (auto range = newest.lower_bound({first, 0}); range != newest.end(); ++range) {
      spend(1);
      if (range->first.first > a.address && range->first.first - a.address >= a.size) {
        break;
      }
      if (same_bytes(range->second, load) &&
          (found == kNone || position(found) < position(range->second))) {
        found = range->second;
      }
    }
    return found;
  };
  for (uint32_t at = position(s); at < thread.size(); ++at) {
    spend(1);
    const uint32_t e = thread[at];
    if (drains(e)) {
      return e;
    }
    if (store(e)) {
      if (e != s && ++later_stores == options_.store_buffer) {
        return e;
      }
      newest[{event(e).address, event(e).size}] = e;
      longest = std::max<uint64_t>(longest, event(e).size);
    }
    if (load(e)) {
      const uint32_t match = newest_of(e);
      if (match != kNone && !inside(e, match)) {
        return e;
      }
    }
  }
  return kNone;
}

bool ThreadDefinitions::directed_in_thread(uint32_t e, uint32_t f) const {
  if (position(e) >= position(f)) {
    return false;
  }
  if (options_.model == MemoryModel::kSc || !load_like(f)) {
    return true;
  }
  const uint32_t held_by = store(e) ? e : load(e) ? source(e) : kNone;
  return held_by == kNone || visible_by(held_by, f) || (load(f) && same_bytes(e, f));
}

namespace {

std::vector<uint32_t> all_of(const Trace& trace) {
  std::vector<uint32_t> events(trace.events.size());
  std::iota(events.begin(), events.end(), 0U);
  return events;
}

}  // namespace

TraceDefinitions::TraceDefinitions(const Trace& trace, const RelationOptions& options)
    : ThreadDefinitions(trace, options, all_of(trace)) {
  for (uint32_t e = 0; e < trace.events.size(); ++e) {
    spend(4);
    note_lock(e);
    if (is(event(e), kinds::kHandOvers | SemaphoreCounts::kKinds)) {
      handed_[event(e).address].push_back(e);
    }
    if (event(e).kind() == EventKind::kRelease) {
      releases_[{event(e).address, event(e).size}].push_back(e);
    } else if (is(event(e), kinds::kAccesses) && !reader(e)) {
      writes_[{event(e).address, event(e).size}].push_back(e);
    }
  }
}

bool TraceDefinitions::directed(uint32_t e, uint32_t f) const {
  if (same_thread(e, f)) {
    return directed_in_thread(e, f);
  }
  if (of_thread(e, f)) {
    return options_.thread_order;
  }
  if (handed_over(e, f)) {
    return true;
  }
  if (!conflict(e, f) || !earlier(e, f)) {
    return false;
  }
  if (options_.model == MemoryModel::kSc || drains(e) || of_lock(e, f)) {
    return true;
  }
  const uint32_t held_by = store(e) ? e : source(e);
  if (held_by == kNone) {
    return true;  // a load from memory cannot see a store that is not issued yet
  }
  const uint32_t by = visible(held_by);
  return (by != kNone && earlier(by, f)) || reads_release(f, e);
}

bool TraceDefinitions::first_of_channel(uint32_t e, uint32_t f) const {
  return std::pair(trace_.lo(event(e)), e) < std::pair(trace_.lo(event(f)), f);
}

// A send comes before every receive that follows. A post does where the count would be below zero
// at the take had the thread not come to that post.
bool TraceDefinitions::handed_over(uint32_t e, uint32_t f) const {
  const EventKind gives = event(e).kind();
  const EventKind takes = event(f).kind();
  if (options_.order != TraceOrder::kIssue || !options_.lock_order || same_thread(e, f) ||
      event(e).address != event(f).address || !has_place(trace_, event(e)) ||
      !has_place(trace_, event(f)) || !first_of_channel(e, f)) {
    return false;
  }
  if (gives == EventKind::kSend && takes == EventKind::kReceive) {
    return true;
  }
  if (gives != EventKind::kPost || takes != EventKind::kTake || !trace_.complete) {
    return false;
  }
  std::vector<uint32_t> until;  // f, of the semaphore alone
  for (const uint32_t g : handed_.at(event(e).address)) {
    if (is(event(g), SemaphoreCounts::kKinds) && (g == f || first_of_channel(g, f))) {
      until.push_back(g);
    }
  }
  std::sort(until.begin(), until.end(),
            [&](uint32_t a, uint32_t b) { return first_of_channel(a, b); });
  spend(8 * until.size());
  std::optional<int64_t> count;
  int64_t missing = 0;  // posts from e on, had its thread not come to it
  for (const uint32_t g : until) {
    const EventKind kind = event(g).kind();
    if (!has_place(trace_, event(g))) {
      count.reset();
    } else if (kind == EventKind::kPost) {
      count = count ? std::optional(*count + 1) : count;
      missing += same_thread(g, e) && g >= e ? 1 : 0;
    } else if (kind == EventKind::kTake) {
      const auto left = trace_.read_value(event(g));
      count = left                  ? std::optional(static_cast<int64_t>(*left))
              : count && *count > 0 ? std::optional(*count - 1)
                                    : std::nullopt;
    } else {
      const auto written = trace_.write_value(event(g));
      count = kind == EventKind::kCount && written ? std::optional(static_cast<int64_t>(*written))
                                                   : std::nullopt;
      missing = 0;  // what was posted before is of another one
    }
  }
  return count && missing > *count;
}

void TraceDefinitions::note_lock(uint32_t e) {
  std::map<Lock, std::vector<uint32_t>>& held = held_[event(e).thread];
  switch (event(e).kind()) {
    case EventKind::kAcquire:
    case EventKind::kAcquireShared:
      held[lock_of(e)].push_back(e);
      break;
    case EventKind::kRelease:
    case EventKind::kReleaseShared:
      if (auto& acquired = held[lock_of(e)]; acquired.empty()) {
        given_away_.insert(lock_of(e));
      } else {
        if (acquired.size() == 1 && acquired.front() != kNone) {
          sections_.emplace(acquired.front(), e);
        }
        acquired.pop_back();
      }
      break;
    case EventKind::kWait:
      for (auto& [lock, acquired] : held) {
        std::fill(acquired.begin(), acquired.end(), kNone);
      }
      break;
    default:
      break;
  }
}

// acq reads the latest earlier rel of its lock.
bool TraceDefinitions::reads_release(uint32_t acquire, uint32_t release) const {
  const EventKind kind = event(acquire).kind();
  if (!options_.lock_order || (kind != EventKind::kAcquire && kind != EventKind::kAcquireShared) ||
      event(release).kind() != EventKind::kRelease) {
    return false;
  }
  uint32_t latest = kNone;
  all_on_bytes(releases_, acquire, [&](uint32_t e) {
    const auto over = [&](uint32_t release) {
      return is_lock_by_start(event(release)) ? trace_.lo(event(release))
                                              : trace_.hi(event(release));
    };
    if (over(e) < trace_.lo(event(acquire)) && (latest == kNone || over(e) >= over(latest))) {
      latest = e;
    }
    return true;
  });
  return latest == release;
}

}  // namespace tsomon
