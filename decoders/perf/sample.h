// The fields of a sample.
//
// Contract    parse_sample() reads what the attribute's sample_type names, in the kernel's order;
//             nothing when the record is too short for it, or has a field that is not known here
//             (what follows that could not be found). Views point into the record.
// Thread-safety: pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "decoders/perf/record.h"

namespace tsomon::perf {

struct CounterValue {
  uint64_t value = 0;
  uint64_t id = 0;
  uint64_t lost = 0;
};

struct Branch {
  uint64_t from = 0;
  uint64_t to = 0;
  uint64_t flags = 0;
};

// Registers in the order of the bits of the attribute's mask; abi 0: none were to be had.
struct Registers {
  uint64_t abi = 0;
  uint64_t mask = 0;
  std::vector<uint64_t> values;
};

struct Sample {
  uint64_t fields = 0;  // sample_type bits: what of the following is there
  uint64_t ip = 0;
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint64_t time = 0;
  uint64_t address = 0;
  uint64_t id = 0;
  uint64_t stream_id = 0;
  uint32_t cpu = 0;
  uint64_t period = 0;
  uint64_t time_enabled = 0;
  uint64_t time_running = 0;
  std::vector<CounterValue> counters;
  std::vector<uint64_t> callchain;  // with the kernel's context markers
  std::string_view raw;
  std::vector<Branch> branches;
  uint64_t branch_index = 0;
  Registers user_registers;
  std::string_view user_stack;  // without what was not filled
  uint64_t weight = 0;          // of kWeightStruct all three in one word
  uint64_t data_source = 0;
  uint64_t transaction = 0;
  Registers interrupt_registers;
  uint64_t physical_address = 0;
  uint64_t cgroup = 0;
  uint64_t data_page_size = 0;
  uint64_t code_page_size = 0;
  std::string_view aux;
};

std::optional<Sample> parse_sample(const Attribute& attribute, const Record& record);

}  // namespace tsomon::perf
