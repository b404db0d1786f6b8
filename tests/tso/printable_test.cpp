#include "tso/support/printable.h"

#include <random>
#include <string>

#include <doctest/doctest.h>

namespace tsomon {
namespace {

// By the bytes alone: what a terminal could act on, and what is no UTF-8.
bool has_harmful_bytes(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    if (byte < 0x20 || byte == 0x7F || (byte == 0xC2 && next < 0xA0)) {
      return true;
    }
  }
  return false;
}

TEST_CASE("text stays, what is not text is escaped") {
  CHECK(printable("put(int) a.cpp:3") == "put(int) a.cpp:3");
  CHECK(printable("größe → 10 €") == "größe → 10 €");
  CHECK(printable("back\\slash") == "back\\slash");
  CHECK(printable("a\x1b[31mb") == "a\\x1b[31mb");
  CHECK(printable("a\nb\tc\rd") == "a\\x0ab\\x09c\\x0dd");
  CHECK(printable(std::string_view("a\0b", 3)) == "a\\x00b");
  CHECK(printable("\x7f") == "\\x7f");
  CHECK(printable("\x9b"
                  "31m") ==
        "\\x9b"
        "31m");  // C1 as one byte
  CHECK(printable("\xc2\x9b"
                  "31m") ==
        "\\xc2\\x9b"
        "31m");                                           // C1 in UTF-8
  CHECK(printable("\xe2\x80\xa8") == "\\xe2\\x80\\xa8");  // a line separator
  CHECK(printable("\xe2\x80\xae"
                  "txt") ==
        "\\xe2\\x80\\xae"
        "txt");                                           // right to left
  CHECK(printable("\xc0\x8a") == "\\xc0\\x8a");           // overlong newline
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate
  CHECK(printable("\xe2\x82") == "\\xe2\\x82");           // cut off
}

TEST_CASE("lines keep their ends, JSON keeps its value") {
  CHECK(printable_lines("a\n\tb\x1b\n") == "a\n\tb\\x1b\n");
  CHECK(printable_json("{\"a\":\"\x7f\xc2\x9b\xe2\x80\xa8ü\"}") ==
        "{\"a\":\"\\u007f\\u009b\\u2028ü\"}");
  CHECK(text_width("größe") == 5);
}

TEST_CASE("of random bytes nothing harmful is left, and escaping twice changes nothing") {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (size_t i = random() % 40; i > 0; --i) {
      // Half of it from where the borders are.
      static constexpr std::string_view kBorders = "\x1b\n\x7f\xc2\x80\x9f\xe2\xa8\xf4\x8f|aZ\\";
      text += random() % 2 == 0 ? kBorders[random() % kBorders.size()]
                                : static_cast<char>(random() % 256);
    }
    const std::string shown = printable(text);
    REQUIRE_FALSE(has_harmful_bytes(shown));
    REQUIRE(printable(shown) == shown);
    REQUIRE(printable_lines(shown) == shown);
  }
}

}  // namespace
}  // namespace tsomon
