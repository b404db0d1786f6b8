#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "monitor/findings/reported_cycle.h"
#include "tso/support/text_hash.h"

namespace tsomon {
namespace {

// No text of a place has these bytes, so that distinct places stay distinct.
constexpr char kField = '\x1f';
constexpr char kPlace = '\x1e';

std::string place_key(const ReportedAccess& access, const std::string& label) {
  const SourcePlace& place = access.place;
  if (!place.build_id.empty() || place.line != 0) {
    return place.line != 0 ? fmt::format("{}{}{}{}{}", place.build_id, kField, place.function,
                                         kField, place.line)
                           : fmt::format("{}{}{}", place.build_id, kField, place.text);
  }
  // An address differs from run to run.
  const std::string& operand = access.address ? std::string() : access.operand;
  return fmt::format("{}{}{}{}{}{}{}", label, kField, place.text, kField,
                     static_cast<int>(access.kind), kField, operand);
}

// Where the least rotation of a sequence begins, in linear time: of two candidates the one that
// loses takes with it all those that lie inside what they have in common.
size_t least_rotation(const std::vector<size_t>& sequence) {
  const size_t size = sequence.size();
  size_t best = 0;
  size_t other = 1;
  size_t common = 0;
  while (other < size && best < size && common < size) {
    const size_t a = sequence[(best + common) % size];
    const size_t b = sequence[(other + common) % size];
    if (a == b) {
      ++common;
      continue;
    }
    (a > b ? best : other) += common + 1;
    other += best == other ? 1 : 0;
    common = 0;
  }
  return std::min(best, other);
}

}  // namespace

std::string fingerprint(const ReportedCycle& cycle) {
  const size_t size = cycle.steps.size();
  std::vector<std::string> keys;
  std::map<std::string, size_t> rank;
  for (size_t i = 0; i < size; ++i) {
    const ReportedStep& step = cycle.steps[i];
    const ReportedStep& before = cycle.steps[(i + size - 1) % size];
    keys.push_back(place_key(cycle.accesses[before.to], step.label) + kPlace +
                   place_key(cycle.accesses[step.from], step.label));
    rank.emplace(keys.back(), 0);
  }
  size_t next = 0;
  for (auto& [key, number] : rank) {
    number = next++;
  }
  std::vector<size_t> ranks;
  ranks.reserve(size);
  for (const std::string& key : keys) {
    ranks.push_back(rank[key]);
  }
  std::string all;
  const size_t begin = size == 0 ? 0 : least_rotation(ranks);
  for (size_t i = 0; i < size; ++i) {
    all += keys[(begin + i) % size] + "\n";
  }
  return hash_name(all);
}

std::string fingerprint(const std::vector<ReportedAccess>& accesses) {
  ReportedCycle cycle;
  cycle.of_events = true;
  cycle.accesses = accesses;
  for (size_t at = 0; at < accesses.size(); ++at) {
    ReportedStep step;
    step.from = at;
    step.to = (at + 1) % accesses.size();
    cycle.steps.push_back(step);
  }
  return fingerprint(cycle);
}

}  // namespace tsomon
