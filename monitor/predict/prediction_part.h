// What one part of a prediction knows that others need, when the windows of an input are handed out (merge_parts.h).
//
// Asked       The places of each kind, with the first window in which they were found.
// Dropped     What was found and is not reported, for what the whole input says.
// Thread-safety: none.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "offline/predict/asked_places.h"

namespace tsomon {

enum class AskedKind : uint8_t { kRaces, kDeadlocks, kAtomicity, kLifetimes };
inline constexpr std::array<AskedKind, 4> kAskedKinds = {
    AskedKind::kRaces, AskedKind::kDeadlocks, AskedKind::kAtomicity, AskedKind::kLifetimes};
// As in JSON: "races".
const char* name_of(AskedKind kind);

// By kind.
struct AskedOfKinds {
  predict::AskedPlaces races;
  predict::AskedPlaces deadlocks;
  predict::AskedPlaces violations;
  predict::AskedPlaces lifetimes;

  predict::AskedPlaces& of(AskedKind kind);
  const predict::AskedPlaces& of(AskedKind kind) const;
};

enum class Dropped : uint8_t {
  kExchanged,  // the memory is atomic: it is no candidate
  kRefused,    // it counts as refused
  kNotCounted  // nothing counts
};
const char* name_of(Dropped why);

struct DroppedFinding {
  AskedKind kind = AskedKind::kRaces;
  predict::FoundPlaces in;
  Dropped why = Dropped::kRefused;
};

struct PredictionPart {
  AskedOfKinds asked;
  std::vector<DroppedFinding> dropped;
  std::vector<uint64_t> numbers;  // of the events, in the order of the run
  std::string not_counted;        // why nothing counts
};

// "3 predictions do not count: why".
std::string not_counted_note(uint64_t predictions, const std::string& why);

}  // namespace tsomon
