#include "monitor/predict/prediction_part.h"

#include <utility>

#include <fmt/format.h>

namespace tsomon {

const char* name_of(AskedKind kind) {
  switch (kind) {
    case AskedKind::kRaces:
      return "races";
    case AskedKind::kDeadlocks:
      return "deadlocks";
    case AskedKind::kAtomicity:
      return "atomicity";
    default:
      return "lifetimes";
  }
}

const char* name_of(Dropped why) {
  switch (why) {
    case Dropped::kExchanged:
      return "exchanged";
    case Dropped::kRefused:
      return "refused";
    default:
      return "not counted";
  }
}

const predict::AskedPlaces& AskedOfKinds::of(AskedKind kind) const {
  switch (kind) {
    case AskedKind::kRaces:
      return races;
    case AskedKind::kDeadlocks:
      return deadlocks;
    case AskedKind::kAtomicity:
      return violations;
    default:
      return lifetimes;
  }
}

predict::AskedPlaces& AskedOfKinds::of(AskedKind kind) {
  return const_cast<predict::AskedPlaces&>(std::as_const(*this).of(kind));
}

std::string not_counted_note(uint64_t predictions, const std::string& why) {
  return fmt::format("{} predictions do not count: {}", predictions, why);
}

}  // namespace tsomon
