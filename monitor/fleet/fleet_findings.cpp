#include "monitor/fleet/fleet_findings.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace tsomon::fleet {
namespace {

using service::KeptFinding;

constexpr size_t kMostFiles = 8;

// Sightings come in any order, and the answer does not depend on it.
class Gathered {
 public:
  void add(Sighting&& one) {
    const auto rank = std::tuple(!one.found.definite, one.time, one.work);
    const bool better = count_ == 0 || rank < best_;
    if (better) {
      best_ = rank;
      finding_.fingerprint = one.found.fingerprint;
      finding_.property = one.found.property;
      finding_.definite = one.found.definite;
      finding_.predicted = one.found.predicted;
      finding_.summary = std::move(one.found.summary);
      finding_.json = std::move(one.found.json);
    }
    finding_.count += one.found.count;
    finding_.first_seen = count_ == 0 ? one.time : std::min(finding_.first_seen, one.time);
    finding_.last_seen = std::max(finding_.last_seen, one.time);
    ++count_;
    names_.emplace(one.time, std::move(one.name));
    if (names_.size() > kMostFiles) {
      names_.erase(names_.begin());
    }
    const bool is_first = places_.count({one.tenant, one.host, one.build}) == 0;
    KeptFinding::Sighting& place = places_[{one.tenant, one.host, one.build}];
    place.place = {one.tenant, one.host, one.build};
    place.count += one.found.count;
    place.first_seen = is_first ? one.time : std::min(place.first_seen, one.time);
    place.last_seen = std::max(place.last_seen, one.time);
  }

  KeptFinding take() {
    finding_.slices = count_;
    for (auto& [time, name] : names_) {
      finding_.files.push_back(std::move(name));
    }
    for (auto& [key, sighting] : places_) {
      finding_.sightings.push_back(std::move(sighting));
    }
    std::stable_sort(finding_.sightings.begin(), finding_.sightings.end(),
                     [](const auto& a, const auto& b) { return a.last_seen > b.last_seen; });
    return std::move(finding_);
  }

 private:
  KeptFinding finding_;
  uint64_t count_ = 0;
  std::tuple<bool, int64_t, std::string> best_;
  std::multimap<int64_t, std::string> names_;
  std::map<std::tuple<std::string, std::string, std::string>, KeptFinding::Sighting> places_;
};

}  // namespace

Result<std::vector<KeptFinding>> fleet_findings(Fleet& fleet, const std::string& id,
                                                const std::string& tenant) {
  std::map<std::pair<std::string, std::string>, Gathered> gathered;
  const auto done = fleet.sightings(id, [&](Sighting&& one) {
    if (tenant.empty() || one.tenant == tenant) {
      gathered[{one.found.fingerprint, one.found.property}].add(std::move(one));
    }
  });
  if (!done) {
    return error_of(done);
  }
  std::vector<KeptFinding> findings;
  for (auto& [key, each] : gathered) {
    findings.push_back(each.take());
  }
  std::stable_sort(findings.begin(), findings.end(),
                   [](const auto& a, const auto& b) { return a.last_seen > b.last_seen; });
  return findings;
}

}  // namespace tsomon::fleet
