// What is asked about a trace, and how questions and answers are called.
//
// Purpose     One place for the names: of --property, of reports in text and JSON, of the embedded monitor.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tso/model/outcome.h"

namespace tsomon {

enum class Property : uint8_t {
  kSerializability,
  kRobustness,
  kScSerializability,
  kAtomicSets,
};

// As --property takes it.
const char* property_name(Property property);
std::optional<Property> property_named(std::string_view name);

// "serializable", for robustness "robust"; "possible", "definite" or "inconclusive".
const char* verdict_name(Verdict verdict, Property property = Property::kSerializability);

// By which units are searched: atomic sets have an analysis of their own (tso/check/atomic_sets.h); what else is asked
// of their units is asked as for serializability.
inline Property searched_as(Property property) {
  return property == Property::kAtomicSets ? Property::kSerializability : property;
}

// Whether it is about store buffers: without them, or with an event missing that a load may have been forwarded from,
// the answer may be another one.
inline bool is_about_buffers(Property property) {
  return property == Property::kSerializability || property == Property::kRobustness;
}

}  // namespace tsomon
