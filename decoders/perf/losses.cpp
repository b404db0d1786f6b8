#include "decoders/perf/losses.h"

#include <algorithm>

namespace tsomon::perf {

void Losses::see(const Record& record, const AttributeTable& attributes,
                 const std::vector<bool>& matters) {
  const uint64_t now = record.has_time() ? record.sample_id.time : UINT64_MAX;
  switch (record.type) {
    case RecordType::kIdIndex:
      if (const auto entries = parse_id_index(record)) {
        const bool any = std::any_of(entries->begin(), entries->end(), [](const auto& entry) {
          return entry.cpu == UINT64_MAX || entry.cpu == UINT32_MAX;  // any CPU
        });
        one_buffer_per_thread_ = one_buffer_per_thread_ || any;
        per_cpu_ = !one_buffer_per_thread_ && !entries->empty();
      }
      return;
    case RecordType::kLost:
      if (const auto lost = parse_lost(record)) {
        lost_ += lost->count;
        uint64_t since = 0;
        if (per_cpu_ && record.has_cpu()) {
          const auto latest = latest_.find(record.sample_id.cpu);
          since = latest == latest_.end() ? 0 : latest->second;
        }
        windows_.emplace_back(since, now);
      }
      break;
    case RecordType::kLostSamples:
      if (const auto lost = parse_lost(record)) {
        lost_samples_ += lost->count;
      }
      break;
    case RecordType::kThrottle:
    case RecordType::kUnthrottle:
      if (const auto change = parse_throttle(record)) {
        const uint32_t attribute = attributes.of_id(change->id);
        if (attribute < matters.size() && !matters[attribute]) {
          break;
        }
        if (record.type == RecordType::kThrottle) {
          ++throttled_;
          off_since_.try_emplace(change->id, change->time);
        } else if (const auto since = off_since_.find(change->id); since != off_since_.end()) {
          windows_.emplace_back(std::min(since->second, change->time), change->time);
          off_since_.erase(since);
        }
      }
      break;
    default:
      break;
  }
  if (record.has_time() && record.has_cpu()) {
    uint64_t& latest = latest_[record.sample_id.cpu];
    latest = std::max(latest, record.sample_id.time);
  }
}

void Losses::finish() {
  for (const auto& [id, since] : off_since_) {
    windows_.emplace_back(since, UINT64_MAX);
  }
  if (lost_samples_ > lost_) {
    windows_.emplace_back(0, UINT64_MAX);
  }
  std::sort(windows_.begin(), windows_.end());
  std::vector<std::pair<uint64_t, uint64_t>> joined;
  for (const auto& window : windows_) {
    if (!joined.empty() && window.first <= joined.back().second) {
      joined.back().second = std::max(joined.back().second, window.second);
    } else {
      joined.push_back(window);
    }
  }
  windows_ = std::move(joined);
}

bool Losses::overlap(uint64_t begin, uint64_t end) const {
  const auto after =
      std::upper_bound(windows_.begin(), windows_.end(), end,
                       [](uint64_t wanted, const auto& window) { return wanted < window.first; });
  return after != windows_.begin() && std::prev(after)->second >= begin;
}

}  // namespace tsomon::perf
