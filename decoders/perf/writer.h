// Records of a perf.data, written: for containers that are turned into one, and for tests.
//
// Contract    What perf itself would have written into a pipe ("PERFILE2", kPipeHeaderSize) or,
//             with file_of(), into a file. Sizes that a record's header cannot hold are cut off.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "decoders/perf/format.h"

namespace tsomon::perf {

// Little-endian fields one after another.
class Fields {
 public:
  template <typename T>
  Fields& put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Fields& put_bytes(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  // With a NUL, up to a multiple of 8.
  Fields& put_text(std::string_view text) {
    bytes_ += text;
    bytes_.append(8 - text.size() % 8, '\0');
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

struct WrittenAttribute {
  uint32_t type = kTypeSoftware;
  uint32_t size = 128;
  uint64_t config = 0;
  uint64_t sample_period = 1;
  uint64_t sample_type = 0;
  uint64_t read_format = 0;
  uint64_t flags = attribute_flag::kSampleIdAll;
  uint32_t breakpoint_type = 0;
  uint64_t config1 = 0;
  uint64_t config2 = 0;
  uint64_t branch_sample_type = 0;
  uint64_t user_registers = 0;
  uint64_t interrupt_registers = 0;
  uint32_t aux_action = 0;
  std::vector<uint64_t> ids;

  std::string bytes() const;  // `size` of them, without the ids
};

std::string record_bytes(RecordType type, uint16_t misc, std::string_view payload);

std::string pipe_header();
// kHeaderAttr
std::string attribute_record(const WrittenAttribute& attribute);

struct WrittenFeature {
  uint32_t number = 0;
  std::string bytes;
};
// A whole file around the records. `features` by their numbers.
std::string file_of(const std::vector<WrittenAttribute>& attributes, std::string_view records,
                    const std::vector<WrittenFeature>& features = {});

}  // namespace tsomon::perf
