#include "tests/reports/plain_trace.h"

#include <set>
#include <sstream>
#include <stdexcept>

namespace tsomon::reports {
namespace {

void parse_operand(const std::string& operand, PlainEvent& event) {
  const size_t equals = operand.rfind('=');
  event.location = operand.substr(0, equals);
  if (equals != std::string::npos) {
    const std::string values = operand.substr(equals + 1);
    const size_t comma = values.find(',');
    if (event.op == "rmw" && comma != std::string::npos) {
      event.read = std::stoull(values.substr(0, comma));
      event.written = std::stoull(values.substr(comma + 1));
    } else {
      (event.op == "r" ? event.read : event.written) = std::stoull(values);
    }
  }
  const size_t plus = event.location.find('+');
  if (event.location.rfind("0x", 0) == 0 && plus != std::string::npos) {
    event.address = std::stoull(event.location.substr(2, plus), nullptr, 16);
    event.size = std::stoull(event.location.substr(plus + 1));
  }
}

void divide_into_units(PlainTrace& trace) {
  std::map<std::string, std::vector<int>> open;  // by thread, the unit of each open begin
  for (size_t e = 0; e < trace.events.size(); ++e) {
    PlainEvent& event = trace.events[e];
    std::vector<int>& stack = open[event.thread];
    if (event.op == "begin") {
      if (stack.empty()) {
        stack.push_back(static_cast<int>(trace.units.size()));
        trace.units.push_back({event.thread, event.location, e, e});
      } else {
        stack.push_back(stack.front());
      }
    } else if (event.op == "wait") {
      // Belongs to the part before it; the part after it begins with it.
      if (!stack.empty()) {
        event.unit = stack.front();
        trace.units[static_cast<size_t>(event.unit)].last = e;
        const std::string label = trace.units[static_cast<size_t>(event.unit)].label;
        stack.assign(stack.size(), static_cast<int>(trace.units.size()));
        trace.units.push_back({event.thread, label, e, e});
      }
      continue;
    } else if (stack.empty()) {
      event.unit = static_cast<int>(trace.units.size());
      trace.units.push_back({event.thread, "", e, e});
      continue;
    }
    event.unit = stack.front();
    trace.units[static_cast<size_t>(event.unit)].last = e;
    if (event.op == "end") {
      stack.pop_back();
    }
  }
}

}  // namespace

PlainTrace PlainTrace::parse(const std::string& text) {
  PlainTrace trace;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#' || line[0] == '-') {
      continue;
    }
    std::vector<std::string> fields;
    std::istringstream parts(line);
    for (std::string field; std::getline(parts, field, '|');) {
      fields.push_back(field);
    }
    if (fields.size() < 2) {
      throw std::runtime_error("cannot read " + line);
    }
    PlainEvent event;
    event.thread = fields[0];
    event.op = fields[1].substr(0, fields[1].find('('));
    if (const size_t bracket = fields[1].find('('); bracket != std::string::npos) {
      parse_operand(fields[1].substr(bracket + 1, fields[1].size() - bracket - 2), event);
    }
    event.lo = event.hi = static_cast<int64_t>(trace.events.size());
    if (fields.size() > 3) {
      event.lo = std::stoll(fields[3]);
      event.hi = std::stoll(fields[3].substr(fields[3].find("..") + 2));
    }
    trace.events.push_back(event);
  }
  divide_into_units(trace);
  return trace;
}

PlainTrace PlainTrace::only(const std::vector<size_t>& kept) const {
  PlainTrace trace;
  trace.units = units;
  for (const size_t e : kept) {
    trace.events.push_back(events[e]);
  }
  return trace;
}

size_t PlainTrace::threads() const {
  std::set<std::string> names;
  for (const PlainEvent& event : events) {
    names.insert(event.thread);
  }
  return names.size();
}

bool PlainTrace::same_bytes(size_t e, size_t f) const {
  const PlainEvent& a = events[e];
  const PlainEvent& b = events[f];
  if (!a.access() || !b.access()) {
    return false;
  }
  if (a.size == 0 || b.size == 0) {
    return a.location == b.location;
  }
  return a.address < b.address + b.size && b.address < a.address + a.size;
}

bool PlainTrace::conflict(size_t e, size_t f) const {
  return events[e].thread != events[f].thread && same_bytes(e, f) &&
         !(events[e].load() && events[f].load());
}

bool PlainTrace::inside(size_t load, size_t store) const {
  const PlainEvent& a = events[load];
  const PlainEvent& b = events[store];
  return a.size == 0 || (a.address >= b.address && a.address + a.size <= b.address + b.size);
}

std::optional<size_t> PlainTrace::newest_own_store(size_t load) const {
  for (size_t i = load; i-- > 0;) {
    if (events[i].thread == events[load].thread) {
      if (events[i].drains()) {
        return std::nullopt;
      }
      if (events[i].store() && same_bytes(i, load)) {
        return i;
      }
    }
  }
  return std::nullopt;
}

std::optional<size_t> PlainTrace::settled_by(size_t store) const {
  for (size_t i = store + 1; i < events.size(); ++i) {
    if (events[i].thread != events[store].thread) {
      continue;
    }
    if (events[i].drains()) {
      return i;
    }
    if (events[i].load()) {
      const auto met = newest_own_store(i);
      if (met && *met >= store && !inside(i, *met)) {
        return i;
      }
    }
  }
  return std::nullopt;
}

std::optional<size_t> PlainTrace::source(size_t load) const {
  const auto met = newest_own_store(load);
  if (!met) {
    return std::nullopt;
  }
  const auto settled = settled_by(*met);
  return settled && *settled <= load ? std::nullopt : met;
}

std::optional<size_t> PlainTrace::held_by(size_t e) const {
  if (events[e].store()) {
    return e;
  }
  return events[e].load() ? source(e) : std::nullopt;
}

bool PlainTrace::kept_in_thread(size_t e, size_t f) const {
  const std::optional<size_t> store = held_by(e);
  const bool delays = events[f].load() || events[f].op == "join";
  if (!delays || !store || (events[f].load() && same_bytes(e, f))) {
    return true;
  }
  const auto settled = settled_by(*store);
  return settled && *settled <= f;
}

bool PlainTrace::proved_before(size_t e, size_t f) const {
  if ((events[e].op == "fork" && events[e].location == events[f].thread) ||
      (events[f].op == "join" && events[f].location == events[e].thread)) {
    return true;
  }
  if (!conflict(e, f) || !earlier(e, f)) {
    return false;
  }
  const std::optional<size_t> store = held_by(e);
  // An acquisition that is later than a release has seen it.
  if (!store || (events[e].op == "rel" && events[f].op == "acq")) {
    return true;
  }
  // By an event that finds it committed, or one after that.
  for (auto settled = settled_by(*store); settled && *settled < events.size(); ++*settled) {
    if (events[*settled].thread == events[e].thread && earlier(*settled, f)) {
      return true;
    }
  }
  return false;
}

}  // namespace tsomon::reports
