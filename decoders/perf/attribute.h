// What was recorded: the events' attributes (perf_event_attr) and which record belongs to which.
//
// Versions    Every size from the first one (64 bytes) on; what an older version lacks is 0, what a
//             newer one adds is not read.
// Records     A record carries the id of its event when there are several: at the place that the
//             sample types of all events have in common. A record without an id, or with one that
//             is not known, belongs to the first event.
// Complexity  O(1) expected for each record.
// Thread-safety: const access is safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "decoders/perf/format.h"

namespace tsomon::perf {

struct Attribute {
  uint32_t type = 0;
  uint32_t size = 0;  // of the version that the file has
  uint64_t config = 0;
  uint64_t sample_period = 0;  // or its frequency, with attribute_flag::kFrequency
  uint64_t sample_type = 0;
  uint64_t read_format = 0;
  uint64_t flags = 0;
  uint32_t breakpoint_type = 0;  // 1: read, 2: write, 4: execute
  uint64_t config1 = 0;          // of a breakpoint its address
  uint64_t config2 = 0;          // of a breakpoint its length in bytes
  uint64_t branch_sample_type = 0;
  uint64_t user_registers = 0;  // one bit each
  uint32_t user_stack = 0;
  int32_t clockid = 0;
  uint64_t interrupt_registers = 0;
  uint32_t aux_action = 0;  // what its samples do to the trace: it begins, pauses or goes on
  uint64_t config3 = 0;

  std::vector<uint64_t> ids;
  std::string name;  // "mem:0x404030:rw"; empty when the file does not say

  bool has(uint64_t sample_bit) const { return (sample_type & sample_bit) != 0; }
  bool every_occurrence() const {
    return (flags & attribute_flag::kFrequency) == 0 && sample_period == 1;
  }
};

// `bytes` may be longer than the attribute. Nothing when they are no attribute.
std::optional<Attribute> parse_attribute(std::string_view bytes);

class AttributeTable {
 public:
  static constexpr uint32_t kNone = 0xFFFFFFFFU;

  // Ids of an attribute that is already there are added to it.
  void add(Attribute attribute);
  void add_id(uint32_t attribute, uint64_t id);
  void set_name(uint32_t attribute, std::string name) {
    attributes_[attribute].name = std::move(name);
  }

  // Of a record with this payload (without its header); kNone when there is no attribute at all.
  uint32_t of_record(RecordType type, std::string_view payload) const;
  uint32_t of_id(uint64_t id) const;  // kNone: unknown

  const std::vector<Attribute>& all() const { return attributes_; }
  const Attribute& operator[](uint32_t index) const { return attributes_[index]; }

 private:
  std::optional<uint64_t> id_of(RecordType type, std::string_view payload) const;

  std::vector<Attribute> attributes_;
  std::unordered_map<uint64_t, uint32_t> by_id_;
};

}  // namespace tsomon::perf
