#include "decoders/perf/sample.h"

#include <algorithm>
#include <bitset>

#include "decoders/perf/cursor.h"

namespace tsomon::perf {

namespace {

bool read_counters(Cursor& in, uint64_t format, Sample& sample) {
  const bool group = (format & read_format::kGroup) != 0;
  uint64_t count = 1;
  uint64_t first = 0;
  if (group) {
    count = in.take<uint64_t>();
  } else {
    first = in.take<uint64_t>();
  }
  if ((format & read_format::kTimeEnabled) != 0) {
    sample.time_enabled = in.take<uint64_t>();
  }
  if ((format & read_format::kTimeRunning) != 0) {
    sample.time_running = in.take<uint64_t>();
  }
  if (!in.ok() || (group && count > in.left() / 8)) {
    return false;
  }
  for (uint64_t i = 0; i < count; ++i) {
    CounterValue counter;
    counter.value = group ? in.take<uint64_t>() : first;
    counter.id = (format & read_format::kId) != 0 ? in.take<uint64_t>() : 0;
    counter.lost = (format & read_format::kLost) != 0 ? in.take<uint64_t>() : 0;
    sample.counters.push_back(counter);
  }
  return in.ok();
}

bool read_words(Cursor& in, uint64_t count, std::vector<uint64_t>& words) {
  if (count > in.left() / 8) {
    return false;
  }
  words.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    words.push_back(in.take<uint64_t>());
  }
  return true;
}

bool read_branches(Cursor& in, const Attribute& attribute, Sample& sample) {
  constexpr uint64_t kEntry = 24;
  const auto count = in.take<uint64_t>();
  if ((attribute.branch_sample_type & kBranchHardwareIndex) != 0) {
    sample.branch_index = in.take<uint64_t>();
  }
  if (count > in.left() / kEntry) {
    return false;
  }
  for (uint64_t i = 0; i < count; ++i) {
    Branch branch;
    branch.from = in.take<uint64_t>();
    branch.to = in.take<uint64_t>();
    branch.flags = in.take<uint64_t>();
    sample.branches.push_back(branch);
  }
  if ((attribute.branch_sample_type & kBranchCounters) != 0) {
    in.take_bytes(8 * count);
  }
  return in.ok();
}

bool read_registers(Cursor& in, uint64_t mask, Registers& registers) {
  registers.abi = in.take<uint64_t>();
  if (!in.ok() || registers.abi == 0) {
    return in.ok();
  }
  registers.mask = mask;
  return read_words(in, std::bitset<64>(mask).count(), registers.values);
}

std::string_view sized_bytes(Cursor& in) {
  const auto size = in.take<uint64_t>();
  return in.take_bytes(size);
}

}  // namespace

std::optional<Sample> parse_sample(const Attribute& attribute, const Record& record) {
  const uint64_t fields = attribute.sample_type;
  if ((fields & ~sample_type::kAll) != 0) {
    return std::nullopt;
  }
  Cursor in(record.payload);
  Sample sample;
  sample.fields = fields;
  const auto has = [fields](uint64_t field) { return (fields & field) != 0; };
  const auto word_of = [&](uint64_t field) { return has(field) ? in.take<uint64_t>() : 0; };

  sample.id = word_of(sample_type::kIdentifier);
  sample.ip = word_of(sample_type::kIp);
  const uint64_t ids = word_of(sample_type::kTid);
  sample.pid = static_cast<uint32_t>(ids);
  sample.tid = static_cast<uint32_t>(ids >> 32);
  sample.time = word_of(sample_type::kTime);
  sample.address = word_of(sample_type::kAddress);
  if (has(sample_type::kId)) {
    sample.id = in.take<uint64_t>();
  }
  sample.stream_id = word_of(sample_type::kStreamId);
  sample.cpu = static_cast<uint32_t>(word_of(sample_type::kCpu));
  sample.period = word_of(sample_type::kPeriod);
  if (has(sample_type::kRead) && !read_counters(in, attribute.read_format, sample)) {
    return std::nullopt;
  }
  if (has(sample_type::kCallchain) && !read_words(in, in.take<uint64_t>(), sample.callchain)) {
    return std::nullopt;
  }
  if (has(sample_type::kRaw)) {
    const auto size = in.take<uint32_t>();
    sample.raw = in.take_bytes(size);
  }
  if (has(sample_type::kBranchStack) && !read_branches(in, attribute, sample)) {
    return std::nullopt;
  }
  if (has(sample_type::kRegsUser) &&
      !read_registers(in, attribute.user_registers, sample.user_registers)) {
    return std::nullopt;
  }
  if (has(sample_type::kStackUser)) {
    sample.user_stack = sized_bytes(in);
    if (!sample.user_stack.empty()) {
      const auto filled = in.take<uint64_t>();
      sample.user_stack =
          sample.user_stack.substr(0, std::min<uint64_t>(filled, sample.user_stack.size()));
    }
  }
  if (has(sample_type::kWeight) || has(sample_type::kWeightStruct)) {
    sample.weight = in.take<uint64_t>();
  }
  sample.data_source = word_of(sample_type::kDataSource);
  sample.transaction = word_of(sample_type::kTransaction);
  if (has(sample_type::kRegsIntr) &&
      !read_registers(in, attribute.interrupt_registers, sample.interrupt_registers)) {
    return std::nullopt;
  }
  sample.physical_address = word_of(sample_type::kPhysicalAddress);
  sample.cgroup = word_of(sample_type::kCgroup);
  sample.data_page_size = word_of(sample_type::kDataPageSize);
  sample.code_page_size = word_of(sample_type::kCodePageSize);
  if (has(sample_type::kAux)) {
    sample.aux = sized_bytes(in);
  }
  return in.ok() ? std::optional<Sample>(std::move(sample)) : std::nullopt;
}

}  // namespace tsomon::perf
