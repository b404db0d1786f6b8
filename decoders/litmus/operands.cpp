#include "decoders/litmus/operands.h"

#include <fmt/format.h>

#include "decoders/litmus/registers.h"

namespace tsomon::litmus {

namespace {

constexpr machine::Value kFirstAddress = machine::Value{1} << 40;
constexpr machine::Value kAddressStep = 4096;

uint8_t pointer_width(std::string_view word) {
  const std::string lower = lower_case(word);
  return lower == "byte"    ? 1
         : lower == "word"  ? 2
         : lower == "dword" ? 4
         : lower == "qword" ? 8
                            : 0;
}

bool parse_intel_memory(Tokens& tokens, Locations& locations, Argument& argument) {
  if (!tokens.expect("[")) {
    return false;
  }
  if (!tokens.at_name() || find_register(tokens.peek().text)) {
    return tokens.fail_expected("the name of a location (addresses in registers are not read)");
  }
  argument.kind = Argument::Kind::kMemory;
  argument.location = locations.find_or_add(tokens.take().text);
  return tokens.expect("]");
}

bool parse_intel_argument(Tokens& tokens, Locations& locations, Argument& argument) {
  if (tokens.at("$") || tokens.at_number() || tokens.at("-")) {
    tokens.accept("$");
    return tokens.parse_number(argument.value);
  }
  if (tokens.at_name()) {
    argument.width = pointer_width(tokens.peek().text);
    if (argument.width != 0) {
      tokens.take();
      if (lower_case(tokens.peek().text) != "ptr") {
        return tokens.fail_expected("'ptr'");
      }
      tokens.take();
      return parse_intel_memory(tokens, locations, argument);
    }
    if (const auto found = find_register(tokens.peek().text)) {
      tokens.take();
      argument.kind = Argument::Kind::kRegister;
      argument.number = found->number;
      argument.width = found->width;
      return true;
    }
  }
  if (!tokens.at("[")) {
    return tokens.fail_expected("a register, a location as '[x]' or a number as '$1'");
  }
  return parse_intel_memory(tokens, locations, argument);
}

class AttOperand {
 public:
  AttOperand(Tokens& tokens, Locations& locations, Argument& argument)
      : tokens_(tokens), locations_(locations), argument_(argument) {}

  bool parse() {
    if (tokens_.accept("$")) {
      return parse_immediate();
    }
    if (tokens_.at_number() || tokens_.at("-")) {
      // As herd has it: a number that stands alone is an immediate, not an address.
      return tokens_.parse_number(argument_.value) && (!at_bracket() || parse_brackets());
    }
    if (at_bracket()) {
      return parse_brackets();
    }
    if (tokens_.at("%") || at_register()) {
      const auto found = take_register();
      if (!found) {
        return false;
      }
      argument_.kind = Argument::Kind::kRegister;
      argument_.number = found->number;
      argument_.width = found->width;
      return true;
    }
    if (!tokens_.at_name()) {
      return tokens_.fail_expected("a register as '%eax', a location as '(x)' or a number as '$1'");
    }
    parse_location();
    return !tokens_.accept("(") ||
           (tokens_.expect("%") && tokens_.expect("rip") && tokens_.expect(")"));
  }

 private:
  bool at_bracket() const { return tokens_.at("(") || tokens_.at("["); }
  bool at_register() const {
    return tokens_.at_name() && find_register(tokens_.peek().text).has_value();
  }

  std::optional<RegisterName> take_register() {
    tokens_.accept("%");
    const auto found =
        tokens_.at_name() ? find_register(tokens_.peek().text) : std::optional<RegisterName>{};
    if (found) {
      tokens_.take();
    } else {
      tokens_.fail_expected("a register");
    }
    return found;
  }

  std::optional<machine::Register> take_address_register() {
    const Token token = tokens_.peek(tokens_.at("%") ? 1 : 0);
    const auto found = take_register();
    if (!found || found->width == 8) {
      return found ? std::optional(found->number) : std::nullopt;
    }
    tokens_.fail_at(token.line, fmt::format("expected a register of 64 bits in an address, found "
                                            "'{}'",
                                            token.text));
    return std::nullopt;
  }

  bool parse_immediate() {
    if (!tokens_.at_name()) {
      return tokens_.parse_number(argument_.value);
    }
    argument_.value = Locations::address_of(locations_.find_or_add(tokens_.take().text));
    return true;
  }

  void parse_location() {
    argument_.kind = Argument::Kind::kMemory;
    argument_.location = locations_.find_or_add(tokens_.take().text);
  }

  // What stands before the bracket, if anything, is in the argument's value.
  bool parse_brackets() {
    const char* const closing = tokens_.at("(") ? ")" : "]";
    tokens_.take();
    if (tokens_.at_name() && !at_register()) {
      if (argument_.value != 0) {
        return tokens_.fail_expected("a register after an offset");
      }
      parse_location();
      return tokens_.expect(closing);
    }
    if (!tokens_.at("%") && !at_register()) {
      return tokens_.fail_expected("a location or a register as '%rdi'");
    }
    argument_.kind = Argument::Kind::kMemory;
    Address address;
    address.displacement = argument_.value;
    const auto base = take_address_register();
    if (!base) {
      return false;
    }
    address.base = *base;
    if (tokens_.accept(",")) {
      address.index = take_address_register();
      if (!address.index || (tokens_.accept(",") && !tokens_.parse_number(address.scale))) {
        return false;
      }
    }
    argument_.address = address;
    return tokens_.expect(closing);
  }

  Tokens& tokens_;
  Locations& locations_;
  Argument& argument_;
};

}  // namespace

machine::Location Locations::find_or_add(std::string_view name) {
  const machine::Location location = names_.intern(name);
  if (location == widths_.size()) {
    widths_.push_back(0);
  }
  return location;
}

bool Locations::require_width(Tokens& tokens, uint32_t line, machine::Location location,
                              uint8_t width) {
  if (widths_[location] == 0) {
    widths_[location] = width;
  }
  if (widths_[location] != width) {
    return tokens.fail_at(line, fmt::format("expected an access of {} bytes to '{}', as before, "
                                            "found one of {} (one location has one size)",
                                            widths_[location], names_.text(location), width));
  }
  return true;
}

machine::Value Locations::address_of(machine::Location location) {
  return kFirstAddress + kAddressStep * location;
}

std::optional<machine::Location> Locations::at_address(machine::Value address) const {
  const machine::Value offset = address - kFirstAddress;
  if (address < kFirstAddress || offset % kAddressStep != 0 || offset / kAddressStep >= size()) {
    return std::nullopt;
  }
  return static_cast<machine::Location>(offset / kAddressStep);
}

bool parse_argument(Tokens& tokens, Syntax syntax, Locations& locations, Argument& argument) {
  return syntax == Syntax::kAtt ? AttOperand(tokens, locations, argument).parse()
                                : parse_intel_argument(tokens, locations, argument);
}

}  // namespace tsomon::litmus
