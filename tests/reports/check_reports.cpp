// Runs `tsomon check --output json` over random text traces and judges every report:
//   check_reports TSOMON [TRACES [SEED]]
//
// The reports of one trace are also compared with each other: whatever the exact semantics or the
// recorded values rule out, they never add a violation.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/wait.h>

#include "tests/reports/plain_trace.h"
#include "tests/reports/random_text.h"
#include "tests/reports/report_checker.h"
#include "tests/rounds.h"

namespace {

using namespace tsomon::reports;
using nlohmann::json;
namespace fs = std::filesystem;

struct Run {
  const char* options;
  Question question;
};

const std::vector<Run> kRuns = {
    {"", {"serializability", "exact"}},
    {"--semantics paper", {"serializability", "paper", false}},
    {"--no-values", {"serializability", "exact", false}},
    {"--property robustness", {"robustness", "exact"}},
    {"--property robustness --semantics paper", {"robustness", "paper", false}},
    {"--property sc-serializability", {"sc-serializability", "exact"}},
    {"--property atomic-sets", {"atomic-sets", "exact"}},
    {"--history 5", {"serializability", "exact", false, true}},
    {"--history 5 --property sc-serializability", {"sc-serializability", "exact", false, true}},
    {"--history 5 --property atomic-sets", {"atomic-sets", "exact", false, true}},
};
// Of runs that know less, and the run that knows all.
constexpr std::pair<size_t, size_t> kShorter[] = {{7, 0}, {8, 5}, {9, 6}};

// Units that a wait, or a fence, makes what they are.
const char* const kFixed[] = {
    "T1|begin(u)|1\nT1|wait(c)|2\nT1|r(x)|3\nT0|w(x)|4\nT0|fence|4\nT1|w(x)|5\nT1|end|6\n",
    "T0|begin|0\nT0|r(V1)|0\nT2|begin|1\nT2|w(V1)|1\nT2|end|1\nT0|w(V2)|2\nT0|end|2\n"
    "T2|begin|3\nT2|fence|3\nT2|r(V2)|4\nT2|end|4\n",
    "T2|w(x=0)|1|0..100\nT1|w(x=2)|2|0..100\nT2|begin|3|0..100\nT2|r(x=2)|4|0..100\n"
    "T2|r(x=2)|5|0..100\nT2|end|6|0..100\n",
    "T2|w(x)|0\nT2|fence|0\nT2|begin|0\nT2|r(x)|0\nT2|end|0\nT2|begin|0\nT2|r(y)|0\nT2|end|0\n"
    "T0|begin|0\nT0|w(y)|0\nT0|w(x)|0\nT0|end|0\n",
};

constexpr int kBatch = 100;  // files of one command

int failures = 0;

void report_failure(const std::string& what, const std::string& options, const std::string& text,
                    const std::string& line) {
  if (++failures <= 5) {
    std::fprintf(stderr, "%s\n  tsomon check %s\n%s%s\n\n", what.c_str(), options.c_str(),
                 text.c_str(), line.c_str());
  }
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line);
  }
  return lines;
}

struct Trace {
  uint64_t seed = 0;
  std::string file, text;
  std::vector<int> status = {};  // for each of kRuns
  std::vector<std::string> verdicts = {};
};

// Whether find_fault() overlooks that the last commit of the witness is missing.
bool accepts_broken(const Trace& trace, const Question& question, json report) {
  if (!report.contains("witness") || !report["witness"].is_array()) {
    return false;
  }
  json& steps = report["witness"];
  for (size_t at = steps.size(); at-- > 0;) {
    if (steps[at].contains("commit")) {
      steps.erase(at);
      return find_fault(PlainTrace::parse(trace.text), trace.file, question, report).empty();
    }
  }
  return false;
}

void judge_batch(const std::string& tsomon, const fs::path& folder, std::vector<Trace>& traces) {
  std::string names;
  for (const Trace& trace : traces) {
    std::ofstream(folder / trace.file) << trace.text;
    names += " " + trace.file;
  }
  for (const Run& run : kRuns) {
    const std::string command = fmt::format("cd '{}' && exec '{}' check {} --output json{} >out",
                                            folder.string(), tsomon, run.options, names);
    const int result = std::system(command.c_str());
    const std::vector<std::string> lines = lines_of(folder / "out");
    if (lines.size() != traces.size()) {
      report_failure("one line for each input expected, found " + std::to_string(lines.size()),
                     run.options, "", "");
      return;
    }
    bool violation = false;
    bool unknown = false;
    for (size_t i = 0; i < traces.size(); ++i) {
      Trace& trace = traces[i];
      const json report = json::parse(lines[i], nullptr, false);
      const std::string seed = "seed " + std::to_string(trace.seed) + ": ";
      if (!report.is_object()) {
        report_failure(seed + "no JSON object", run.options, trace.text, lines[i]);
        return;
      }
      const std::string fault =
          find_fault(PlainTrace::parse(trace.text), trace.file, run.question, report);
      if (!fault.empty()) {
        report_failure(seed + fault, run.options, trace.text, lines[i]);
      }
      if (fault.empty() && accepts_broken(trace, run.question, report)) {
        report_failure(seed + "the checker accepts a store that never commits", run.options,
                       trace.text, lines[i]);
      }
      trace.status.push_back(status_of(report));
      trace.verdicts.push_back(report.at("verdict").get<std::string>());
      unknown = unknown || trace.status.back() == 3;
      violation = violation || trace.status.back() == 1;
    }
    if (!WIFEXITED(result) || WEXITSTATUS(result) != (violation ? 1 : unknown ? 3 : 0)) {
      report_failure("unexpected exit status", run.options, "", "");
    }
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::fprintf(stderr, "usage: check_reports TSOMON [TRACES [SEED]]\n");
    return 2;
  }
  const std::string tsomon = fs::absolute(argv[1]).string();
  const int count = argc > 2 ? std::atoi(argv[2]) : rounds(300, 3000);
  const uint64_t first_seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
  std::string folder = (fs::temp_directory_path() / "tsomon_reports_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    std::perror(folder.c_str());
    return 2;
  }

  std::vector<int> violations(kRuns.size(), 0);

  for (int done = 0; done < count; done += kBatch) {
    std::vector<Trace> traces;
    for (int i = done; i < std::min(count, done + kBatch); ++i) {
      const uint64_t seed = first_seed + static_cast<uint64_t>(i);
      traces.push_back({seed, std::to_string(seed) + ".std", random_text(seed)});
    }
    for (const char* const text : kFixed) {
      if (done == 0) {
        traces.push_back({0, "fixed" + std::to_string(traces.size()) + ".std", text});
      }
    }
    judge_batch(tsomon, folder, traces);
    for (const Trace& trace : traces) {
      if (trace.status.size() != kRuns.size()) {
        continue;
      }
      for (size_t i = 0; i < kRuns.size(); ++i) {
        violations[i] += trace.status[i] == 1 ? 1 : 0;
      }
      for (const auto& [shorter, whole] : kShorter) {
        const std::string& less = trace.verdicts[shorter];
        const std::string& more = trace.verdicts[whole];
        if ((less == "serializable" && more != less && more != "inconclusive") ||
            (less == "definite" && more != less && more != "inconclusive")) {
          report_failure(fmt::format("seed {}: {} with a short history, {} as a whole", trace.seed,
                                     less, more),
                         kRuns[shorter].options, trace.text, "");
        }
      }
      if (trace.status[0] > trace.status[1] || trace.status[0] > trace.status[2] ||
          trace.status[3] > trace.status[4]) {
        report_failure("seed " + std::to_string(trace.seed) + ": a refinement adds a violation", "",
                       trace.text, "");
      }
    }
  }
  std::error_code ignored;
  fs::remove_all(folder, ignored);

  std::printf("%d traces from seed %llu\n", count, static_cast<unsigned long long>(first_seed));
  for (size_t i = 0; i < kRuns.size(); ++i) {
    std::printf("  %4d violations: %s %s\n", violations[i], kRuns[i].question.property.c_str(),
                kRuns[i].options);
    if (violations[i] == 0 || violations[i] == count) {
      report_failure("the traces are all alike", kRuns[i].options, "", "");
    }
  }
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "check_reports: %s\n", error.what());
  return 2;
}
