#include "tso/support/quantity.h"

#include <array>
#include <charconv>
#include <string_view>
#include <utility>

namespace tsomon {
namespace {

// Digits and a point, as a whole.
std::optional<double> plain_number(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  const bool digits = text.find_first_not_of("0123456789.") == std::string_view::npos;
  return error == std::errc() && rest == end && digits ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<std::chrono::microseconds> parse_duration(const std::string& text) {
  using Unit = std::pair<std::string_view, double>;
  static constexpr std::array<Unit, 7> kUnits{{{"us", 1},
                                               {"ms", 1e3},
                                               {"s", 1e6},
                                               {"m", 60e6},
                                               {"h", 3600e6},
                                               {"d", 24 * 3600e6},
                                               {"", 1e6}}};
  constexpr double kMost = 1e14;
  const size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  const auto value = plain_number(std::string_view(text).substr(0, end));
  for (const auto& [name, microseconds] : kUnits) {
    if (value && name == std::string_view(text).substr(end) && *value * microseconds >= 1 &&
        *value * microseconds <= kMost) {
      return std::chrono::microseconds(static_cast<int64_t>(*value * microseconds));
    }
  }
  return std::nullopt;
}

std::optional<double> parse_share(const std::string& text) {
  const bool percent = text.ends_with('%');
  auto share = plain_number(std::string_view(text).substr(0, text.size() - (percent ? 1 : 0)));
  if (share && percent) {
    *share /= 100;
  }
  return share && *share > 0 && *share <= 1 ? share : std::nullopt;
}

}  // namespace tsomon
