// Any bytes are results, or problems that are told; every report can be made of them, and what is JSON is.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "monitor/report/render.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tsomon::report;
  std::istringstream text(std::string(reinterpret_cast<const char*>(data), size));
  Results results;
  results.read(text, "fuzz");
  results.finish();
  std::ostringstream sarif;
  write_sarif(results, "1", sarif);
  std::ostringstream perfetto;
  write_perfetto(results, perfetto);
  if (!nlohmann::json::accept(sarif.str()) || !nlohmann::json::accept(perfetto.str())) {
    std::abort();
  }
  std::ostringstream others;
  write_text(results, others);
  write_html(results, {}, others);
  write_dot(results, others);
  write_perfetto_trace(results, others);
  if (others.str().empty()) {
    std::abort();
  }
  return 0;
}
