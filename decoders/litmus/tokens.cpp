#include "decoders/litmus/tokens.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace tsomon::litmus {

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

size_t symbol_length(std::string_view rest) {
  for (const std::string_view symbol : {"/\\", "\\/", "=>", "<<", ">>", "!=", "<>"}) {
    if (rest.substr(0, 2) == symbol) {
      return 2;
    }
  }
  return std::string_view("{}[]();|,:=~$-*%").find(rest[0]) != std::string_view::npos ? 1 : 0;
}

std::string found_text(const Token& token) {
  if (token.kind == Token::Kind::kEnd) {
    return "the end of the file";
  }
  const char first = token.text[0];
  if (token.kind == Token::Kind::kStrange && (first < ' ' || first > '~')) {
    return fmt::format("byte 0x{:02x}", static_cast<unsigned char>(first));
  }
  constexpr size_t kLongest = 40;
  return token.text.size() <= kLongest ? fmt::format("'{}'", token.text)
                                       : fmt::format("'{}...'", token.text.substr(0, kLongest));
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

size_t comment_length(std::string_view text, size_t at) {
  size_t depth = 0;
  for (size_t end = at; end + 1 < text.size();) {
    const std::string_view two = text.substr(end, 2);
    if (two == "(*") {
      ++depth;
      end += 2;
    } else if (two == "*)") {
      --depth;
      end += 2;
      if (depth == 0) {
        return end - at;
      }
    } else {
      ++end;
    }
  }
  return std::string_view::npos;
}

Tokens::Tokens(std::string_view text, uint32_t line, std::string input) : input_(std::move(input)) {
  scan(text, line);
}

void Tokens::scan(std::string_view text, uint32_t line) {
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '\n') {
      ++line;
      ++at;
      continue;
    }
    if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
      ++at;
      continue;
    }
    size_t length = 1;
    if (text.substr(at, 2) == "(*") {
      length = comment_length(text, at);
      if (length == std::string_view::npos) {
        fail_at(line,
                "expected '*)' to end the comment that begins here, found the end of the file");
        break;
      }
      line += static_cast<uint32_t>(std::count(text.begin() + static_cast<ptrdiff_t>(at),
                                               text.begin() + static_cast<ptrdiff_t>(at + length),
                                               '\n'));
      at += length;
      continue;
    }
    Token::Kind kind = Token::Kind::kStrange;
    if (is_letter(c) || is_digit(c)) {
      kind = is_digit(c) ? Token::Kind::kNumber : Token::Kind::kName;
      while (at + length < text.size() &&
             (is_letter(text[at + length]) || is_digit(text[at + length]) ||
              (kind == Token::Kind::kName && text[at + length] == '.'))) {
        ++length;
      }
    } else if (const size_t of_symbol = symbol_length(text.substr(at)); of_symbol != 0) {
      kind = Token::Kind::kSymbol;
      length = of_symbol;
    }
    tokens_.push_back({kind, text.substr(at, length), line});
    at += length;
  }
  tokens_.push_back({Token::Kind::kEnd, {}, line});
}

const Token& Tokens::peek(size_t ahead) const {
  return tokens_[std::min(next_ + ahead, tokens_.size() - 1)];
}

Token Tokens::take() {
  const Token token = peek();
  if (next_ + 1 < tokens_.size()) {
    ++next_;
  }
  return token;
}

bool Tokens::at(std::string_view text, size_t ahead) const {
  return peek(ahead).kind != Token::Kind::kEnd && peek(ahead).text == text;
}

bool Tokens::accept(std::string_view text) {
  if (!at(text)) {
    return false;
  }
  take();
  return true;
}

bool Tokens::expect(std::string_view text) {
  return accept(text) || fail_expected(fmt::format("'{}'", text));
}

bool Tokens::parse_number(uint64_t& number) {
  const bool negative = at("-") && at_number(1);
  if (!negative && !at_number()) {
    return fail_expected("a number");
  }
  if (negative) {
    take();
  }
  std::string_view digits = peek().text;
  int base = 10;
  if (digits.size() > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) {
    digits.remove_prefix(2);
    base = 16;
  }
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    return fail_expected("a number of at most 64 bits");
  }
  take();
  if (negative) {
    number = 0 - number;
  }
  return true;
}

bool Tokens::fail_expected(std::string_view expected) {
  return fail_at(peek().line, fmt::format("expected {}, found {}", expected, found_text(peek())));
}

bool Tokens::fail_at(uint32_t line, std::string message) {
  if (!error_) {
    error_ = Error{ErrorKind::kMalformed, input_, fmt::format("line {}", line), std::move(message)};
  }
  return false;
}

}  // namespace tsomon::litmus
