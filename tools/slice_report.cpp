#include "tools/slice_report.h"

#include <fmt/format.h>

#include "monitor/judge/check.h"
#include "tools/command.h"
#include "tools/findings_option.h"
#include "tools/output.h"

namespace tsomon {
namespace {

double seconds(std::chrono::microseconds time) { return static_cast<double>(time.count()) / 1e6; }

std::string last_line(const std::string& text) {
  const size_t end = text.find_last_not_of('\n');
  return end == std::string::npos
             ? text
             : text.substr(text.rfind('\n', end) + 1, end - text.rfind('\n', end));
}

}  // namespace

bool SliceReport::add(const nlohmann::ordered_json& finding, const std::string& property,
                      uint64_t slice) {
  const std::string fingerprint = finding.value("fingerprint", "");
  const auto [found, is_new] = seen_.try_emplace(property + ' ' + fingerprint);
  Seen& seen = found->second;
  if (is_new) {
    order_.push_back(found->first);
    seen.finding = finding;
    seen.property = property;
    seen.first_slice = slice;
  }
  seen.count += finding.value("count", uint64_t{1});
  seen.slices += seen.last_slice == slice ? 0 : 1;
  seen.last_slice = slice;
  return is_new;
}

void SliceReport::judged(uint64_t slice, std::chrono::microseconds at, CheckedProperties& checked) {
  const std::string input = fmt::format("{}: slice {} at {:.3f} s", name_, slice, seconds(at));
  for (const std::string& warning : checked.warnings) {
    std::string kind = warning;
    std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
    if (warned_.insert(kind).second) {
      put_messages(output_.tool, input, {warning});
    }
  }
  for (const CheckReport& report : checked.reports) {
    events_ += report.events;
    HiddenFindings hidden(filter_);
    const ReportChoice choice{checked.names, false, &hidden};
    const auto object = report_json(input, checked.symbols, report, choice);
    bool is_new = false;
    for (const auto& finding : object.value("findings", nlohmann::ordered_json::array())) {
      is_new |= add(finding, object.value("property", ""), slice);
    }
    status_ = worse(status_, status_of(report.verdict(), hidden, report.complete()));
    if (report.violations() != 0 && verdict_ != verdict_name(Verdict::kDefinite)) {
      verdict_ = verdict_name(report.verdict());
    }
    if (!is_new || hidden.all()) {
      continue;
    }
    HiddenFindings again(filter_);
    const std::string text =
        report_text(input, checked.symbols, report, {checked.names, false, &again, output_.shape});
    if (const std::string line = last_line(text);
        line.starts_with("SUMMARY: ") &&
        (last_line_.empty() || !last_line_.starts_with("SUMMARY: definite"))) {
      last_line_ = line;
    }
    if (output_.format == OutputFormat::kText) {
      put_lines(output_.file, text);
    }
  }
}

void SliceReport::put_json_summary(const SamplingSummary& summary) const {
  nlohmann::ordered_json object = {
      {"file", name_},
      {"events", events_},
      {"verdict", verdict_},
      {"complete", false},
      {"slices", {{"number", summary.slices}, {"watched_seconds", seconds(summary.watched)}}},
      {"elapsed_seconds", seconds(summary.elapsed)},
      {"share", summary.share()},
      {"incomplete_units", summary.cut_units},
      {"slices_without_threads", summary.without_threads}};
  if (!summary.ended.empty()) {
    object["ended"] = summary.ended;
  }
  uint64_t all = 0;
  object["violations"] = 0;
  object["findings"] = nlohmann::ordered_json::array();
  for (const std::string& key : order_) {
    const Seen& seen = seen_.at(key);
    nlohmann::ordered_json finding = seen.finding;
    finding["property"] = seen.property;
    finding["count"] = seen.count;
    finding["slices"] = seen.slices;
    finding["first_slice"] = seen.first_slice;
    finding["last_slice"] = seen.last_slice;
    finding.erase("first");  // numbers of events in one slice
    finding.erase("last");
    object["findings"].push_back(std::move(finding));
    all += seen.count;
  }
  object["violations"] = all;
  put_json(output_.file, object, output_.tool);
}

void SliceReport::summary(const SamplingSummary& summary) {
  if (status_ == kExitClean && order_.empty()) {
    status_ = kExitInconclusive;  // what was not watched may have violated anything
  }
  if (output_.format == OutputFormat::kJson) {
    return put_json_summary(summary);
  }
  std::string out = fmt::format(
      "{}: {} slices, {:.3f} s watched of {:.3f} s ({:.2f}%); units cut: {}; slices in which "
      "nobody took "
      "part: {}\n",
      name_, summary.slices, seconds(summary.watched), seconds(summary.elapsed),
      100 * summary.share(), summary.cut_units, summary.without_threads);
  if (!summary.ended.empty()) {
    out += fmt::format("    {}\n", summary.ended);
  }
  for (const std::string& key : order_) {
    const Seen& seen = seen_.at(key);
    out += fmt::format("    {} {}: {} times in {} slices, the first in slice {}\n", seen.property,
                       seen.finding.value("fingerprint", ""), seen.count, seen.slices,
                       seen.first_slice);
  }
  out += last_line_.empty() ? "SUMMARY: inconclusive: no violation seen in what was watched\n"
                            : last_line_ + "\n";
  put_lines(output_.file, out);
}

}  // namespace tsomon
