#include "monitor/report/picture.h"

#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "monitor/report/render.h"
#include "tso/support/printable.h"

namespace tsomon::report {
namespace {

constexpr uint64_t kStep = 10;  // units of time from one step to the next
constexpr uint64_t kGap = 2;    // before a step's slice and after it

// The slices of an event.
struct Shown {
  size_t first = 0;
  size_t last = 0;
};

class Painter {
 public:
  Painter(const Finding& finding, Picture* picture)
      : finding_(finding),
        picture_(*picture),
        threads_(finding),
        units_(units_of(finding)),
        open_(threads_.names().size()) {}

  void paint() {
    for (const std::string& thread : threads_.names()) {
      picture_.tracks.push_back(printable(thread));
    }
    uint64_t time = 0;
    for (const Step& step : steps_of(finding_)) {
      add_step(step, time);
      time += kStep;
    }
    for (const Unit& unit : finding_.cycle) {
      add_arrow(unit);
    }
  }

 private:
  // The slice of a unit that may go on.
  struct Open {
    size_t unit = kNoUnit;
    size_t slice = 0;
  };

  void add_step(const Step& step, uint64_t time) {
    const Access& access = *finding_.access(step.event);
    const size_t track = threads_.number(access.thread);
    const size_t unit = units_[static_cast<size_t>(&access - finding_.accesses.data())];
    Open& open = open_[track];
    if (!step.commit && open.unit != unit) {
      open = {unit, picture_.slices.size()};
      if (unit != kNoUnit && finding_.cycle[unit].is_unit) {
        add_unit(finding_.cycle[unit], track, time);
      } else {
        open.unit = kNoUnit;
      }
    }
    if (open.unit != kNoUnit && open.unit == unit) {
      picture_.slices[open.slice].end = time + kStep;
    }
    Slice slice;
    slice.kind = step.commit ? Slice::Kind::kCommit : Slice::Kind::kStep;
    slice.track = track;
    slice.begin = time + kGap;
    slice.end = time + kStep - kGap;
    slice.name = printable(step_text(access, step));
    slice.place = printable(access.place.text);
    slice.numbers = {{"event", access.event}};
    const size_t number = picture_.slices.size();
    shown_.try_emplace(step.event, Shown{number, number}).first->second.last = number;
    picture_.slices.push_back(std::move(slice));
  }

  void add_unit(const Unit& unit, size_t track, uint64_t time) {
    Slice slice;
    slice.kind = Slice::Kind::kUnit;
    slice.track = track;
    slice.begin = time;
    slice.name = unit.label.empty() ? "unit" : printable(unit.label);
    slice.numbers = {{"first", unit.first}, {"last", unit.last}};
    picture_.slices.push_back(std::move(slice));
  }

  void add_arrow(const Unit& unit) {
    const auto from = shown_.find(unit.from);
    const auto to = shown_.find(unit.to);
    if (from == shown_.end() || to == shown_.end()) {
      return;
    }
    const Shown& before = from->second;
    const Shown& after = to->second;
    // A later slice has a higher number.
    const std::pair<size_t, size_t> ends[] = {
        {before.last, after.last}, {before.first, after.last}, {before.first, after.first}};
    for (const auto& [begin, end] : ends) {
      if (begin < end) {
        picture_.arrows.push_back({begin, end, printable(unit.reason)});
        return;
      }
    }
  }

  const Finding& finding_;
  Picture& picture_;
  const Threads threads_;
  const std::vector<size_t> units_;
  std::vector<Open> open_;  // by thread
  std::unordered_map<uint64_t, Shown> shown_;
};

}  // namespace

Picture picture_of(const Finding& finding, size_t number) {
  Picture picture;
  picture.name = printable(fmt::format("{}. {}: {}", number, finding.verdict, finding.headline));
  Painter(finding, &picture).paint();
  return picture;
}

const char* category_of(Slice::Kind kind) {
  switch (kind) {
    case Slice::Kind::kUnit:
      return "unit";
    case Slice::Kind::kCommit:
      return "commit";
    case Slice::Kind::kStep:
      break;
  }
  return "step";
}

}  // namespace tsomon::report
