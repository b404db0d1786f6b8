#include "decoders/litmus/test.h"

#include <algorithm>

namespace tsomon::litmus {

bool holds(const Proposition& proposition, const std::vector<Observable>& observed,
           const std::vector<machine::Value>& values) {
  const auto& parts = proposition.parts;
  const auto part_holds = [&](const Proposition& part) { return holds(part, observed, values); };
  switch (proposition.kind) {
    case Proposition::Kind::kTrue:
      return true;
    case Proposition::Kind::kFalse:
      return false;
    case Proposition::Kind::kEqual:
      return values[proposition.left] ==
             machine::truncate(proposition.value, observed[proposition.left].width);
    case Proposition::Kind::kSame:
      return values[proposition.left] == values[proposition.right];
    case Proposition::Kind::kNot:
      return !part_holds(parts[0]);
    case Proposition::Kind::kAnd:
      return std::all_of(parts.begin(), parts.end(), part_holds);
    case Proposition::Kind::kOr:
      return std::any_of(parts.begin(), parts.end(), part_holds);
    case Proposition::Kind::kImplies:
      return !part_holds(parts[0]) || part_holds(parts[1]);
  }
  return false;
}

}  // namespace tsomon::litmus
