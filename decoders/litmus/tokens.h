// Tokens of a litmus file, and the first error found in it.
//
// Comments (* ... *), nested too, and white space separate tokens and are otherwise skipped.
// Lines count from 1. The text must outlive the Tokens. O(length) time and memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tso/support/result.h"

namespace tsomon::litmus {

struct Token {
  enum class Kind : uint8_t { kName, kNumber, kSymbol, kStrange, kEnd };
  Kind kind = Kind::kEnd;
  std::string_view text;
  uint32_t line = 0;
};

std::string lower_case(std::string_view text);

class Tokens {
 public:
  // `line` is that of the first byte of `text`.
  Tokens(std::string_view text, uint32_t line, std::string input);

  const Token& peek(size_t ahead = 0) const;
  Token take();
  bool at(std::string_view text, size_t ahead = 0) const;
  bool at_name(size_t ahead = 0) const { return peek(ahead).kind == Token::Kind::kName; }
  bool at_number(size_t ahead = 0) const { return peek(ahead).kind == Token::Kind::kNumber; }
  bool accept(std::string_view text);  // takes the token if it is `text`
  bool expect(std::string_view text);  // the same, or fails

  // Decimal or 0x hexadecimal, with '-' if so wanted; two's complement.
  bool parse_number(uint64_t& number);

  // These keep the first error and return false, so that a parser can `return fail_...`.
  bool fail_expected(std::string_view expected);  // "expected ..., found <the next token>"
  bool fail_at(uint32_t line, std::string message);

  bool failed() const { return error_.has_value(); }
  const Error& error() const { return *error_; }

 private:
  void scan(std::string_view text, uint32_t line);

  std::string input_;
  std::vector<Token> tokens_;  // ends with kEnd
  size_t next_ = 0;
  std::optional<Error> error_;
};

// The length of the comment that starts at `at`, or npos if it has no end.
size_t comment_length(std::string_view text, size_t at);

}  // namespace tsomon::litmus
