// A message in protobuf's wire format, field by field.
//
// Purpose     Enough for what is written here: numbers, texts, messages in messages. No schema is needed, and no library.
// Format      https://protobuf.dev/programming-guides/encoding: a key, which is the field's number and the type on the
//             wire, then a varint, eight bytes, or a length and that many bytes.
// Complexity  Linear; a message is copied into the one around it. Thread-safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tsomon::report {

class ProtobufMessage {
 public:
  // int32, int64, uint32, uint64, bool, enum. Negative numbers are not needed.
  void add_number(uint32_t field, uint64_t value) {
    add_key(field, kVarint);
    add_varint(value);
  }
  // fixed64.
  void add_fixed(uint32_t field, uint64_t value) {
    add_key(field, kFixed64);
    for (int byte = 0; byte < 8; ++byte) {
      bytes_ += static_cast<char>(value >> (8 * byte));
    }
  }
  // string, bytes.
  void add_text(uint32_t field, std::string_view text) {
    add_key(field, kLength);
    add_varint(text.size());
    bytes_ += text;
  }
  void add_message(uint32_t field, const ProtobufMessage& message) {
    add_text(field, message.bytes_);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLength = 2 };

  void add_key(uint32_t field, WireType type) { add_varint(uint64_t{field} << 3 | type); }

  void add_varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) {
      bytes_ += static_cast<char>(value | 0x80);
    }
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace tsomon::report
