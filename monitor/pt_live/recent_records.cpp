#include "monitor/pt_live/recent_records.h"

#include <cstring>

#include <linux/perf_event.h>

namespace tsomon::pt_live {
namespace {

// As much as is dropped at a time.
constexpr size_t kPart = size_t{64} << 10;

bool tells_of_times(uint32_t type) {
  return type == PERF_RECORD_SWITCH || type == PERF_RECORD_SWITCH_CPU_WIDE ||
         type == PERF_RECORD_AUX;
}

void append_lasting(std::string_view records, std::string& to) {
  while (records.size() >= sizeof(perf_event_header)) {
    perf_event_header header{};
    std::memcpy(&header, records.data(), sizeof header);
    if (header.size < sizeof header || header.size > records.size()) {
      return;  // no kernel writes that
    }
    if (!tells_of_times(header.type)) {
      to += records.substr(0, header.size);
    }
    records.remove_prefix(header.size);
  }
}

}  // namespace

void RecentRecords::add(std::string_view records) {
  if (parts_.empty() || parts_.back().size() >= kPart) {
    parts_.emplace_back();
  }
  parts_.back() += records;
  bytes_ += records.size();
  while (bytes_ > bound_ && parts_.size() > 1) {
    append_lasting(parts_.front(), lasting_);
    bytes_ -= parts_.front().size();
    parts_.pop_front();
  }
}

std::string RecentRecords::take() {
  std::string all = std::move(lasting_);
  for (const std::string& part : parts_) {
    all += part;
  }
  lasting_.clear();
  parts_.clear();
  bytes_ = 0;
  return all;
}

}  // namespace tsomon::pt_live
