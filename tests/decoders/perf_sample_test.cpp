// Samples with every combination of fields: what stands in front of the AUX area, which is the last
// one, has the size that the kernel gives it.

#include <random>
#include <string>

#include <doctest/doctest.h>

#include "decoders/perf/sample.h"
#include "decoders/perf/writer.h"

using namespace tsomon::perf;

namespace {

// perf_output_sample() of the kernel: the fields of `attribute` in its order, filled at random.
std::string payload_of(const Attribute& attribute, std::string_view aux, std::mt19937& random) {
  Fields out;
  const auto has = [&](uint64_t field) { return attribute.has(field); };
  const auto words = [&](size_t count) {
    for (size_t i = 0; i < count; ++i) {
      out.put(uint64_t{random()});
    }
  };
  const auto word_if = [&](uint64_t field) { words(has(field) ? 1 : 0); };
  for (const uint64_t field : {sample_type::kIdentifier, sample_type::kIp, sample_type::kTid,
                               sample_type::kTime, sample_type::kAddress, sample_type::kId,
                               sample_type::kStreamId, sample_type::kCpu, sample_type::kPeriod}) {
    word_if(field);
  }
  const uint64_t format = attribute.read_format;
  const auto reads = [&](uint64_t bit) -> size_t { return (format & bit) != 0 ? 1 : 0; };
  if (has(sample_type::kRead)) {
    const size_t times = reads(read_format::kTimeEnabled) + reads(read_format::kTimeRunning);
    const size_t each = 1 + reads(read_format::kId) + reads(read_format::kLost);
    if (reads(read_format::kGroup) != 0) {
      const size_t counters = random() % 4;
      out.put(uint64_t{counters});
      words(times + counters * each);
    } else {
      words(times + each);
    }
  }
  if (has(sample_type::kCallchain)) {
    const size_t length = random() % 5;
    out.put(uint64_t{length});
    words(length);
  }
  if (has(sample_type::kRaw)) {
    const uint32_t size = 4 + 8 * (random() % 4);
    out.put(size).put_bytes(std::string(size, 'r'));
  }
  if (has(sample_type::kBranchStack)) {
    const size_t branches = random() % 4;
    out.put(uint64_t{branches});
    words((attribute.branch_sample_type & kBranchHardwareIndex) != 0 ? 1 : 0);
    words(3 * branches);
    words((attribute.branch_sample_type & kBranchCounters) != 0 ? branches : 0);
  }
  const auto registers = [&](uint64_t field, size_t count) {
    if (has(field)) {
      const bool any = random() % 2 != 0;
      out.put(uint64_t{any ? 2U : 0U});
      words(any ? count : 0);
    }
  };
  registers(sample_type::kRegsUser, 3);
  if (has(sample_type::kStackUser)) {
    const uint64_t size = 8 * (random() % 4);
    out.put(size).put_bytes(std::string(size, 's'));
    words(size != 0 ? 1 : 0);
  }
  words(has(sample_type::kWeight) || has(sample_type::kWeightStruct) ? 1 : 0);
  word_if(sample_type::kDataSource);
  word_if(sample_type::kTransaction);
  registers(sample_type::kRegsIntr, 2);
  for (const uint64_t field : {sample_type::kPhysicalAddress, sample_type::kCgroup,
                               sample_type::kDataPageSize, sample_type::kCodePageSize}) {
    word_if(field);
  }
  out.put(uint64_t{aux.size()}).put_bytes(aux);
  return out.bytes();
}

}  // namespace

TEST_CASE("perf.data: the AUX area of a sample is found behind every combination of fields") {
  std::mt19937 random(11);
  for (int round = 0; round < 20000; ++round) {
    Attribute attribute;
    attribute.sample_type = (random() & sample_type::kAll) | sample_type::kAux;
    attribute.read_format = random() & 31U;
    attribute.branch_sample_type = random() & (kBranchHardwareIndex | kBranchCounters);
    attribute.user_registers = 0x8000000000000101;
    attribute.interrupt_registers = 0x82;
    const std::string aux(8 * (random() % 5), 'a');
    const std::string payload = payload_of(attribute, aux, random);
    Record record;
    record.payload = payload;
    const auto sample = parse_sample(attribute, record);
    REQUIRE(sample);
    CHECK(sample->aux == aux);
    // A byte less is too short, and a size that the record does not have is none.
    record.payload.remove_suffix(1);
    CHECK_FALSE(parse_sample(attribute, record));
    std::string hostile = payload;
    hostile.replace(payload.size() - aux.size() - 8, 8, std::string(8, '\xff'));
    record.payload = hostile;
    CHECK_FALSE(parse_sample(attribute, record));
  }
}
