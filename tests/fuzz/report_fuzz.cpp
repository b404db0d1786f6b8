// Any bytes are results, or problems that are told; every report can be made of them, and what is JSON is.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "monitor/report/render.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tsomon::report;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Results results;
  results.read(text, "fuzz");
  results.finish();
  for (const std::string& json : {sarif_report(results, "1"), perfetto_report(results)}) {
    if (!nlohmann::json::accept(json)) {
      std::abort();
    }
  }
  if (text_report(results).size() + html_report(results).size() + dot_report(results).size() == 0) {
    std::abort();
  }
  return 0;
}
