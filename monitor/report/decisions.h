// What `critical-races` says of a program, or `explore` of one in which it found something, as a tree: which race was
// decided how, and what came of it.
//
// Purpose     The sequences of races of the JSON have beginnings in common. Put together by these they are the part of the
//             tree of all interleavings in which something goes wrong, from the first race that decides to the last.
// Bounds      kMostRaces of a sequence, kMostNodes of a tree; what is beyond is counted.
// Complexity  O(size) times its logarithm. Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tsomon::report {

struct Race {
  std::string label;  // "WG"
  std::string first;  // what came first: "load"
  std::string first_at;
  std::string second;
  std::string second_at;
  std::string otherwise;  // the label of what follows where the second comes first

  auto operator<=>(const Race&) const = default;
};

// The races on the way to faulty interleavings.
struct RaceSequence {
  std::vector<Race> races;
  uint64_t count = 0;  // interleavings
  bool cut = false;    // there are more races than these
};

struct Decisions {
  static constexpr size_t kMostRaces = 100;
  static constexpr size_t kMostNodes = 2'000;

  std::string program;
  std::string model;    // "sc" or "tso"
  uint64_t leaves = 0;  // interleavings
  uint64_t faulty = 0;
  std::vector<RaceSequence> sequences;
};

// Of an object of `critical-races`, or of one of `explore` that has `decided`.
Decisions decisions_of(const nlohmann::ordered_json& object);
// As nested lists.
std::string decisions_html(const Decisions& decisions);

}  // namespace tsomon::report
