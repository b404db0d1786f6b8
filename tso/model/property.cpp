#include "tso/model/property.h"

#include <array>
#include <cstddef>
#include <utility>

namespace tsomon {
namespace {

constexpr std::array<std::pair<Property, const char*>, 4> kProperties = {{
    {Property::kSerializability, "serializability"},
    {Property::kRobustness, "robustness"},
    {Property::kScSerializability, "sc-serializability"},
    {Property::kAtomicSets, "atomic-sets"},
}};

}  // namespace

const char* property_name(Property property) {
  return kProperties[static_cast<size_t>(property)].second;
}

std::optional<Property> property_named(std::string_view name) {
  for (const auto& [property, known] : kProperties) {
    if (name == known) {
      return property;
    }
  }
  return std::nullopt;
}

const char* verdict_name(Verdict verdict, Property property) {
  switch (verdict) {
    case Verdict::kClean:
      return property == Property::kRobustness ? "robust" : "serializable";
    case Verdict::kPossible:
      return "possible";
    case Verdict::kDefinite:
      return "definite";
    case Verdict::kInconclusive:
      break;
  }
  return "inconclusive";
}

}  // namespace tsomon
