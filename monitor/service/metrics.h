// Numbers in Prometheus' text format.
//
// Form        Text format 0.0.4: HELP and TYPE of each family, then its samples. Label values may hold anything: they are made
//             printable and escaped as the format asks for.
// Complexity  O(size). Thread-safety: none.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace tsomon::service {

class MetricsText {
 public:
  enum class Type { kCounter, kGauge };
  using Label = std::pair<std::string_view, std::string_view>;

  // What follows belongs to it. Names are letters and underscores.
  void family(std::string_view name, Type type, std::string_view help);
  void sample(std::initializer_list<Label> labels, double value);
  const std::string& text() const { return text_; }

 private:
  std::string name_;
  std::string text_;
};

}  // namespace tsomon::service
