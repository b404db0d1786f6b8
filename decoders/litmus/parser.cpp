#include "decoders/litmus/parser.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "decoders/litmus/condition.h"
#include "decoders/litmus/instructions.h"
#include "decoders/litmus/registers.h"
#include "decoders/litmus/tokens.h"

namespace tsomon::litmus {

namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\n'; }

// Where the initial state begins, and the name of the test. Between the first line and the '{'
// stand titles in quotes, remarks and 'Key=value' lines, none of which mean anything to a model.
struct Header {
  Syntax syntax = Syntax::kIntel;
  std::string name;
  size_t body = std::string_view::npos;  // offset of '{'
  uint32_t line = 1;                     // of `body`
};

std::string_view next_word(std::string_view text, size_t& at) {
  const size_t begin = at;
  while (at < text.size() && !is_space(text[at]) && text[at] != '{') {
    ++at;
  }
  return text.substr(begin, at - begin);
}

bool skip_to_body(std::string_view text, size_t at, Header& header) {
  bool line_start = false;
  while (at < text.size() && text[at] != '{') {
    const char c = text[at];
    size_t length = 1;
    if (text.substr(at, 2) == "(*") {
      length = comment_length(text, at);
      if (length == std::string_view::npos) {
        return false;
      }
    } else if (c == '"' || (line_start && !is_space(c))) {
      // A string ends on its line or is none; a 'Key=value' line may hold any character.
      const size_t line_end = std::min(text.find('\n', at), text.size());
      const std::string_view line = text.substr(at, line_end - at);
      const size_t quote = c == '"' ? line.find('"', 1) : std::string_view::npos;
      if (quote != std::string_view::npos) {
        length = quote + 1;
      } else if (c != '"') {
        const size_t equals = line.find('=');
        const bool is_key =
            equals != std::string_view::npos && line.find_first_of(" \t{\"") > equals;
        length = is_key ? line.size() : 1;
      }
    }
    const std::string_view skipped = text.substr(at, length);
    header.line += static_cast<uint32_t>(std::count(skipped.begin(), skipped.end(), '\n'));
    line_start = is_space(c) && (line_start || c == '\n');
    at += length;
  }
  header.body = at;
  return at < text.size();
}

Result<Header> parse_header(std::string_view text, const std::string& input) {
  Header header;
  const auto malformed = [&](uint32_t line, std::string message) {
    return tl::unexpected<Error>(
        Error{ErrorKind::kMalformed, input, fmt::format("line {}", line), std::move(message)});
  };
  size_t at = 0;
  while (at < text.size() && is_space(text[at])) {
    header.line += text[at] == '\n' ? 1 : 0;
    ++at;
  }
  if (at == text.size()) {
    return malformed(header.line,
                     "expected 'X86' or 'X86_64' and the name of a test, found an empty file");
  }
  const std::string_view architecture = next_word(text, at);
  if (architecture == "X86_64") {
    header.syntax = Syntax::kAtt;
  } else if (architecture != "X86") {
    const bool printable = std::all_of(architecture.begin(), architecture.end(),
                                       [](char c) { return c > ' ' && c <= '~'; });
    return malformed(
        header.line,
        fmt::format("expected 'X86' or 'X86_64', the architecture of the test, found {}",
                    printable ? fmt::format("'{}'", architecture.substr(0, 40))
                              : std::string("something that is no text")));
  }
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) {
    ++at;
  }
  header.name = std::string(next_word(text, at));
  if (header.name.empty()) {
    return malformed(header.line,
                     fmt::format("expected the name of the test after '{}', found the end of the "
                                 "line",
                                 architecture));
  }
  if (!skip_to_body(text, at, header)) {
    return malformed(header.line, "expected '{' and the initial state, found the end of the file");
  }
  return header;
}

class Parser {
 public:
  Parser(Tokens& tokens, Syntax syntax, LitmusTest& test)
      : tokens_(tokens), syntax_(syntax), test_(test) {}

  bool parse() {
    if (!parse_initial_state() || !parse_program()) {
      return false;
    }
    ConditionParser condition(tokens_, syntax_, locations_, test_);
    if (!condition.parse() || !skip_show_sections()) {
      return false;
    }
    finish();
    return true;
  }

 private:
  struct InitialRegister {
    uint32_t thread;
    RegisterName name;
    machine::Value value;
    uint32_t line;
  };

  bool parse_initial_state() {
    if (!tokens_.expect("{")) {
      return false;
    }
    while (!tokens_.accept("}")) {
      if (tokens_.accept(";")) {
        continue;
      }
      if (!parse_initial_value()) {
        return false;
      }
      if (!tokens_.at(";") && !tokens_.at("}")) {
        return tokens_.fail_expected("';' or '}' in the initial state");
      }
    }
    tokens_.accept(";");
    return true;
  }

  bool parse_initial_value() {
    const uint32_t line = tokens_.peek().line;
    uint8_t width = 0;
    if (tokens_.at_name() && !at_thread(tokens_) &&
        (tokens_.at_name(1) || tokens_.at_number(1) || tokens_.at("[", 1) || tokens_.at("*", 1))) {
      width = type_width(tokens_.peek().text);
      if (width == 0) {
        return tokens_.fail_expected("an integer type of C");
      }
      tokens_.take();
      const bool of_register = syntax_ == Syntax::kAtt && tokens_.at(":", 2);
      if (tokens_.at("*") && !(of_register && tokens_.accept("*"))) {
        return tokens_.fail_expected("a location or register (pointers are not read)");
      }
    }
    if (at_thread(tokens_)) {
      return parse_initial_register(line);
    }
    const bool bracketed = tokens_.accept("[");
    if (!tokens_.at_name()) {
      return tokens_.fail_expected("a location or register with its value, or '}'");
    }
    const Token name = tokens_.take();
    const machine::Location location = locations_.find_or_add(name.text);
    if (bracketed && !tokens_.expect("]")) {
      return false;
    }
    if (width != 0 && !locations_.require_width(tokens_, line, location, width)) {
      return false;
    }
    machine::Value value = 0;
    if (!parse_optional_value(value)) {
      return false;
    }
    if (!initialised_.insert(std::string(name.text)).second) {
      return tokens_.fail_at(
          line, fmt::format("expected one initial value for '{}', found another", name.text));
    }
    initial_memory_.emplace_back(location, value);
    return true;
  }

  bool parse_initial_register(uint32_t line) {
    const auto thread = accept_thread(tokens_);
    if (!thread) {
      return false;
    }
    const auto found =
        tokens_.at_name() ? find_register(tokens_.peek().text) : std::optional<RegisterName>{};
    if (!found) {
      return tokens_.fail_expected("a register");
    }
    const Token name = tokens_.take();
    machine::Value value = 0;
    if (syntax_ == Syntax::kAtt && tokens_.at("=") && tokens_.at_name(1)) {
      if (found->width != 8) {
        return tokens_.fail_at(
            line,
            fmt::format("expected a register of 64 bits for an address, found '{}'", name.text));
      }
      tokens_.take();
      value = Locations::address_of(locations_.find_or_add(tokens_.take().text));
    } else if (!parse_optional_value(value)) {
      return false;
    }
    // By number: EAX and RAX are one register.
    if (!initialised_.insert(fmt::format("{}:{}", *thread, found->number)).second) {
      return tokens_.fail_at(
          line,
          fmt::format("expected one initial value for '{}:{}', found another", *thread, name.text));
    }
    initial_registers_.push_back({*thread, *found, value, line});
    return true;
  }

  bool parse_optional_value(machine::Value& value) {
    if (!tokens_.accept("=")) {
      return true;
    }
    if (tokens_.at_name()) {
      return tokens_.fail_expected("a number (addresses as values are not read)");
    }
    return tokens_.parse_number(value);
  }

  static uint8_t type_width(std::string_view type) {
    constexpr std::array<std::pair<std::string_view, uint8_t>, 12> kTypes = {{
        {"char", 1},
        {"int8_t", 1},
        {"uint8_t", 1},
        {"short", 2},
        {"int16_t", 2},
        {"uint16_t", 2},
        {"int", 4},
        {"int32_t", 4},
        {"uint32_t", 4},
        {"long", 8},
        {"int64_t", 8},
        {"uint64_t", 8},
    }};
    for (const auto& [name, width] : kTypes) {
      if (name == type) {
        return width;
      }
    }
    return 0;
  }

  bool parse_program() {
    do {
      const std::string expected = fmt::format("P{}", builders_.size());
      if (builders_.size() == kMaxThreads) {
        return tokens_.fail_at(tokens_.peek().line,
                               fmt::format("expected at most {} threads", kMaxThreads));
      }
      if (!tokens_.expect(expected)) {
        return false;
      }
      builders_.emplace_back(syntax_);
    } while (tokens_.accept("|"));
    if (!tokens_.at(";")) {
      return tokens_.fail_expected("'|' or ';' after the name of a thread");
    }
    tokens_.take();
    test_.program.threads.resize(builders_.size());
    while (!at_program_end()) {
      if (!parse_row()) {
        return false;
      }
    }
    for (const InitialRegister& initial : initial_registers_) {
      if (initial.thread >= builders_.size()) {
        return tokens_.fail_at(initial.line, fmt::format("expected a thread below {}, found {}",
                                                         builders_.size(), initial.thread));
      }
    }
    for (const InitialRegister& initial : initial_registers_) {
      test_.program.threads[initial.thread].registers[initial.name.number] =
          machine::truncate(initial.value, initial.name.width);
    }
    for (size_t thread = 0; thread < builders_.size(); ++thread) {
      if (!builders_[thread].resolve(tokens_, locations_,
                                     test_.program.threads[thread].registers)) {
        return false;
      }
    }
    for (ThreadBuilder& builder : builders_) {
      builder.finish(locations_);
    }
    return true;
  }

  bool at_program_end() const {
    if (tokens_.peek().kind == Token::Kind::kEnd) {
      return true;
    }
    // A label may have any of these names, and 'not' is an instruction too.
    if (tokens_.at(":", 1)) {
      return false;
    }
    if (tokens_.at("not") && tokens_.at("exists", 1)) {
      return true;
    }
    constexpr std::array<std::string_view, 9> kEnds = {
        "locations", "exists", "forall", "final", "filter", "observed", "~", "(", "<<"};
    return std::any_of(kEnds.begin(), kEnds.end(),
                       [&](std::string_view end) { return tokens_.at(end); });
  }

  bool parse_row() {
    for (size_t column = 0; column < builders_.size(); ++column) {
      if (column > 0 && !tokens_.accept("|")) {
        return tokens_.fail_expected(
            fmt::format("'|': the program has {} columns", builders_.size()));
      }
      if (!builders_[column].parse_cell(tokens_, locations_)) {
        return false;
      }
    }
    if (!tokens_.accept(";")) {
      return tokens_.fail_expected(
          fmt::format("';': the program has {} columns", builders_.size()));
    }
    return true;
  }

  // "<<...>>" told an older tool what to draw.
  bool skip_show_sections() {
    while (tokens_.at("<<")) {
      const uint32_t line = tokens_.take().line;
      while (!tokens_.accept(">>")) {
        if (tokens_.peek().kind == Token::Kind::kEnd) {
          return tokens_.fail_at(line,
                                 "expected '>>' to end the section that begins here, found "
                                 "the end of the file");
        }
        tokens_.take();
      }
    }
    return tokens_.peek().kind == Token::Kind::kEnd || tokens_.fail_expected("the end of the test");
  }

  void finish() {
    machine::Program& program = test_.program;
    program.memory.assign(locations_.size(), 0);
    for (machine::Location location = 0; location < locations_.size(); ++location) {
      test_.locations.push_back(locations_.name(location));
    }
    for (const auto& [location, value] : initial_memory_) {
      program.memory[location] = machine::truncate(value, locations_.width(location));
    }
    for (size_t thread = 0; thread < builders_.size(); ++thread) {
      program.threads[thread].instructions = std::move(builders_[thread].instructions);
    }
  }

  Tokens& tokens_;
  Syntax syntax_;
  LitmusTest& test_;
  Locations locations_;
  std::set<std::string> initialised_;
  std::vector<std::pair<machine::Location, machine::Value>> initial_memory_;
  std::vector<InitialRegister> initial_registers_;
  std::vector<ThreadBuilder> builders_;
};

}  // namespace

Result<LitmusTest> parse_litmus(std::string_view text, const std::string& input) {
  auto header = parse_header(text, input);
  if (!header) {
    return tl::unexpected<Error>(std::move(header.error()));
  }
  LitmusTest test;
  test.name = std::move(header->name);
  Tokens tokens(text.substr(header->body), header->line, input);
  if (tokens.failed() || !Parser(tokens, header->syntax, test).parse()) {
    return tl::unexpected<Error>(tokens.error());
  }
  return test;
}

}  // namespace tsomon::litmus
