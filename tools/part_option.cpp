#include "tools/part_option.h"

#include <charconv>
#include <cstdint>

#include <fmt/format.h>

namespace tsomon {
namespace {

constexpr uint64_t kMostParts = 10'000;

}  // namespace

std::optional<PartChoice> part_named(const std::string& text) {
  PartChoice part;
  const char* const end = text.data() + text.size();
  const auto [slash, first] = std::from_chars(text.data(), end, part.number);
  if (first != std::errc() || slash == end || *slash != '/') {
    return std::nullopt;
  }
  const auto [last, second] = std::from_chars(slash + 1, end, part.of);
  const bool good = second == std::errc() && last == end && part.number >= 1 &&
                    part.number <= part.of && part.of <= kMostParts;
  return good ? std::optional(part) : std::nullopt;
}

CLI::Option* add_part_option(CLI::App& command, std::string& part, const std::string& text) {
  return command.add_option("--part", part, text)
      ->option_text("K/N")
      ->check([](const std::string& given) {
        return part_named(given)
                   ? std::string()
                   : fmt::format("expected K/N with K from 1 to N, and N at most {}, found {}",
                                 kMostParts, given);
      });
}

}  // namespace tsomon
