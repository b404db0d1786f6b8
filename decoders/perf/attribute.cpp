#include "decoders/perf/attribute.h"

#include <bitset>

#include "decoders/perf/cursor.h"

namespace tsomon::perf {

namespace {

constexpr uint64_t kWord = 8;

uint64_t words(uint64_t sample_type, uint64_t mask) {
  return kWord * std::bitset<64>(sample_type & mask).count();
}

}  // namespace

std::optional<Attribute> parse_attribute(std::string_view bytes) {
  Attribute result;
  Cursor in(bytes);
  result.type = in.take<uint32_t>();
  result.size = in.take<uint32_t>();
  if (result.size == 0) {  // the first version did not say
    result.size = kSmallestAttribute;
  }
  if (result.size < kSmallestAttribute || result.size > bytes.size()) {
    return std::nullopt;
  }
  in = Cursor(bytes.substr(kWord, result.size - kWord));
  result.config = in.take<uint64_t>();
  result.sample_period = in.take<uint64_t>();
  result.sample_type = in.take<uint64_t>();
  result.read_format = in.take<uint64_t>();
  result.flags = in.take<uint64_t>();
  in.take<uint32_t>();  // wakeup
  result.breakpoint_type = in.take<uint32_t>();
  result.config1 = in.take<uint64_t>();
  // What an older version does not have is read as 0.
  result.config2 = in.take<uint64_t>();
  result.branch_sample_type = in.take<uint64_t>();
  result.user_registers = in.take<uint64_t>();
  result.user_stack = in.take<uint32_t>();
  result.clockid = in.take<int32_t>();
  result.interrupt_registers = in.take<uint64_t>();
  in.take<uint32_t>();  // aux_watermark
  in.take<uint16_t>();  // sample_max_stack
  in.take<uint16_t>();
  in.take<uint32_t>();  // aux_sample_size
  result.aux_action = in.take<uint32_t>();
  in.take<uint64_t>();  // sig_data
  result.config3 = in.take<uint64_t>();
  return result;
}

void AttributeTable::add(Attribute attribute) {
  const auto index = static_cast<uint32_t>(attributes_.size());
  for (const uint64_t id : attribute.ids) {
    by_id_.try_emplace(id, index);
  }
  attributes_.push_back(std::move(attribute));
}

void AttributeTable::add_id(uint32_t attribute, uint64_t id) {
  if (by_id_.try_emplace(id, attribute).second) {
    attributes_[attribute].ids.push_back(id);
  }
}

uint32_t AttributeTable::of_id(uint64_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? kNone : found->second;
}

std::optional<uint64_t> AttributeTable::id_of(RecordType type, std::string_view payload) const {
  const Attribute& first = attributes_.front();
  uint64_t before = 0;  // of a sample: bytes before the id; else: after its begin
  if (type == RecordType::kSample) {
    if (!first.has(sample_type::kIdentifier)) {
      if (!first.has(sample_type::kId)) {
        return std::nullopt;
      }
      before = words(first.sample_type, sample_type::kIp | sample_type::kTid | sample_type::kTime |
                                            sample_type::kAddress);
    }
  } else {
    if ((first.flags & attribute_flag::kSampleIdAll) == 0) {
      return std::nullopt;
    }
    uint64_t behind = kWord;
    if (!first.has(sample_type::kIdentifier)) {
      if (!first.has(sample_type::kId)) {
        return std::nullopt;
      }
      behind += words(first.sample_type, sample_type::kStreamId | sample_type::kCpu);
    }
    if (behind > payload.size()) {
      return std::nullopt;
    }
    before = payload.size() - behind;
  }
  if (before + kWord > payload.size()) {
    return std::nullopt;
  }
  return Cursor(payload.substr(before)).take<uint64_t>();
}

uint32_t AttributeTable::of_record(RecordType type, std::string_view payload) const {
  if (attributes_.empty()) {
    return kNone;
  }
  if (attributes_.size() == 1) {
    return 0;
  }
  const auto id = id_of(type, payload);
  const uint32_t found = id ? of_id(*id) : kNone;
  return found == kNone ? 0 : found;
}

}  // namespace tsomon::perf
