// The kinds of predictions: the list of `predict` that each is in, what the store calls one, and what several are called.
#pragma once

#include <array>

namespace tsomon::service {

struct PredictedKind {
  const char* list;
  const char* property;
  const char* several;
};
inline constexpr std::array<PredictedKind, 5> kPredictedKinds = {{
    {"races", "race", "races"},
    {"deadlocks", "deadlock", "deadlocks"},
    {"atomicity_violations", "atomicity", "atomicity violations"},
    {"uses_after_free", "use-after-free", "uses after free"},
    {"uses_after_destroy", "use-after-destroy", "uses after destroy"},
}};

}  // namespace tsomon::service
