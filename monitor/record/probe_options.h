// The options of the probe in the environment of a program that is run for the user.
//
// Purpose     Adds options to what TSOMON_OPTIONS says already, and puts it back afterwards.
// Thread-safety: none: it changes the environment of this process. One at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tsomon {

class ProbeOptions {
 public:
  ProbeOptions();
  ProbeOptions(const ProbeOptions&) = delete;
  ProbeOptions& operator=(const ProbeOptions&) = delete;
  ~ProbeOptions();  // as it was

  // What is wrong with what the user has set, for the user; empty: nothing.
  std::string problem() const;
  // Whether the user has set it. `key` with its '=', as in "output=".
  bool has(std::string_view key) const;
  // The user's options, followed by these.
  void add(std::string_view options);

 private:
  std::optional<std::string> present_;
};

// "output=PATH" with what has a meaning in options escaped.
std::string output_option(std::string_view path);

}  // namespace tsomon
