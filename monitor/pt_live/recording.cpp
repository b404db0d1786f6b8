#include "monitor/pt_live/recording.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "monitor/pt_live/running_code.h"

namespace tsomon::pt_live {
namespace {

// Of records that wait for a snapshot: some hundred thousand switches of threads.
constexpr size_t kRecentBytes = size_t{32} << 20;

std::string auxtrace_info(std::vector<uint64_t> values,
                          const std::optional<perf::TimeConversion>& clock,
                          const std::string& filter) {
  if (clock && values.size() > 4) {
    values[1] = clock->shift;
    values[2] = clock->mult;
    values[3] = clock->zero;
    values[4] = 1;
  }
  perf::Fields payload;
  payload.put(perf::AuxtraceInfo::kIntelPt).put(uint32_t{0});
  for (const uint64_t value : values) {
    payload.put(value);
  }
  if (!filter.empty()) {
    payload.put_text(filter);
  }
  return record_bytes(perf::RecordType::kAuxtraceInfo, 0, payload.bytes());
}

}  // namespace

Recording::Recording(RecordingSetup setup, std::unique_ptr<EventRings> rings, PerfFile file)
    : setup_(std::move(setup)),
      rings_(std::move(rings)),
      file_(std::move(file)),
      recent_(kRecentBytes) {}

Result<std::unique_ptr<Recording>> Recording::begin(RecordingSetup setup, const std::string& output,
                                                    pid_t pid, bool running) {
  setup.rings.threads = threads_of(pid);
  if (setup.rings.threads.empty()) {
    return fail(ErrorKind::kUsage, fmt::format("there is no process {}", pid));
  }
  auto rings = EventRings::open(setup.rings);
  if (!rings) {
    return tl::unexpected<Error>(rings.error());
  }
  if (!setup.filter.empty()) {
    if (auto set = (*rings)->set_filter(setup.filter); !set) {
      return tl::unexpected<Error>(set.error());
    }
  }
  const auto attributes = (*rings)->attributes();
  auto file = PerfFile::create(output, attributes);
  if (!file) {
    return tl::unexpected<Error>(file.error());
  }
  std::string records;
  if (!setup.auxtrace_values.empty()) {
    records = auxtrace_info(setup.auxtrace_values, (*rings)->clock(), setup.filter);
  }
  if (running) {
    records += running_code(pid, attributes.back().ids.front());
  }
  if (auto added = file->add(records); !added) {
    return tl::unexpected<Error>(added.error());
  }
  std::unique_ptr<Recording> recording(
      new Recording(std::move(setup), std::move(*rings), std::move(*file)));
  if (running) {
    recording->rings_->enable();
  }
  return recording;
}

Result<bool> Recording::write() {
  std::string records;
  rings_->read(records);
  if (setup_.rings.snapshot) {
    recent_.add(records);
    return true;
  }
  if (auto written = rings_->write_trace(file_, false); !written) {
    return written;
  }
  return file_.add(records);
}

Result<bool> Recording::dump() {
  rings_->pause();
  write();
  auto written = file_.add(recent_.take());
  if (written) {
    written = rings_->write_snapshot(file_);
  }
  rings_->go_on();
  return written;
}

Result<bool> Recording::finish() {
  rings_->disable();
  auto written = write();
  if (written) {
    written = setup_.rings.snapshot ? file_.add(recent_.take()) : rings_->write_trace(file_, true);
  }
  if (written && setup_.rings.snapshot) {
    written = rings_->write_snapshot(file_);
  }
  if (written) {
    written = file_.finish();
  }
  return written;
}

}  // namespace tsomon::pt_live
