// More knowledge never says less: `tsomon check` of one trace with more and less known of it.
//
// What is known excludes executions. So what holds in every execution of a trace holds in every one
// of the same trace of which more is known: `serializable` stays, and so does `definite`. `possible`
// may become either. Of what is violated in every execution another, shorter cycle may be shown when
// more is known; it has units in common with the first. A fence is an event of its unit, too, and may
// close a cycle; so may the end of a thread that is joined, and a store that has to make room for
// another one. Of traces without these only what is definite stays.
//
//   check_knowledge TSOMON [TRACES [SEED]]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/reports/random_text.h"
#include "tests/rounds.h"

namespace {

using namespace tsomon::reports;
using nlohmann::json;
namespace fs = std::filesystem;

constexpr int kBatch = 100;  // files of one command
constexpr size_t kRichBuffer = 2;

const std::vector<std::string> kProperties = {"serializability", "robustness", "sc-serializability",
                                              "atomic-sets"};
const std::vector<std::string> kKnowledge = {"intervals", "values", "store-buffer", "locks",
                                             "threads"};

using Units = std::set<std::string>;  // where each begins

// What was found of one input.
struct Answer {
  std::string verdict;
  std::set<Units> definite;  // of each cycle
};

using Random = std::mt19937_64;

// The trace with change(line) for each line, which has no end.
template <typename Change>
std::string each_line(const std::string& text, const Change& change) {
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    result += change(line);
  }
  return result;
}

// With less in it; the places of what is left stay as they are.
std::string without_some_values(const std::string& text, Random& random) {
  static const std::regex value(R"(=[0-9]+(,[0-9]+)?)");
  return each_line(text, [&](const std::string& line) {
    return (random() % 2 == 0 ? std::regex_replace(line, value, "") : line) + '\n';
  });
}

std::string with_wider_intervals(const std::string& text, Random& random) {
  return each_line(text, [&](const std::string& line) {
    const size_t dots = line.rfind("..");
    const size_t hi = std::stoul(line.substr(dots + 2)) + random() % 3 * 7;
    return fmt::format("{}{}\n", line.substr(0, dots + 2), hi);
  });
}

std::string without_some_fences(const std::string& text, Random& random) {
  return each_line(text, [&](const std::string& line) {
    const bool stays = line.find("|fence|") == std::string::npos || random() % 2 == 0;
    return stays ? line + '\n' : std::string();
  });
}

// Returns the place of an event. Leaving events out changes their numbers, not their places.
std::string place_of(const std::string& text, size_t event) {
  size_t begin = 0;
  for (size_t i = 0; i < event; ++i) {
    begin = text.find('\n', begin) + 1;
  }
  const size_t place = text.find("|f.c:", begin) + 1;
  return text.substr(place, text.find('|', place) - place);
}

struct Runner {
  std::string tsomon;
  fs::path folder;

  std::vector<Answer> run(const std::vector<std::string>& texts, const std::string& options) const {
    std::string names;
    for (size_t i = 0; i < texts.size(); ++i) {
      std::ofstream(folder / fmt::format("{}.std", i)) << texts[i];
      names += fmt::format(" {}.std", i);
    }
    const std::string command =
        fmt::format("cd '{}' && exec '{}' check --all --output json --jobs 1 {}{} >out",
                    folder.string(), tsomon, options, names);
    // The exit status is check_reports' to judge.
    static_cast<void>(std::system(command.c_str()));
    std::vector<Answer> answers;
    std::ifstream out(folder / "out");
    for (std::string line; std::getline(out, line);) {
      const json report = json::parse(line);
      Answer answer;
      answer.verdict = report.at("verdict");
      for (const json& finding : report.value("findings", json::array())) {
        if (finding.at("definite") == true) {
          Units units;
          for (const json& unit : finding.at("cycle")) {
            units.insert(place_of(texts[answers.size()], unit.at("first").get<size_t>()));
          }
          answer.definite.insert(units);
        }
      }
      answers.push_back(answer);
    }
    if (answers.size() != texts.size()) {
      throw std::runtime_error(options + ": one result for each input expected");
    }
    return answers;
  }
};

bool shares(const Units& one, const Units& other) {
  return std::any_of(one.begin(), one.end(),
                     [&](const std::string& unit) { return other.contains(unit); });
}

// What the one with less says that the one with more takes back; "" if nothing.
std::string taken_back(const Answer& less, const Answer& more, bool same_events) {
  const bool decided = less.verdict == "definite" || (same_events && less.verdict != "possible" &&
                                                      less.verdict != "inconclusive");
  if (decided && more.verdict != less.verdict) {
    return less.verdict + " with less known, " + more.verdict + " with more";
  }
  for (const Units& units : less.definite) {
    const bool stays = std::any_of(more.definite.begin(), more.definite.end(),
                                   [&](const Units& one) { return shares(one, units); });
    if (!stays) {
      return fmt::format("definite with less known: units at {}", fmt::join(units, " "));
    }
  }
  return "";
}

struct Step {
  std::string options;
  std::vector<std::string> texts;
  // How much is left out of what is an event of a unit, too.
  std::ptrdiff_t without_events = 0;
  std::vector<Answer> answers = {};
};

int failures = 0;
int decided_later = 0;  // `possible` or `inconclusive` with less, decided with more

void judge(const Runner& runner, uint64_t first_seed, const std::string& property,
           std::vector<Step> steps) {
  for (Step& step : steps) {
    step.answers = runner.run(step.texts, fmt::format("--property {} {}", property, step.options));
  }
  for (size_t more = 0; more < steps.size(); ++more) {
    for (size_t less = more + 1; less < steps.size(); ++less) {
      for (size_t i = 0; i < steps[more].answers.size(); ++i) {
        const Answer& weaker = steps[less].answers[i];
        const Answer& sharper = steps[more].answers[i];
        const std::string fault =
            taken_back(weaker, sharper, steps[less].without_events == steps[more].without_events);
        if (!fault.empty() && ++failures <= 5) {
          std::fprintf(stderr, "seed %llu, %s: %s\n  more: check %s\n%s  less: check %s\n%s\n",
                       static_cast<unsigned long long>(first_seed + i), property.c_str(),
                       fault.c_str(), steps[more].options.c_str(), steps[more].texts[i].c_str(),
                       steps[less].options.c_str(), steps[less].texts[i].c_str());
        }
        decided_later += weaker.verdict != sharper.verdict ? 1 : 0;
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::fprintf(stderr, "usage: check_knowledge TSOMON [TRACES [SEED]]\n");
    return 2;
  }
  const int count = argc > 2 ? std::atoi(argv[2]) : rounds(100, 1000);
  const uint64_t first_seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
  std::string folder = (fs::temp_directory_path() / "tsomon_knowledge_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    std::perror(folder.c_str());
    return 2;
  }
  const Runner runner{fs::absolute(argv[1]).string(), folder};
  Random random(first_seed);
  const std::string buffer = fmt::format("--store-buffer {}", kRichBuffer);
  for (int done = 0; done < count; done += kBatch) {
    const uint64_t seed = first_seed + static_cast<uint64_t>(done);
    // No execution under sequential consistency has the values of all others.
    std::vector<std::string> tso_texts, sc_texts;
    for (uint64_t i = 0; i < static_cast<uint64_t>(std::min(kBatch, count - done)); ++i) {
      tso_texts.push_back(rich_text(seed + i, kRichBuffer));
      sc_texts.push_back(rich_text(seed + i, 0));
    }
    for (const std::string& property : kProperties) {
      const bool tso = property == "serializability" || property == "robustness";
      const std::vector<std::string>& texts = tso ? tso_texts : sc_texts;
      // One kind of knowledge after the other.
      std::vector<std::string> left_out = kKnowledge;
      std::shuffle(left_out.begin(), left_out.end(), random);
      std::vector<Step> steps = {{buffer, texts}};
      for (std::ptrdiff_t n = 1; n <= std::ssize(left_out); ++n) {
        const std::vector<std::string> out(left_out.begin(), left_out.begin() + n);
        const auto events = std::count_if(out.begin(), out.end(), [](const std::string& each) {
          return each == "threads" || each == "store-buffer";
        });
        steps.push_back(
            {fmt::format("{} --without {}", buffer, fmt::join(out, ",")), texts, events});
      }
      judge(runner, seed, property, steps);
      // Some of each.
      steps = {{buffer, texts}};
      const auto weaken = [&](std::string (*how)(const std::string&, Random&)) {
        Step step = steps.back();
        for (std::string& text : step.texts) {
          text = how(text, random);
        }
        steps.push_back(step);
      };
      weaken(without_some_values);
      weaken(with_wider_intervals);
      steps.push_back({fmt::format("--store-buffer {}", kRichBuffer + 1), steps.back().texts, 1});
      weaken(without_some_fences);
      steps.back().without_events = 2;
      weaken(without_some_values);
      judge(runner, seed, property, steps);
    }
  }
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  std::printf("%d traces from seed %llu: %d answers of more knowledge differ, %d failures\n", count,
              static_cast<unsigned long long>(first_seed), decided_later, failures);
  if (decided_later == 0) {
    std::fprintf(stderr, "knowledge decides nothing\n");
    return 1;
  }
  return failures == 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "check_knowledge: %s\n", error.what());
  return 2;
}
