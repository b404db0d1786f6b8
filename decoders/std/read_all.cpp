#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "decoders/std/reader.h"
#include "tso/model/cancelled_units.h"

namespace tsomon {
namespace {

Result<Trace> read_all(StdReader reader) {
  Trace trace;
  EventBlock block;
  for (;;) {
    const auto more = reader.next(block);
    if (!more) {
      return tl::unexpected<Error>(more.error());
    }
    if (!*more) {
      break;
    }
    trace.append(block);
  }
  trace.symbols = reader.take_symbols();
  trace.complete = reader.complete();
  trace.lost_events = reader.lost_events();
  trace.sampled = reader.sampled();
  trace.selection = reader.selection();
  resolve_cancelled_units(trace, reader.may_cancel());
  return trace;
}

}  // namespace

Result<Trace> read_std(const std::string& path, const StdOptions& options) {
  auto reader = StdReader::open(path, options);
  if (!reader) {
    return tl::unexpected<Error>(reader.error());
  }
  return read_all(std::move(*reader));
}

Result<Trace> read_std_text(std::string_view text, const std::string& name,
                            const StdOptions& options) {
  return read_all(StdReader::from_text(text, name, options));
}

bool looks_like_std(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) {
    text.remove_prefix(3);
  }
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos || line[first] == '#') {
      continue;
    }
    const size_t bar = line.find('|');
    if (bar == std::string_view::npos || line.find('\0') != std::string_view::npos) {
      return false;
    }
    const size_t letters =
        std::min(line.find_first_not_of("abcdefghijklmnopqrstuvwxyz", bar + 1), line.size());
    return letters > bar + 1 && (letters == line.size() || line[letters] == '(' ||
                                 line[letters] == '|' || line[letters] == '\r');
  }
  return false;
}

}  // namespace tsomon
