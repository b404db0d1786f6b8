#include "monitor/findings/reported_cycle.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include <fmt/format.h>

#include "monitor/findings/event_text.h"
#include "monitor/process/source_lines.h"
#include "tso/model/lifetimes.h"
#include "tso/support/printable.h"

namespace tsomon {
namespace {

// What text shows before it folds.
constexpr size_t kMaxAccesses = 40;  // accesses of a unit
struct Fold {
  size_t first;  // shown in front of the gap,
  size_t last;   // and behind it
};
constexpr Fold kUnits{6, 4};
constexpr Fold kWitnessSteps{60, 20};
constexpr Fold kOthers{20, 0};

bool is_folded(size_t i, size_t size, Fold fold) {
  return size > fold.first + fold.last + 1 && i >= fold.first && i < size - fold.last;
}

std::string fold_line(size_t size, Fold fold, const char* what) {
  return fmt::format("  ... {} more {} (--output json has all)\n", size - fold.first - fold.last,
                     what);
}

// "#3 overwritten by #9", and how that is known.
std::string edge_text(const ReportedAccess& from, const ReportedAccess& to, EdgeKind kind) {
  const auto text = [&](std::string_view words, std::string_view why) {
    return fmt::format("#{} {} #{}{}{}", from.index, words, to.index, why.empty() ? "" : ", ", why);
  };
  const auto locks = [](EventKind of) { return (kinds::kLocks & kind_mask(of)) != 0; };
  std::string_view conflict = "overwritten by";
  if (locks(from.kind) && locks(to.kind)) {
    conflict = "before";
  } else if (from.written && to.read) {
    conflict = from.written == to.read ? "read by" : "before";
  } else if (to.kind == EventKind::kRead) {
    conflict = "before";
  }
  switch (kind) {
    case EdgeKind::kProgramOrder:
      return text("before", "program order");
    case EdgeKind::kConflict:
      return text(conflict, "in the order of the trace");
    case EdgeKind::kValues:
      return text(conflict, "in the order that the recorded values and stamps leave");
    case EdgeKind::kReordering:
      return text(conflict, "in an order that the store buffers allow");
    case EdgeKind::kThread:
      return text("before", "thread start or end");
    case EdgeKind::kOverlap:
      return text(conflict, "overlapping intervals, in the order in which they begin");
    case EdgeKind::kHandOver:
      return text("hands over to", "what is taken or received was posted or sent");
  }
  return {};
}

const char* edge_reason(EdgeKind kind) {
  switch (kind) {
    case EdgeKind::kProgramOrder:
      return "program order";
    case EdgeKind::kConflict:
      return "conflict, in the order of the trace";
    case EdgeKind::kValues:
      return "conflict, in the order that the recorded values and stamps leave";
    case EdgeKind::kReordering:
      return "conflict, in an order that the store buffers allow";
    case EdgeKind::kThread:
      return "thread start or end";
    case EdgeKind::kOverlap:
      return "conflict of overlapping intervals, in the order in which they begin";
    case EdgeKind::kHandOver:
      return "hand-over: what is taken or received was posted or sent";
  }
  return "";
}

const std::string& shown_operand(const ReportedAccess& access) {
  return access.variable.empty() ? access.operand : access.variable;
}

std::string access_text(const ReportedAccess& access) {
  return operation_text(access.operation, shown_operand(access), access.read, access.written);
}

std::string step_text(const ReportedCycle& cycle, const ReportedStep& step) {
  const std::string thread = printable(step.thread);
  const std::string label = printable(step.label);
  if (cycle.of_events) {
    return fmt::format("{}{}{}", thread, label.empty() ? "" : " in ", label);
  }
  if (!step.is_unit) {
    return fmt::format("{} event #{}, a unit of its own", thread, step.first);
  }
  return fmt::format("{} unit {} (events #{} to #{}{})", thread,
                     label.empty() ? "without a label" : label, step.first, step.last,
                     step.finished ? "" : ", unfinished");
}

std::string padded(const std::string& text, size_t width) {
  const size_t own = text_width(text);
  return text + std::string(width > own ? width - own : 0, ' ');
}

std::string source_text(const ReportedAccess& access) {
  constexpr size_t kWidest = 100;
  if (access.source.empty()) {
    return {};
  }
  const std::string line = printable(access.source);
  return fmt::format("        {:>7} | {}\n", access.place.line,
                     line.size() <= kWidest ? line : line.substr(0, kWidest) + "...");
}

// The accesses of a step; of many the first ones, and those that the cycle goes through.
std::string accesses_text(const ReportedCycle& cycle, size_t i) {
  const ReportedStep& step = cycle.steps[i];
  const size_t entered = cycle.steps[(i + cycle.steps.size() - 1) % cycle.steps.size()].to;
  const bool all = step.accesses.size() <= kMaxAccesses && step.omitted == 0;
  std::string out;
  const auto add = [&](size_t access) {
    out += fmt::format("        {}\n", access_line(cycle.accesses[access]));
    out += source_text(cycle.accesses[access]);
  };
  const size_t listed = std::min(step.accesses.size(), kMaxAccesses);
  std::for_each(step.accesses.begin(), step.accesses.begin() + static_cast<ptrdiff_t>(listed), add);
  if (!all) {
    out += "        ...\n";
    for (auto late = step.accesses.begin() + static_cast<ptrdiff_t>(listed);
         late != step.accesses.end(); ++late) {
      if (*late == entered || *late == step.from) {
        add(*late);
      }
    }
  }
  return out;
}

nlohmann::ordered_json step_json(const ReportedCycle& cycle, const ReportedStep& step) {
  nlohmann::ordered_json object = {{"thread", step.thread},
                                   {"label", step.label},
                                   {"first", step.first},
                                   {"last", step.last},
                                   {"locations", step.locations},
                                   {"edge", edge_name(step.edge)},
                                   {"from", cycle.accesses[step.from].index},
                                   {"to", cycle.accesses[step.to].index},
                                   {"reason", edge_reason(step.edge)},
                                   {"is_unit", step.is_unit},
                                   {"finished", step.finished}};
  auto accesses = nlohmann::ordered_json::array();
  for (const size_t access : step.accesses) {
    accesses.push_back(cycle.accesses[access].index);
  }
  object["accesses"] = std::move(accesses);
  if (step.omitted != 0) {
    object["omitted_accesses"] = step.omitted;
  }
  return object;
}

// The innermost ones, in the same line.
std::string callers_text(const SourcePlace& place) {
  constexpr size_t kShown = 4;
  std::string out;
  for (size_t i = 0; i < std::min(place.callers.size(), kShown); ++i) {
    out += " < " + printable(frame_text(place.callers[i]));
  }
  return out + (place.callers.size() > kShown ? " < ..." : "");
}

// " <- transfer bank.cpp:40 or :41", for each call.
std::string calls_text(const SourceCalls& calls) {
  constexpr size_t kShown = 4;
  std::string out;
  for (size_t i = 0; i < std::min(calls.size(), kShown); ++i) {
    for (size_t k = 0; k < calls[i].size(); ++k) {
      const SourceFrame& site = calls[i][k];
      const bool same =
          k != 0 && site.function == calls[i][0].function && site.file == calls[i][0].file;
      if (k == kShown) {
        out += " or ...";
        break;
      }
      out += k == 0 ? " <- " : " or ";
      out += same ? fmt::format(":{}", site.line) : printable(frame_text(site));
    }
  }
  return out + (calls.size() > kShown ? " <- ..." : "");
}

nlohmann::ordered_json frame_json(const SourceFrame& frame) {
  nlohmann::ordered_json object = {{"location", frame_text(frame)}};
  if (!frame.function.empty()) {
    object["function"] = frame.function;
  }
  if (!frame.file.empty()) {
    object["file"] = frame.file;
    object["line"] = frame.line;
  }
  return object;
}

// What a commit writes.
std::string commit_text(const ReportedAccess& access) {
  return printable(shown_operand(access)) +
         (access.written ? fmt::format(" := {}", *access.written) : "");
}

}  // namespace

std::function<std::string(const SourcePlace& place)> source_lines() {
  return [lines = std::make_shared<SourceLines>()](const SourcePlace& place) {
    return lines->line(place);
  };
}

ReportNames names_of(std::shared_ptr<LocationTexts> texts) {
  if (texts == nullptr) {
    return {};
  }
  ReportNames names;
  names.place = [texts](const std::string& location) {
    return place_in(texts->places(), location);
  };
  names.variable = [texts](uint64_t address) { return texts->variable(address); };
  names.calls = [texts](const SourcePlace& from, const SourcePlace& to) {
    return texts->calls(from.pc, to.pc);
  };
  names.source = source_lines();
  return names;
}

namespace {

SourcePlace place_of(uint32_t location, const Symbols& symbols, const ReportNames& names) {
  SourcePlace place;
  place.text = symbols.location_text(location);
  return names.place && !place.text.empty() ? names.place(place.text) : place;
}

// When the input had got to that event.
std::string variable_name(uint64_t address, uint64_t event, const Symbols& symbols,
                          const ReportNames& names) {
  std::string name = names.variable ? names.variable(address) : std::string();
  if (name.empty() && names.objects != nullptr) {
    if (const auto object = names.objects->find(address, event)) {
      name = object_name(place_of(object->location, symbols, names).text, object->offset);
    }
  }
  return name;
}

}  // namespace

ReportedAccess reported_access(uint64_t index, const Event& event, const Symbols& symbols,
                               const ReportNames& names) {
  ReportedAccess access;
  access.index = index;
  access.thread = thread_text(event.thread, symbols);
  access.thread_id = event.thread;
  access.kind = event.kind();
  access.operation = operation_name(event);
  access.operand = operand_text(event, symbols);
  access.place = place_of(event.location, symbols, names);
  // A location without bytes is a name, or a lock at its address.
  if (is(event, kinds::kAccesses) && (event.size != 0 || event.address >= symbols.names.size())) {
    access.address = own_address(event.address);
    access.size = event.size;
    access.variable = variable_name(own_address(event.address), index, symbols, names);
  }
  return access;
}

void add_values(const EventBlock& block, const Event& event, ReportedAccess* access) {
  if (!is(event, kinds::kLocks)) {
    access->read = block.read_value(event);
    access->written = block.write_value(event);
  }
}

nlohmann::ordered_json access_json(const ReportedAccess& access) {
  nlohmann::ordered_json object = {
      {"event", access.index}, {"thread", access.thread}, {"operation", access.operation}};
  if (!access.variable.empty()) {
    object["variable"] = access.variable;
  }
  if (access.address) {
    object["address"] = fmt::format("0x{:x}", *access.address);
    object["size"] = access.size;
  } else if (!access.operand.empty()) {
    object["name"] = access.operand;
  }
  if (access.read) {
    object["read"] = *access.read;
  }
  if (access.written) {
    object["written"] = *access.written;
  }
  const SourcePlace& place = access.place;
  object["location"] = place.text;
  for (const auto& [name, text] :
       {std::pair("function", &place.function), std::pair("file", &place.file),
        std::pair("module", &place.module), std::pair("build_id", &place.build_id)}) {
    if (!text->empty()) {
      object[name] = *text;
    }
  }
  if (place.line != 0) {
    object["line"] = place.line;
  }
  if (!place.callers.empty()) {
    auto calls = nlohmann::ordered_json::array();
    for (const SourceFrame& caller : place.callers) {
      calls.push_back(frame_json(caller));
    }
    object["called_from"] = std::move(calls);
  }
  if (!access.calls.empty()) {
    auto calls = nlohmann::ordered_json::array();
    for (const std::vector<SourceFrame>& sites : access.calls) {
      auto& call = calls.emplace_back(nlohmann::ordered_json::array());
      for (const SourceFrame& site : sites) {
        call.push_back(frame_json(site));
      }
    }
    object["calls"] = std::move(calls);
  }
  return object;
}

void add_cycle_json(const ReportedCycle& cycle, nlohmann::ordered_json* object) {
  auto steps = nlohmann::ordered_json::array();
  for (const ReportedStep& step : cycle.steps) {
    steps.push_back(step_json(cycle, step));
  }
  (*object)["cycle"] = std::move(steps);
  (*object)["witness"] = nullptr;
  if (!cycle.witness.empty()) {
    auto witness = nlohmann::ordered_json::array();
    for (const ReportedCycle::WitnessStep& step : cycle.witness) {
      witness.push_back({{step.commit ? "commit" : "issue", cycle.accesses[step.access].index}});
    }
    (*object)["witness"] = std::move(witness);
  }
  auto accesses = nlohmann::ordered_json::array();
  for (const ReportedAccess& access : cycle.accesses) {
    accesses.push_back(access_json(access));
  }
  (*object)["accesses"] = std::move(accesses);
  (*object)["fingerprint"] = fingerprint(cycle);
}

std::string access_line(const ReportedAccess& access) {
  const std::string number = fmt::format("#{:<6} ", access.index);
  return access.place.text.empty()
             ? number + access_text(access)
             : number + padded(access_text(access), 34) + " " + printable(access.place.text) +
                   callers_text(access.place) + calls_text(access.calls);
}

std::string cycle_text(const ReportedCycle& cycle) {
  std::string out;
  const size_t size = cycle.steps.size();
  for (size_t i = 0; i < size; ++i) {
    if (is_folded(i, size, kUnits)) {
      out += i == kUnits.first ? fold_line(size, kUnits, cycle.of_events ? "events" : "units") : "";
      continue;
    }
    const ReportedStep& step = cycle.steps[i];
    out += fmt::format("  [{}] {}\n", i + 1, step_text(cycle, step));
    out += accesses_text(cycle, i);
    out += fmt::format("      before [{}]: {}\n", (i + 1) % size + 1,
                       edge_text(cycle.accesses[step.from], cycle.accesses[step.to], step.edge));
  }
  return out;
}

// One column for each thread, the memory in the middle.
std::string witness_text(const ReportedCycle& cycle) {
  const size_t size = cycle.witness.size();
  if (size == 0) {
    return {};
  }
  std::map<ThreadId, size_t> column;  // of the threads that are shown
  for (size_t i = 0; i < size; ++i) {
    if (!is_folded(i, size, kWitnessSteps)) {
      column.emplace(cycle.accesses[cycle.witness[i].access].thread_id, 0);
    }
  }
  const size_t memory = (column.size() + 1) / 2;
  for (size_t next = 0; auto& [thread, place] : column) {
    place = next == memory ? next + 1 : next;
    next = place + 1;
  }
  std::vector<std::string> titles(column.size() + 1);
  titles[memory] = "memory";

  std::vector<std::vector<std::string>> rows = {titles};
  std::vector<size_t> numbers = {0};
  std::map<ThreadId, size_t> last_issued;
  for (size_t i = 0; i < size; ++i) {
    const ReportedCycle::WitnessStep& step = cycle.witness[i];
    const ReportedAccess& access = cycle.accesses[step.access];
    size_t& last = last_issued[access.thread_id];
    const bool late = step.commit && last != step.access;
    last = step.commit ? last : step.access;
    if (is_folded(i, size, kWitnessSteps)) {
      continue;
    }
    rows.emplace_back(titles.size());
    numbers.push_back(i + 1);
    rows.front()[column[access.thread_id]] = printable(access.thread);
    rows.back()[step.commit ? memory : column[access.thread_id]] =
        step.commit
            ? fmt::format("#{} {}{}", access.index, commit_text(access), late ? ", late" : "")
            : fmt::format("#{} {}", access.index, access_text(access));
  }
  std::vector<size_t> widths(titles.size(), 0);
  for (const auto& row : rows) {
    for (size_t at = 0; at < widths.size(); ++at) {
      widths[at] = std::max(widths[at], text_width(row[at]));
    }
  }
  std::string out = "  witness, an execution with its commits:\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i != 0 && numbers[i] != numbers[i - 1] + 1) {
      out += fold_line(size, kWitnessSteps, "steps");
    }
    std::string line = i == 0 ? std::string(4, ' ') : fmt::format("{:>4}", numbers[i]);
    for (size_t at = 0; at < titles.size(); ++at) {
      line += "  " + padded(rows[i][at], widths[at]);
    }
    out += "  " + line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  for (size_t i = 0; i < cycle.others.size(); ++i) {
    if (is_folded(i, cycle.others.size(), kOthers)) {
      out += i == kOthers.first ? fold_line(cycle.others.size(), kOthers, "events") : "";
      continue;
    }
    const ReportedAccess& access = cycle.accesses[cycle.others[i]];
    out +=
        fmt::format("  not of the cycle: {} {}\n", printable(access.thread), access_line(access));
  }
  return out;
}

}  // namespace tsomon
