// What `run --pid`, and `attach` where a process has twins, print: violations of slices as they are judged, all of them together at the end.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "monitor/findings/finding_filter.h"
#include "monitor/slices/sampling.h"
#include "tools/findings_option.h"
#include "tools/watch_report.h"

namespace tsomon {

class SliceReport {
 public:
  // `filter` may be nullptr.
  SliceReport(ReportOutput output, std::string name, FindingFilter* filter)
      : output_(std::move(output)), name_(std::move(name)), filter_(filter) {}

  // Text: told where it has a violation that no slice before had.
  void judged(const JudgedSlice& slice);
  void summary(const SamplingSummary& summary);
  int exit_status() const { return status_; }

 private:
  struct Seen {
    nlohmann::ordered_json finding;  // of the first slice that has it
    std::string property;
    uint64_t count = 0;
    uint64_t slices = 0;
    uint64_t first_slice = 0;
    uint64_t last_slice = 0;
  };

  void put_json_summary(const SamplingSummary& summary) const;
  // True: it was not seen before.
  bool add(const nlohmann::ordered_json& finding, const std::string& property, uint64_t slice);

  const ReportOutput output_;
  const std::string name_;
  FindingFilter* filter_;
  std::map<std::string, Seen> seen_;  // by fingerprint
  std::vector<std::string> order_;    // ... as they came
  std::set<std::string> warned_;      // but for the numbers in them
  std::string last_line_;             // of the gravest
  uint64_t events_ = 0;
  std::string verdict_ = "inconclusive";  // the gravest
  int status_ = 0;
};

// What is asked of each slice.
std::vector<CheckOptions> questions_of(const std::vector<std::string>& properties,
                                       const RelationOptions& relation, SetChoice sets);

// Watches, judges and prints. The exit status: kExitInconclusive where no violation was seen.
int watch_and_report(const SamplingOptions& options, FindingFilter& filter,
                     const FindingsChoice& findings, const ReportOutput& output);

}  // namespace tsomon
