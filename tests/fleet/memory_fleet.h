// A fleet in memory, which does what fleet.h says, and no more: the twin that servers are compared with, and a place for workers to
// be tried at.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "monitor/fleet/fleet.h"

namespace tsomon::fleet {

class MemoryFleet final : public Fleet {
 public:
  struct Row {
    Work work;
    Standing standing;
    uint64_t tries = 0;
    uint64_t lease = 0;
    bool later = false;  // than what else waits
  };
  std::map<std::string, Row> rows;
  std::map<std::string, Verdict> verdicts;
  std::map<std::string, std::string> chunks;
  std::vector<Sighting> seen;
  std::map<std::string, Canary> hosts;  // by name
  std::string last_reason;
  int away = 0;  // so many times it cannot be put to

  Result<State> put(const Work& work, bool again) override {
    if (away > 0) {
      --away;
      return fail(ErrorKind::kEnvironment, "the server is away");
    }
    const State before = state_of(work.id);
    const bool parked = before == State::kParked;
    if (before == State::kUnknown || (parked && (again || rows[work.id].standing.needs_content))) {
      rows[work.id] = {work, {State::kWaiting, {}, false}, 0, 0, false};
    }
    return before;
  }
  Result<std::optional<Taken>> take(const std::string& /*worker*/,
                                    std::chrono::milliseconds /*lease*/) override {
    for (const bool later : {false, true}) {
      for (auto& [id, row] : rows) {
        if (row.standing.state == State::kWaiting && row.later == later) {
          row.standing.state = State::kRunning;
          return Taken{row.work, ++row.tries, std::to_string(++row.lease)};
        }
      }
    }
    return std::nullopt;
  }
  Result<bool> extend(const Taken& taken, std::chrono::milliseconds /*lease*/) override {
    return rows.count(taken.work.id) != 0;
  }
  Result<bool> done(const Taken& taken, const Verdict& verdict,
                    const std::vector<Sighting>& sightings) override {
    rows.erase(taken.work.id);
    const bool is_first = verdicts.emplace(taken.work.id, verdict).second;
    if (is_first) {
      seen.insert(seen.end(), sightings.begin(), sightings.end());
    }
    return is_first;
  }
  Result<void> park(const Taken& taken, const std::string& /*worker*/, Parking how,
                    const std::string& reason) override {
    Row& row = rows[taken.work.id];
    const bool no_try = how == Parking::kBack || how == Parking::kLater;
    const bool waits = how == Parking::kAgain || no_try;
    row.later = how == Parking::kLater;
    row.standing = {waits ? State::kWaiting : State::kParked, reason,
                    how == Parking::kNeedsContent};
    row.tries -= no_try ? 1 : 0;
    last_reason = reason;
    return {};
  }
  Result<Standing> standing(const std::string& /*tenant*/, const std::string& id) override {
    return state_of(id) == State::kDone ? Standing{State::kDone, {}, false}
           : rows.count(id) != 0        ? rows[id].standing
                                        : Standing{};
  }
  Result<std::optional<Verdict>> verdict(const std::string& id) override {
    return verdicts.count(id) == 0 ? std::optional<Verdict>() : verdicts[id];
  }
  Result<std::vector<std::string>> missing(const std::vector<std::string>& names) override {
    std::vector<std::string> missing;
    for (const std::string& name : names) {
      if (chunks.count(name) == 0) {
        missing.push_back(name);
      }
    }
    return missing;
  }
  Result<void> put_chunk(const std::string& digest, std::string_view bytes) override {
    chunks[digest] = bytes;
    return {};
  }
  Result<std::optional<std::string>> chunk(const std::string& digest) override {
    return chunks.count(digest) == 0 ? std::optional<std::string>() : chunks[digest];
  }
  Result<void> forget_chunk(const std::string& digest) override {
    chunks.erase(digest);
    return {};
  }
  Result<void> put_canary(const Canary& canary) override {
    hosts[name_of(canary)] = canary;
    return {};
  }
  Result<void> canaries(const std::function<void(Canary&&)>& each) override {
    for (const auto& [name, canary] : hosts) {
      each(Canary(canary));
    }
    return {};
  }
  Result<FleetStatus> status() override {
    FleetStatus status;
    for (const auto& [id, row] : rows) {
      status.waiting += row.standing.state == State::kWaiting ? 1 : 0;
      status.running += row.standing.state == State::kRunning ? 1 : 0;
      status.parked += row.standing.state == State::kParked ? 1 : 0;
    }
    status.done = verdicts.size();
    return status;
  }
  Result<void> sightings(const std::string& fingerprint,
                         const std::function<void(Sighting&&)>& each) override {
    for (const Sighting& one : seen) {
      if (one.found.fingerprint.starts_with(fingerprint)) {
        each(Sighting(one));
      }
    }
    return {};
  }

  // All of it is old.
  Result<Pruned> prune(std::chrono::microseconds /*chunks*/,
                       std::chrono::microseconds /*results*/) override {
    const Pruned pruned{chunks.size(), verdicts.size(), seen.size(), 0, hosts.size()};
    chunks.clear();
    verdicts.clear();
    seen.clear();
    hosts.clear();
    return pruned;
  }

 private:
  State state_of(const std::string& id) const {
    const auto row = rows.find(id);
    return verdicts.count(id) != 0 ? State::kDone
           : row != rows.end()     ? row->second.standing.state
                                   : State::kUnknown;
  }
};

}  // namespace tsomon::fleet
