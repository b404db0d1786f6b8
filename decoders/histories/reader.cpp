#include "decoders/histories/reader.h"

#include <cctype>

#include "decoders/histories/builder.h"

namespace tsomon {
namespace {

bool is_call_line(std::string_view line) {
  const size_t end = line.find(']');
  if (line.front() != '[' || end == std::string_view::npos) {
    return false;
  }
  std::string_view rest = line.substr(end + 1);
  const std::string_view word = histories::take_word(&rest);
  return word == "call" || word == "return";
}

}  // namespace

std::optional<HistoryFormat> history_format(std::string_view name) {
  constexpr std::string_view kNames[] = {"auto", "std", "etcd", "edn", "hist", "log"};
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i]) {
      return static_cast<HistoryFormat>(i);
    }
  }
  return std::nullopt;
}

HistoryFormat detect_history_format(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = histories::trimmed(histories::take_line(&text));
    if (line.empty() || line.front() == '#') {
      continue;
    }
    if (is_call_line(line)) {
      return HistoryFormat::kHist;
    }
    if (std::string_view("{[(;").find(line.front()) != std::string_view::npos) {
      return HistoryFormat::kEdn;
    }
    if (line.find('|') != std::string_view::npos) {
      return HistoryFormat::kStd;
    }
    if (line.find(" - ") != std::string_view::npos && line.find(':') != std::string_view::npos) {
      return HistoryFormat::kEtcd;
    }
    return line.find_first_of(" \t") == std::string_view::npos ? HistoryFormat::kStd
                                                               : HistoryFormat::kLog;
  }
  return HistoryFormat::kStd;
}

Result<History> read_history(std::string_view text, const std::string& name, HistoryFormat format) {
  switch (format == HistoryFormat::kAuto ? detect_history_format(text) : format) {
    case HistoryFormat::kEtcd:
      return histories::read_etcd_log(text, name);
    case HistoryFormat::kEdn:
      return histories::read_edn_history(text, name);
    case HistoryFormat::kHist:
      return histories::read_call_lines(text, name);
    case HistoryFormat::kLog:
      return histories::read_interval_log(text, name);
    case HistoryFormat::kStd:
    case HistoryFormat::kAuto:
      break;
  }
  return histories::read_std_calls(text, name);
}

}  // namespace tsomon
