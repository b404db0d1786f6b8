#include "tools/slice_report.h"

#include <fmt/format.h>

#include "monitor/judge/check.h"
#include "tools/command.h"
#include "tools/output.h"

namespace tsomon {
namespace {

double seconds(std::chrono::microseconds time) { return static_cast<double>(time.count()) / 1e6; }

std::string text_of_kinds(const SamplingSummary& summary) {
  std::string out;
  for (const SliceKind kind : {SliceKind::kFocus, SliceKind::kCold}) {
    if (const auto& of_kind = summary.kinds[static_cast<size_t>(kind)]; of_kind.slices != 0) {
      out +=
          fmt::format("    {} of them, {:.3f} s, of {}\n", of_kind.slices, seconds(of_kind.watched),
                      kind == SliceKind::kFocus ? "functions in focus" : "cold functions");
    }
  }
  if (summary.used.count() > 0) {
    const double used = seconds(summary.used);
    out += fmt::format(
        "    cost: about {:.2f}% of the {:.3f} s that its processors were busy, and {:.2f}% for "
        "judging\n",
        100 * seconds(summary.cost) / used, used, 100 * seconds(summary.judging) / used);
  }
  return out;
}

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

void SliceReport::judged(const JudgedSlice& slice) {
  CheckedProperties& checked = slice.checked;
  const std::string input =
      fmt::format("{}: slice {} at {:.3f} s", name_, slice.number, seconds(slice.at));
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
    const auto object = report.violations() == 0
                            ? nlohmann::ordered_json::object()
                            : report_json(input, checked.symbols, report, choice);
    bool is_new = false;
    for (const auto& finding : object.value("findings", nlohmann::ordered_json::array())) {
      is_new |= add(finding, object.value("property", ""), slice.number);
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
      {"slices",
       {{"number", summary.slices()}, {"watched_seconds", seconds(summary.everything().watched)}}},
      {"elapsed_seconds", seconds(summary.elapsed)},
      {"share", summary.share()},
      {"incomplete_units", summary.cut_units},
      {"slices_without_threads", summary.without_threads},
      {"slices_without_accesses", summary.without_accesses}};
  object["cost"] = {{"process_seconds", seconds(summary.used)},
                    {"watching_seconds", seconds(summary.cost)},
                    {"judging_seconds", seconds(summary.judging)}};
  for (const SliceKind kind : {SliceKind::kFocus, SliceKind::kCold}) {
    if (const auto& of_kind = summary.kinds[static_cast<size_t>(kind)]; of_kind.slices != 0) {
      object["slices"][name_of(kind)] = {{"number", of_kind.slices},
                                         {"watched_seconds", seconds(of_kind.watched)}};
    }
  }
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
      name_, summary.slices(), seconds(summary.everything().watched), seconds(summary.elapsed),
      100 * summary.share(), summary.cut_units, summary.without_threads);
  out += text_of_kinds(summary);
  if (summary.without_accesses != 0) {
    out += fmt::format(
        "    {} of them show no access: a function that runs when a slice begins is not seen until "
        "it is called again\n",
        summary.without_accesses);
  }
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

std::vector<CheckOptions> questions_of(const std::vector<std::string>& properties,
                                       const RelationOptions& relation, SetChoice sets) {
  std::vector<CheckOptions> questions;
  for (const std::string& property : properties) {
    CheckOptions& question = questions.emplace_back();
    question.property = *property_named(property);
    question.analysis.relation = relation;
    question.sets = sets;
  }
  return questions;
}

int watch_and_report(const SamplingOptions& options, FindingFilter& filter,
                     const FindingsChoice& findings, const ReportOutput& output) {
  SliceReport report(output, fmt::format("process {}", options.pid), &filter);
  const auto summary =
      watch_slices(options, [&](const JudgedSlice& slice) { report.judged(slice); });
  if (!summary) {
    put_message(output.tool, summary.error().to_string());
    return exit_status_of(summary.error());
  }
  report.summary(*summary);
  put_unused(output.tool, filter);
  return findings.status(report.exit_status());
}

}  // namespace tsomon
