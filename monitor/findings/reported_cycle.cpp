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

void add_stamps(const EventBlock& block, const Event& event, ReportedAccess* access) {
  const auto place = static_cast<int64_t>(access->index);
  if (const auto stamps = std::pair(block.lo(event), block.hi(event));
      stamps != std::pair(place, place)) {
    access->stamps = stamps;
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
  if (access.stamps) {
    object["stamps"] = {access.stamps->first, access.stamps->second};
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

}  // namespace tsomon
