#include "monitor/pt_live/recent_records.h"

#include <cstring>
#include <utility>

#include <linux/perf_event.h>

#include "decoders/perf/writer.h"

namespace tsomon::pt_live {
namespace {

// As much as is dropped at a time.
constexpr size_t kPart = size_t{64} << 10;
// What ends a record: thread, time, CPU, event.
constexpr size_t kWhere = 32;
constexpr size_t kCpuAt = 16;

template <typename T>
T at(std::string_view record, size_t offset) {
  T value{};
  if (offset + sizeof value <= record.size()) {
    std::memcpy(&value, record.data() + offset, sizeof value);
  }
  return value;
}

bool loses(std::string_view aux) {
  constexpr size_t kFlagsAt = sizeof(perf_event_header) + 16;
  constexpr uint64_t kLoses =
      PERF_AUX_FLAG_TRUNCATED | PERF_AUX_FLAG_PARTIAL | PERF_AUX_FLAG_COLLISION;
  return (at<uint64_t>(aux, kFlagsAt) & kLoses) != 0;
}

}  // namespace

// Of a part that is dropped.
void RecentRecords::drop(std::string_view record) {
  constexpr size_t kBody = sizeof(perf_event_header);
  const auto header = at<perf_event_header>(record, 0);
  const auto process = at<uint32_t>(record, kBody);
  switch (header.type) {
    case PERF_RECORD_SWITCH:
    case PERF_RECORD_SWITCH_CPU_WIDE: {
      const bool whole = record.size() >= kBody + kWhere;
      const std::string_view where = record.substr(whole ? record.size() - kWhere : record.size());
      Dropped& dropped = switches_[whole ? at<uint32_t>(where, kCpuAt) : UINT32_MAX];
      ++dropped.count;
      dropped.where = where;
      return;
    }
    case PERF_RECORD_AUX:
      if (loses(record)) {
        break;
      }
      return;
    case static_cast<uint32_t>(perf::RecordType::kFinishedRound):
      return;
    case PERF_RECORD_EXIT: {
      const auto thread = at<uint32_t>(record, kBody + 8);
      threads_.erase(thread);
      if (thread != process) {
        return;
      }
      break;
    }
    case PERF_RECORD_FORK: {
      const auto thread = at<uint32_t>(record, kBody + 8);
      if (thread != process && process == at<uint32_t>(record, kBody + 4)) {
        threads_[thread] = record;
        return;
      }
      break;
    }
    case PERF_RECORD_COMM:
    case PERF_RECORD_ITRACE_START: {
      const auto thread = at<uint32_t>(record, kBody + 4);
      if (thread != process && (header.misc & PERF_RECORD_MISC_COMM_EXEC) == 0) {
        threads_[thread] += record;
        return;
      }
      break;
    }
    default:
      break;
  }
  lasting_ += record;
}

void RecentRecords::drop_part() {
  std::string_view records = parts_.front();
  while (records.size() >= sizeof(perf_event_header)) {
    const auto header = at<perf_event_header>(records, 0);
    if (header.size < sizeof header || header.size > records.size()) {
      break;  // no kernel writes that
    }
    drop(records.substr(0, header.size));
    records.remove_prefix(header.size);
  }
  bytes_ -= parts_.front().size();
  parts_.pop_front();
}

void RecentRecords::add(std::string_view records) {
  if (parts_.empty() || parts_.back().size() >= kPart) {
    parts_.emplace_back();
  }
  parts_.back() += records;
  bytes_ += records.size();
  while (bytes_ > bound_ && parts_.size() > 1) {
    drop_part();
  }
}

std::string RecentRecords::take() {
  std::string all = std::move(lasting_);
  for (const auto& [thread, records] : threads_) {
    all += records;
  }
  for (const auto& [cpu, dropped] : switches_) {
    const perf::Fields lost = perf::Fields().put(uint64_t{0}).put(dropped.count);
    all += record_bytes(perf::RecordType::kLost, 0, lost.bytes() + dropped.where);
  }
  for (const std::string& part : parts_) {
    all += part;
  }
  lasting_.clear();
  threads_.clear();
  switches_.clear();
  parts_.clear();
  bytes_ = 0;
  return all;
}

}  // namespace tsomon::pt_live
