#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "monitor/findings/result_json.h"
#include "monitor/report/json_list.h"
#include "monitor/report/render.h"
#include "tso/support/printable.h"

namespace tsomon::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kStep = 10;  // microseconds, of the picture

class Picture {
 public:
  explicit Picture(JsonList* events) : events_(*events) {}

  void add(const Finding& finding) {
    ++process_;
    name("process_name", 0, fmt::format("{}. {}: {}", process_, finding.verdict, finding.headline));
    events_.add({{"name", "process_sort_index"},
                 {"ph", "M"},
                 {"pid", process_},
                 {"tid", 0},
                 {"args", {{"sort_index", process_}}}});
    const Threads threads(finding);
    for (size_t i = 0; i < threads.names().size(); ++i) {
      name("thread_name", i + 1, threads.names()[i]);
    }
    const auto track = [&](const std::string& thread) { return threads.number(thread) + 1; };
    const std::vector<Step> steps = steps_of(finding);
    place(steps);
    add_units(finding, track);
    for (size_t at = 0; at < steps.size(); ++at) {
      const Access& access = *finding.access(steps[at].event);
      slice(step_text(access, steps[at]), track(access.thread), at * kStep + 2, kStep - 4,
            {{"at", printable(access.place.text)}, {"event", access.event}});
    }
    for (const Unit& unit : finding.cycle) {
      add_edge(finding, unit, track);
    }
  }

 private:
  void name(const char* what, uint64_t thread, const std::string& text) {
    events_.add({{"name", what},
                 {"ph", "M"},
                 {"pid", process_},
                 {"tid", thread},
                 {"args", {{"name", printable(text)}}}});
  }

  void slice(const std::string& text, uint64_t thread, uint64_t begin, uint64_t length,
             Json arguments) {
    events_.add({{"name", printable(text)},
                 {"cat", "tsomon"},
                 {"ph", "X"},
                 {"pid", process_},
                 {"tid", thread},
                 {"ts", begin},
                 {"dur", length},
                 {"args", std::move(arguments)}});
  }

  // Where each event is shown: the first of its steps, and the last.
  void place(const std::vector<Step>& steps) {
    first_.clear();
    last_.clear();
    for (size_t at = 0; at < steps.size(); ++at) {
      first_.try_emplace(steps[at].event, at);
      last_[steps[at].event] = at;
    }
  }

  // Each from its first access that is shown to its last one.
  template <typename Track>
  void add_units(const Finding& finding, const Track& track) {
    struct Span {
      size_t begin = SIZE_MAX;
      size_t end = 0;
    };
    std::vector<Span> spans(finding.cycle.size());
    const std::vector<size_t> units = units_of(finding);
    for (size_t i = 0; i < units.size(); ++i) {
      const uint64_t event = finding.accesses[i].event;
      if (units[i] != kNoUnit && first_.count(event) != 0) {
        Span& span = spans[units[i]];
        span.begin = std::min(span.begin, first_[event]);
        span.end = std::max(span.end, last_[event]);
      }
    }
    for (size_t i = 0; i < spans.size(); ++i) {
      const Unit& unit = finding.cycle[i];
      const auto& [begin, end] = spans[i];
      if (begin != SIZE_MAX && unit.is_unit) {
        slice(unit.label.empty() ? "unit" : unit.label, track(unit.thread), begin * kStep,
              (end - begin + 1) * kStep, {{"first", unit.first}, {"last", unit.last}});
      }
    }
  }

  template <typename Track>
  void add_edge(const Finding& finding, const Unit& unit, const Track& track) {
    const Access* const from = finding.access(unit.from);
    const Access* const to = finding.access(unit.to);
    if (from == nullptr || to == nullptr || first_.count(unit.from) == 0 ||
        first_.count(unit.to) == 0) {
      return;
    }
    ++edge_;
    flow("s", unit.reason, track(from->thread), last_[unit.from]);
    flow("f", unit.reason, track(to->thread), first_[unit.to]);
  }

  void flow(const char* phase, const std::string& text, uint64_t thread, size_t at) {
    Json event = {{"name", printable(text)},
                  {"cat", "cycle"},
                  {"ph", phase},
                  {"id", edge_},
                  {"pid", process_},
                  {"tid", thread},
                  {"ts", at * kStep + kStep / 2}};
    if (*phase == 'f') {
      event["bp"] = "e";  // in the slice around it
    }
    events_.add(event);
  }

  JsonList& events_;
  uint64_t process_ = 0;
  uint64_t edge_ = 0;
  std::unordered_map<uint64_t, size_t> first_;
  std::unordered_map<uint64_t, size_t> last_;
};

}  // namespace

void write_perfetto(const Results& results, std::ostream& out) {
  std::string head = json_line({{"displayTimeUnit", "ns"}}, "tsomon report");
  head.pop_back();  // the object goes on
  out << head << R"(,"traceEvents":)";
  JsonList events(&out);
  Picture picture(&events);
  for (const Finding& finding : results.findings()) {
    picture.add(finding);
  }
  events.end();
  out << "}\n";
}

}  // namespace tsomon::report
