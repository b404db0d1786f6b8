// The end of a litmus test: `locations [...]`, `filter` and the condition.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "decoders/litmus/instructions.h"
#include "decoders/litmus/test.h"
#include "decoders/litmus/tokens.h"

namespace tsomon::litmus {

// A thread number as in "1:" or "P1:" at the next token; the token and the colon are taken.
std::optional<uint32_t> accept_thread(Tokens& tokens);
bool at_thread(const Tokens& tokens);

class ConditionParser {
 public:
  ConditionParser(Tokens& tokens, Syntax syntax, Locations& locations, LitmusTest& test)
      : tokens_(tokens), syntax_(syntax), locations_(locations), test_(test) {}

  // Fills observed, filter, quantifier and proposition of the test.
  bool parse();

 private:
  bool parse_locations();
  bool parse_filter();
  bool parse_quantifier();
  bool parse_alternatives();
  bool parse_observable(uint32_t& index);
  bool parse_or(Proposition& out);
  bool parse_and(Proposition& out);
  bool parse_implies(Proposition& out);
  bool parse_not(Proposition& out);
  bool parse_atom(Proposition& out);
  bool enter();
  bool at_location() const;

  Tokens& tokens_;
  Syntax syntax_;
  Locations& locations_;
  LitmusTest& test_;
  std::map<std::string, uint32_t> indices_;  // of observed, by name
  uint32_t nesting_ = 0;
};

}  // namespace tsomon::litmus
