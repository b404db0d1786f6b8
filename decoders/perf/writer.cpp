#include "decoders/perf/writer.h"

#include <algorithm>
#include <array>

namespace tsomon::perf {

std::string WrittenAttribute::bytes() const {
  Fields out;
  out.put(type).put(size).put(config).put(sample_period).put(sample_type).put(read_format);
  out.put(flags).put(uint32_t{0}).put(breakpoint_type).put(config1).put(config2);
  out.put(branch_sample_type).put(user_registers).put(uint32_t{0}).put(int32_t{0});
  out.put(interrupt_registers).put(uint64_t{0}).put(uint32_t{0}).put(aux_action);
  std::string bytes = out.bytes();
  bytes.resize(size, '\0');
  return bytes;
}

std::string record_bytes(RecordType type, uint16_t misc, std::string_view payload) {
  payload = payload.substr(0, UINT16_MAX - kRecordHeaderSize);
  return Fields()
      .put(static_cast<uint32_t>(type))
      .put(misc)
      .put(static_cast<uint16_t>(kRecordHeaderSize + payload.size()))
      .put_bytes(payload)
      .bytes();
}

std::string pipe_header() { return Fields().put(kMagic).put(kPipeHeaderSize).bytes(); }

std::string attribute_record(const WrittenAttribute& attribute) {
  Fields payload;
  payload.put_bytes(attribute.bytes());
  for (const uint64_t id : attribute.ids) {
    payload.put(id);
  }
  return record_bytes(RecordType::kHeaderAttr, 0, payload.bytes());
}

std::string file_of(const std::vector<WrittenAttribute>& attributes, std::string_view records,
                    const std::vector<WrittenFeature>& features) {
  constexpr uint64_t kSection = 16;
  uint64_t attribute_size = kSmallestAttribute;
  for (const WrittenAttribute& attribute : attributes) {
    attribute_size = std::max<uint64_t>(attribute_size, attribute.size);
  }
  Fields ids;
  Fields entries;
  for (const WrittenAttribute& attribute : attributes) {
    std::string bytes = attribute.bytes();
    bytes.resize(attribute_size, '\0');
    entries.put_bytes(bytes);
    entries.put(kFileHeaderSize + ids.bytes().size()).put(uint64_t{8} * attribute.ids.size());
    for (const uint64_t id : attribute.ids) {
      ids.put(id);
    }
  }
  const uint64_t entries_at = kFileHeaderSize + ids.bytes().size();
  const uint64_t data_at = entries_at + entries.bytes().size();
  std::array<uint64_t, kFeatureBits / 64> bits{};
  Fields table;
  uint64_t at = data_at + records.size() + kSection * features.size();
  for (const WrittenFeature& feature : features) {
    bits[feature.number / 64 % bits.size()] |= uint64_t{1} << feature.number % 64;
    table.put(at).put(uint64_t{feature.bytes.size()});
    at += feature.bytes.size();
  }
  Fields file;
  file.put(kMagic).put(kFileHeaderSize).put(attribute_size + kSection);
  file.put(entries_at).put(uint64_t{entries.bytes().size()});
  file.put(data_at).put(uint64_t{records.size()}).put(uint64_t{0}).put(uint64_t{0});
  for (const uint64_t word : bits) {
    file.put(word);
  }
  file.put_bytes(ids.bytes()).put_bytes(entries.bytes()).put_bytes(records);
  file.put_bytes(table.bytes());
  for (const WrittenFeature& feature : features) {
    file.put_bytes(feature.bytes);
  }
  return file.bytes();
}

}  // namespace tsomon::perf
