#include "monitor/doctor.h"

#include <set>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "monitor/doctor_parts.h"

namespace tsomon {

TEST_CASE("doctor: every finding can be acted on") {
  const std::vector<MachineFinding> findings = examine_machine();
  std::set<std::string> names;
  for (const MachineFinding& finding : findings) {
    CAPTURE(finding.name);
    CHECK(names.insert(finding.name).second);
    CHECK_FALSE(finding.detail.empty());
    CHECK_FALSE(finding.needed_by.empty());
    CHECK(finding.remedy.empty() == finding.available);
  }
  for (const char* name : {"kernel", "btf", "bpf", "ptrace", "cores", "clock_source", "lfence",
                           "tsc_invariant", "store_reordering", "perf_event", "perf_software",
                           "perf_hardware", "uprobes", "hardware_breakpoints", "intel_pt"}) {
    CAPTURE(name);
    CHECK(names.count(name) == 1);
  }
}

TEST_CASE("doctor: threads stay on the processor they are pinned to") {
  for (int processor : doctor::usable_processors()) {
    std::thread([processor] {
      doctor::pin_to(processor);
      CHECK(doctor::usable_processors() == std::vector<int>{processor});
    }).join();
  }
}

TEST_CASE("doctor: a finding has a remedy only when something is missing") {
  CHECK(doctor::finding("a", true, false, "b", "c", "d").remedy.empty());
  CHECK(doctor::finding("a", false, false, "b", "c", "d").remedy == "d");
}

}  // namespace tsomon
