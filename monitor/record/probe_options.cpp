#include "monitor/record/probe_options.h"

#include <array>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include "monitor/probe/options.h"

namespace tsomon {
namespace {

constexpr const char* kVariable = "TSOMON_OPTIONS";

}  // namespace

ProbeOptions::ProbeOptions() {
  if (const char* const present = std::getenv(kVariable)) {
    present_ = present;
  }
}

ProbeOptions::~ProbeOptions() {
  if (present_) {
    setenv(kVariable, present_->c_str(), 1);
  } else {
    unsetenv(kVariable);
  }
}

std::string ProbeOptions::problem() const {
  const auto parsed = std::make_unique<probe::Options>();
  std::array<char, 512> error{};
  if (!present_ ||
      probe::parse_options(present_->c_str(), parsed.get(), error.data(), error.size())) {
    return {};
  }
  return fmt::format("TSOMON_OPTIONS: {}", error.data());
}

bool ProbeOptions::has(std::string_view key) const {
  const std::string text = fmt::format(":{}", present_.value_or(""));
  return text.find(fmt::format(":{}", key)) != std::string::npos;
}

void ProbeOptions::add(std::string_view options) {
  std::string text = present_.value_or("");
  if (!text.empty() && text.back() != ':') {
    text += ':';
  }
  text += options;
  setenv(kVariable, text.c_str(), 1);
}

std::string output_option(std::string_view path) {
  std::string text = "output=";
  for (const char c : path) {
    text += c == ':' ? std::string("\\:") : std::string(1, c);
  }
  return text;
}

}  // namespace tsomon
