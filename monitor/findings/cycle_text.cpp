#include "monitor/findings/cycle_text.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "monitor/findings/event_text.h"
#include "monitor/findings/text_parts.h"
#include "tso/support/printable.h"

namespace tsomon {
namespace {

constexpr size_t kMaxAccesses = 40;  // of a unit that are shown
constexpr Fold kUnits{6, 4};

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

std::string source_text(const ReportedAccess& access) {
  constexpr size_t kWidest = 100;
  if (access.source.empty()) {
    return {};
  }
  const std::string line = printable(access.source);
  return fmt::format("        {:>7} | {}\n", access.place.line,
                     line.size() <= kWidest ? line : line.substr(0, kWidest) + "...");
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

// "10..12"; empty: not known, or the place of the event in a trace without any.
std::string stamps_text(const ReportedAccess& access) {
  return access.stamps ? fmt::format("{}..{}", access.stamps->first, access.stamps->second)
                       : std::string();
}

// What is known of an access beyond its line.
std::vector<std::string> details(const ReportedAccess& access) {
  std::vector<std::string> lines;
  if (!access.variable.empty() && !access.operand.empty() && access.variable != access.operand) {
    lines.push_back(fmt::format("{} is {}", printable(access.variable), printable(access.operand)));
  }
  if (const std::string stamps = stamps_text(access); !stamps.empty()) {
    lines.push_back("stamps " + stamps);
  }
  for (const SourceFrame& caller : access.place.callers) {
    lines.push_back("inlined into " + printable(frame_text(caller)));
  }
  for (const std::vector<SourceFrame>& sites : access.calls) {
    std::string line;
    for (const SourceFrame& site : sites) {
      line += (line.empty() ? "called by " : " or ") + printable(frame_text(site));
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

// "m, n": the locks that the unit has taken and not released when it comes to this access.
std::string locks_text(const ReportedCycle& cycle, const ReportedStep& step, size_t access) {
  if (step.omitted != 0) {
    return "not known";
  }
  std::multiset<std::string> held;
  for (const size_t each : step.accesses) {
    const ReportedAccess& at = cycle.accesses[each];
    if (each == access) {
      break;
    }
    const std::string name = printable(shown_operand(at));
    if (at.kind == EventKind::kAcquire || at.kind == EventKind::kAcquireShared) {
      held.insert(name);
    } else if (at.kind == EventKind::kRelease || at.kind == EventKind::kReleaseShared) {
      const auto found = held.find(name);
      if (found != held.end()) {
        held.erase(found);
      }
    }
  }
  return held.empty() ? "none" : fmt::format("{}", fmt::join(held, ", "));
}

std::string values_text(const ReportedAccess& access) {
  std::string text = fmt::format("#{}", access.index);
  text += access.read ? fmt::format(" read {}", *access.read) : "";
  text += access.read && access.written ? " and" : "";
  text += access.written ? fmt::format(" wrote {}", *access.written) : "";
  return access.read || access.written ? text : text + " unknown";
}

// What the order of an edge rests on.
std::string evidence_text(const ReportedCycle& cycle, size_t i) {
  const ReportedStep& step = cycle.steps[i];
  const ReportedStep& next = cycle.steps[(i + 1) % cycle.steps.size()];
  const ReportedAccess& from = cycle.accesses[step.from];
  const ReportedAccess& to = cycle.accesses[step.to];
  const std::string indent(10, ' ');
  std::string out;
  if (from.stamps && to.stamps) {
    const bool apart = from.stamps->second < to.stamps->first;
    out += fmt::format("{}stamps: #{} {}..{}, #{} {}..{}: {}\n", indent, from.index,
                       from.stamps->first, from.stamps->second, to.index, to.stamps->first,
                       to.stamps->second,
                       apart ? "the first ends before the other begins" : "they overlap");
  }
  if (from.read || from.written || to.read || to.written) {
    out += fmt::format("{}values: {}, {}\n", indent, values_text(from), values_text(to));
  }
  if (step.is_unit && next.is_unit) {
    out +=
        fmt::format("{}locks taken in the units: at #{} {}, at #{} {}\n", indent, from.index,
                    locks_text(cycle, step, step.from), to.index, locks_text(cycle, next, step.to));
  }
  return out;
}

// The accesses of a step; of many the first ones, and those that the cycle goes through.
std::string accesses_text(const ReportedCycle& cycle, size_t i, const TextShape& shape) {
  const ReportedStep& step = cycle.steps[i];
  const size_t entered = cycle.steps[(i + cycle.steps.size() - 1) % cycle.steps.size()].to;
  const size_t most = shape.verbose ? ReportedCycle::kMaxAccesses : kMaxAccesses;
  const bool all = step.accesses.size() <= most && step.omitted == 0;
  std::string out;
  const auto add = [&](size_t access) {
    out += access_lines(cycle.accesses[access], "        ", "", shape);
    out += source_text(cycle.accesses[access]);
  };
  const size_t listed = std::min(step.accesses.size(), most);
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

// Without calls: a line of an access that is followed by details.
std::string short_line(const ReportedAccess& access) {
  const std::string number = fmt::format("#{:<6} ", access.index);
  return access.place.text.empty()
             ? number + access_text(access)
             : number + padded(access_text(access), 34) + " " + printable(access.place.text);
}

}  // namespace

std::string access_text(const ReportedAccess& access) {
  return operation_text(access.operation, shown_operand(access), access.read, access.written);
}

std::string access_line(const ReportedAccess& access) {
  return access.place.text.empty()
             ? short_line(access)
             : short_line(access) + callers_text(access.place) + calls_text(access.calls);
}

std::string access_lines(const ReportedAccess& access, const std::string& indent,
                         const std::string& before, const TextShape& shape) {
  if (!shape.verbose) {
    return fmt::format("{}{}{}\n", indent, before, access_line(access));
  }
  std::string out = fmt::format("{}{}{}\n", indent, before, short_line(access));
  for (const std::string& line : details(access)) {
    out += fmt::format("{}        {}\n", indent, line);
  }
  return out;
}

std::string cycle_text(const ReportedCycle& cycle, const TextShape& shape) {
  std::string out;
  const size_t size = cycle.steps.size();
  for (size_t i = 0; i < size; ++i) {
    if (kUnits.hides(i, size, shape)) {
      out += i == kUnits.first ? kUnits.line(size, cycle.of_events ? "events" : "units") : "";
      continue;
    }
    const ReportedStep& step = cycle.steps[i];
    out += fmt::format("  [{}] {}\n", i + 1, step_text(cycle, step));
    out += accesses_text(cycle, i, shape);
    out += fmt::format("      before [{}]: {}\n", (i + 1) % size + 1,
                       edge_text(cycle.accesses[step.from], cycle.accesses[step.to], step.edge));
    out += shape.verbose ? evidence_text(cycle, i) : "";
  }
  return out;
}

}  // namespace tsomon
