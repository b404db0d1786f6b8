#include "decoders/litmus/condition.h"

#include <charconv>

#include <fmt/format.h>

#include "decoders/litmus/parser.h"
#include "decoders/litmus/registers.h"

namespace tsomon::litmus {

bool at_thread(const Tokens& tokens) {
  if (!tokens.at(":", 1)) {
    return false;
  }
  const std::string_view text = tokens.peek().text;
  return tokens.at_number() || (tokens.at_name() && text.size() > 1 && text[0] == 'P' &&
                                text.find_first_not_of("0123456789", 1) == std::string_view::npos);
}

std::optional<uint32_t> accept_thread(Tokens& tokens) {
  std::string_view digits = tokens.peek().text;
  if (!digits.empty() && digits[0] == 'P') {
    digits.remove_prefix(1);
  }
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number >= kMaxThreads) {
    tokens.fail_expected(fmt::format("a thread number below {}", kMaxThreads));
    return std::nullopt;
  }
  tokens.take();
  if (!tokens.expect(":")) {
    return std::nullopt;
  }
  return number;
}

bool ConditionParser::parse() {
  return parse_locations() && parse_filter() && parse_quantifier() && parse_alternatives();
}

bool ConditionParser::parse_locations() {
  if (!tokens_.accept("locations")) {
    return true;
  }
  if (!tokens_.expect("[")) {
    return false;
  }
  while (!tokens_.accept("]")) {
    uint32_t index = 0;
    if (!parse_observable(index)) {
      return false;
    }
    if (!tokens_.accept(";") && !tokens_.at("]")) {
      return tokens_.fail_expected("';' or ']' in the list of locations");
    }
  }
  return true;
}

bool ConditionParser::parse_filter() {
  return !tokens_.accept("filter") || parse_or(test_.filter.emplace());
}

bool ConditionParser::parse_quantifier() {
  if (tokens_.peek().kind == Token::Kind::kEnd || tokens_.at("<<")) {
    test_.quantifier = Quantifier::kForall;  // of nothing: true, as herd has it
    return true;
  }
  if (tokens_.accept("~") || tokens_.accept("not")) {
    test_.quantifier = Quantifier::kNotExists;
    if (!tokens_.expect("exists")) {
      return false;
    }
  } else if (tokens_.accept("exists") || tokens_.accept("final") || tokens_.at("(")) {
    test_.quantifier = Quantifier::kExists;
  } else if (tokens_.accept("forall")) {
    test_.quantifier = Quantifier::kForall;
  } else {
    return tokens_.fail_expected("'exists', '~exists', 'forall' or 'final'");
  }
  if (!parse_or(test_.proposition)) {
    return false;
  }
  tokens_.accept(";");
  return true;
}

// "with tso: ~exists; ..." says what other models answer; herd does not judge by it either.
bool ConditionParser::parse_alternatives() {
  if (!tokens_.accept("with")) {
    return true;
  }
  do {
    if (!tokens_.at_name()) {
      return tokens_.fail_expected("the name of a model");
    }
    tokens_.take();
    if (!tokens_.expect(":")) {
      return false;
    }
    const bool negated = tokens_.accept("~");
    if (!tokens_.accept("exists") && (negated || !tokens_.accept("forall"))) {
      return tokens_.fail_expected("'exists', '~exists' or 'forall'");
    }
  } while (tokens_.accept(";") && tokens_.at_name());
  return true;
}

bool ConditionParser::at_location() const {
  return tokens_.at_name() || at_thread(tokens_) || tokens_.at("[");
}

bool ConditionParser::parse_observable(uint32_t& index) {
  Observable observable;
  const uint32_t line = tokens_.peek().line;
  if (at_thread(tokens_)) {
    const auto thread = accept_thread(tokens_);
    if (!thread) {
      return false;
    }
    const size_t threads = test_.program.threads.size();
    if (*thread >= threads) {
      return tokens_.fail_at(line,
                             fmt::format("expected a thread below {}, found {}", threads, *thread));
    }
    const auto found =
        tokens_.at_name() ? find_register(tokens_.peek().text) : std::optional<RegisterName>{};
    if (!found) {
      return tokens_.fail_expected("a register");
    }
    observable.is_register = true;
    observable.thread = static_cast<uint16_t>(*thread);
    observable.number = found->number;
    observable.width = found->width;
    // As herd prints them: 0:EAX of X86, 0:rax of X86_64.
    std::string name = lower_case(tokens_.take().text);
    for (char& c : name) {
      c = syntax_ == Syntax::kIntel && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
    observable.name = fmt::format("{}:{}", *thread, name);
  } else {
    const bool bracketed = tokens_.accept("[");
    if (!tokens_.at_name()) {
      return tokens_.fail_expected("a location or a register as '0:EAX'");
    }
    observable.name = std::string(tokens_.take().text);
    observable.location = locations_.find_or_add(observable.name);
    observable.width = locations_.width(observable.location);
    if (bracketed && !tokens_.expect("]")) {
      return false;
    }
  }
  const auto [entry, fresh] =
      indices_.emplace(observable.name, static_cast<uint32_t>(test_.observed.size()));
  if (fresh) {
    test_.observed.push_back(std::move(observable));
  }
  index = entry->second;
  return true;
}

bool ConditionParser::enter() {
  return ++nesting_ <= kMaxNesting ||
         tokens_.fail_at(tokens_.peek().line,
                         fmt::format("expected a condition of at most {} levels", kMaxNesting));
}

bool ConditionParser::parse_or(Proposition& out) {
  if (!enter()) {
    return false;
  }
  out.kind = Proposition::Kind::kOr;
  do {
    if (!parse_and(out.parts.emplace_back())) {
      return false;
    }
  } while (tokens_.accept("\\/"));
  --nesting_;
  return true;
}

bool ConditionParser::parse_and(Proposition& out) {
  out.kind = Proposition::Kind::kAnd;
  do {
    if (!parse_implies(out.parts.emplace_back())) {
      return false;
    }
  } while (tokens_.accept("/\\"));
  return true;
}

// Binds tighter than /\ and groups to the right, as in herd.
bool ConditionParser::parse_implies(Proposition& out) {
  if (!enter()) {
    return false;
  }
  Proposition left;
  if (!parse_not(left)) {
    return false;
  }
  if (tokens_.accept("=>")) {
    out.kind = Proposition::Kind::kImplies;
    out.parts.push_back(std::move(left));
    if (!parse_implies(out.parts.emplace_back())) {
      return false;
    }
  } else {
    out = std::move(left);
  }
  --nesting_;
  return true;
}

bool ConditionParser::parse_not(Proposition& out) {
  if (!tokens_.accept("~") && !tokens_.accept("not")) {
    return parse_atom(out);
  }
  if (!enter()) {
    return false;
  }
  out.kind = Proposition::Kind::kNot;
  if (!parse_not(out.parts.emplace_back())) {
    return false;
  }
  --nesting_;
  return true;
}

bool ConditionParser::parse_atom(Proposition& out) {
  if (tokens_.accept("(")) {
    return parse_or(out) && tokens_.expect(")");
  }
  if (tokens_.accept("true")) {
    out.kind = Proposition::Kind::kTrue;
    return true;
  }
  if (tokens_.accept("false")) {
    out.kind = Proposition::Kind::kFalse;
    return true;
  }
  if (!at_location()) {
    return tokens_.fail_expected("a condition as 'x=1', '0:EAX=1', '(', '~', 'true' or 'false'");
  }
  Proposition atom;
  if (!parse_observable(atom.left)) {
    return false;
  }
  const bool differs = tokens_.accept("!=") || tokens_.accept("<>");
  if (!differs) {
    if (!tokens_.accept("=")) {
      return tokens_.fail_expected("'=' or '!='");
    }
    tokens_.accept("=");  // '==' is '='
  }
  if (syntax_ == Syntax::kAtt && tokens_.at_name() && !at_thread(tokens_)) {
    return tokens_.fail_expected(
        "a number, a register or a location as '[x]' (addresses as values are not read)");
  }
  if (at_location()) {
    atom.kind = Proposition::Kind::kSame;
    if (!parse_observable(atom.right)) {
      return false;
    }
  } else {
    atom.kind = Proposition::Kind::kEqual;
    if (!tokens_.parse_number(atom.value)) {
      return false;
    }
  }
  if (differs) {
    out.kind = Proposition::Kind::kNot;
    out.parts.push_back(std::move(atom));
  } else {
    out = std::move(atom);
  }
  return true;
}

}  // namespace tsomon::litmus
