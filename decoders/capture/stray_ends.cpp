#include "decoders/capture/stray_ends.h"

#include <fmt/format.h>

namespace tsomon::capture {

void StrayEnds::add(const StrayEnds& others) {
  if (count == 0 && others.count != 0) {
    first = others.first;
  }
  count += others.count;
}

std::string StrayEnds::describe() const {
  return fmt::format("{}: a unit ends that never began{}", first,
                     count == 1 ? "" : fmt::format("; {} ends like this one in all", count));
}

}  // namespace tsomon::capture
