// What the texts of findings are put together from.
#pragma once

#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "monitor/findings/reported_cycle.h"
#include "monitor/findings/text_shape.h"
#include "tso/support/printable.h"

namespace tsomon {

// What is left out of a long list.
struct Fold {
  size_t first;  // shown in front of the gap,
  size_t last;   // and behind it

  bool hides(size_t i, size_t size, const TextShape& shape) const {
    return !shape.verbose && size > first + last + 1 && i >= first && i < size - last;
  }
  // Requires that something is hidden.
  std::string line(size_t size, const char* what) const {
    return fmt::format("  ... {} more {} (--verbose and --output json have all)\n",
                       size - first - last, what);
  }
};

inline std::string padded(const std::string& text, size_t width) {
  const size_t own = text_width(text);
  return text + std::string(width > own ? width - own : 0, ' ');
}

inline const std::string& shown_operand(const ReportedAccess& access) {
  return access.variable.empty() ? access.operand : access.variable;
}

}  // namespace tsomon
