// What is cheap of `tsomon explain`: the best repair of one finding, in one line.
//
// Purpose     `check`, `run` and `attach` say it under each finding that they show, `explore` under each property
//             that is violated (explored_hints.h). The whole answer is explain's.
// Verified    A repair is looked for in the events of the finding, fences in the whole input where that is
//             short, and there the exact checker has verified it. A block that was interrupted in every
//             execution of these events was so in every execution of the input. Fences that remove the violation
//             from these events need not remove it from the input: others lead around them. So they are put into the
//             whole input (offline/explain/fenced_input.h), and are said if no violation is left there, of
//             this finding or of another one. Where there is no whole input, the line says so.
// Bounds      Events of at most kMostEventsExplained, kMostWorkExplained steps for each finding; inputs of at most
//             kMostJudgedKept events (monitor/judge/check.h), kMostWorkAsked steps for all findings.
//             Past them nothing is said: that is no statement about the finding.
// Misses      Fences that remove one finding of several while others stay.
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "monitor/findings/reported_cycle.h"
#include "monitor/judge/check.h"
#include "offline/explain/repairs.h"

namespace tsomon {

inline constexpr size_t kMostEventsExplained = 500;
inline constexpr uint64_t kMostWorkExplained = 4'000'000;
inline constexpr uint64_t kMostWorkAsked = 400'000'000;

struct NamedFence {
  explain::FencePlace at;
  uint64_t event = 0;  // the store, in the input
  std::string store;   // "x sb.c:3"
};

// A repair that is verified on the events of a finding, in words: "a fence after #1 store x sb.c:3
// and after #3 store y". Event numbers are those of the input.
struct RepairLine {
  explain::Repair repair;
  std::vector<NamedFence> fences;
  std::string text;
};
// Those at other places than `all` has.
void add_fences(const std::vector<NamedFence>& fences, std::vector<NamedFence>* all);
enum class EventNumbers : uint8_t { kSaid, kLeftOut };
std::string fences_line(const std::vector<NamedFence>& fences, EventNumbers numbers);

// The best first; none where none is known.
std::vector<RepairLine> repair_lines(const Finding& finding, const Symbols& symbols,
                                     const ReportNames& names, Property property);
// The same of the first violation of a text trace, in all of its events.
std::vector<RepairLine> repair_lines(const std::string& trace, Property property);

// Of a finding alone, without an input that could be asked: of fences the line says so. Empty: none
// is known.
std::string repair_line(const Finding& finding, const Symbols& symbols, const ReportNames& names,
                        Property property);

// Of these findings of a report, one line each, of which all that name fences hold for the input. `others`: it
// has further ones.
std::vector<std::string> repair_lines(const CheckReport& report,
                                      const std::vector<const Finding*>& findings, bool others,
                                      const Symbols& symbols, const ReportNames& names);

}  // namespace tsomon
