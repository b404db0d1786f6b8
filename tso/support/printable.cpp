#include "tso/support/printable.h"

#include <array>

namespace tsomon {
namespace {

bool is_harmful(uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code <= 0x9F) || code == 0x61C ||
         (code >= 0x200E && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

void put_hex(uint32_t number, unsigned digits, std::string& out) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (unsigned at = digits; at-- > 0;) {
    out += kDigits[number >> (4 * at) & 0xFU];
  }
}

std::string escaped(std::string_view text, bool lines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_character(text);
    const bool kept = lines && (character.code == '\n' || character.code == '\t');
    if (kept || !character.harmful) {
      out += text.substr(0, character.bytes);
    } else {
      for (const char byte : text.substr(0, character.bytes)) {
        out += "\\x";
        put_hex(static_cast<unsigned char>(byte), 2, out);
      }
    }
    text.remove_prefix(character.bytes);
  }
  return out;
}

}  // namespace

Character first_character(std::string_view text) {
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
  const uint32_t lead = byte(0);
  if (lead < 0x80) {
    return {lead, 1, is_harmful(lead)};
  }
  const size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) {
    return {};
  }
  uint32_t code = lead & (0x7FU >> bytes);
  for (size_t at = 1; at < bytes; ++at) {
    if ((byte(at) & 0xC0U) != 0x80U) {
      return {};
    }
    code = code << 6U | (byte(at) & 0x3FU);
  }
  // Neither overlong forms nor surrogates are UTF-8.
  constexpr std::array<uint32_t, 5> kLowest = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return code < kLowest[bytes] || code > 0x10FFFF || surrogate
             ? Character{}
             : Character{code, bytes, is_harmful(code)};
}

std::string printable(std::string_view text) { return escaped(text, false); }
std::string printable_lines(std::string_view text) { return escaped(text, true); }

std::string printable_json(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const Character character = first_character(json);
    if (character.harmful && character.code >= 0x7F) {
      out += "\\u";
      put_hex(character.code, 4, out);
    } else {
      out += json.substr(0, character.bytes);
    }
    json.remove_prefix(character.bytes);
  }
  return out;
}

size_t text_width(std::string_view text) {
  size_t width = 0;
  for (const char byte : text) {
    width += (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U ? 1 : 0;
  }
  return width;
}

}  // namespace tsomon
