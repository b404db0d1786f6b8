#include "monitor/doctor/doctor.h"

#include <set>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "monitor/doctor/doctor_parts.h"

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
  for (const char* name :
       {"kernel", "btf", "bpf", "ptrace", "cores", "clock_source", "lfence", "tsc_invariant",
        "store_reordering", "perf_event", "perf_software", "perf_hardware", "uprobes",
        "hardware_breakpoints", "intel_pt", "hit_cost_perf", "hit_cost_perf_return", "hit_cost_bpf",
        "hit_cost_breakpoint"}) {
    CAPTURE(name);
    CHECK(names.count(name) == 1);
  }
}

// What is available as a whole was measured, and no trap takes less than a call of the kernel can.
TEST_CASE("doctor: costs of hits are measured where there are probes") {
  std::set<std::string> available;
  for (const MachineFinding& finding : examine_machine()) {
    CAPTURE(finding.name);
    CHECK(finding.nanoseconds.has_value() ==
          (finding.available && finding.name.rfind("hit_cost_", 0) == 0));
    if (finding.nanoseconds) {
      CHECK(*finding.nanoseconds > 50);
      CHECK(*finding.nanoseconds < 1e6);
    }
    if (finding.available) {
      available.insert(finding.name);
    }
  }
  CHECK(available.count("hit_cost_perf") == available.count("uprobes"));
  CHECK(available.count("hit_cost_breakpoint") == available.count("hardware_breakpoints"));
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
