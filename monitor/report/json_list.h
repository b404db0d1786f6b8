// The elements of a JSON array, each written as soon as it is made, on a line of its own.
//
// Thread-safety: none.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>

#include "monitor/findings/result_json.h"

namespace tsomon::report {

class JsonList {
 public:
  explicit JsonList(std::ostream* out) : out_(*out) { out_ << '['; }
  void add(const nlohmann::ordered_json& element) {
    out_ << (any_ ? ",\n" : "\n") << json_text(element);
    any_ = true;
  }
  void end() { out_ << "\n]"; }

 private:
  std::ostream& out_;
  bool any_ = false;
};

}  // namespace tsomon::report
