// What a finding is about, as suppressions name it: its places in the code, its units, its fingerprint.
//
// Purpose     The one way from a finding of any command to what users write down of it
//             (finding_filter.h).
// Places      Of a cycle the accesses by which it enters and leaves its units, or its events; of a
//             race and its like the accesses. The calls that code was inlined for count as well;
//             those that may have led there do not, for nobody saw them.
// Text traces A location "deposit bank.cpp:20" or "bank.cpp:20" is a place like any other.
// Complexity  O(accesses). Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "monitor/findings/reported_cycle.h"

namespace tsomon {

// In the order of the accesses; what is not known is left out.
struct FindingPlaces {
  std::string fingerprint;
  std::vector<std::string> functions;  // demangled, without parameters
  std::vector<std::string> files;      // as the compiler recorded them
  std::vector<std::string> modules;
  std::vector<std::string> units;  // labels

  void add(const SourcePlace& place);
  void add_text(std::string_view text);  // of a place of which no more is known
};

FindingPlaces places_of(const ReportedCycle& cycle);
// Of accesses that are no cycle of units.
FindingPlaces places_of(const std::vector<ReportedAccess>& accesses);

// "deposit bank.cpp:20" and "bank.cpp:20" taken apart; without a line nothing is known.
SourceFrame frame_of_text(std::string_view text);

}  // namespace tsomon
