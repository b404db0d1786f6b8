// Any bytes are a history, in every format, or an error; whatever is a history has a verdict, and a
// linearization is one that replays.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "decoders/histories/reader.h"
#include "offline/linearizability/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tsomon::HistoryFormat;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const HistoryFormat format :
       {HistoryFormat::kAuto, HistoryFormat::kStd, HistoryFormat::kEtcd, HistoryFormat::kEdn,
        HistoryFormat::kHist, HistoryFormat::kLog}) {
    const auto history = tsomon::read_history(text, "fuzz", format);
    if (!history) {
      if (history.error().message.empty()) {
        std::abort();
      }
      continue;
    }
    tsomon::linearizability::Options options;
    options.bounds = {20'000, size_t{16} << 20};
    options.want_linearization = true;
    const auto report = tsomon::linearizability::check(*history, options);
    using tsomon::linearizability::Verdict;
    if (report && report->verdict == Verdict::kViolation && report->violation->lines.empty()) {
      std::abort();
    }
  }
  return 0;
}
