// Plans of probes, made for the program of this test.
#include "monitor/attach/plan.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "monitor/attach/set_probes.h"
#include "monitor/process/target.h"
#include "tests/monitor/waiting_process.h"

using namespace tsomon;
using namespace tsomon::attach;

extern "C" {
uint64_t planned_counter = 0;
void planned_unit();
}
// A load, a store and a return; what sanitizers would put between them is not there.
asm(R"(
  .text
  .globl planned_unit
  .type planned_unit, @function
planned_unit:
  movq planned_counter(%rip), %rax
  incq %rax
  movq %rax, planned_counter(%rip)
  ret
  .size planned_unit, . - planned_unit
)");

namespace {

Target opened(const testing::WaitingProcess& process) {
  auto target = Target::open(process.pid());
  REQUIRE_MESSAGE(target.has_value(), target.error().to_string());
  return std::move(*target);
}

size_t count(const Plan& plan, Action::Kind kind) {
  size_t all = 0;
  for (const Site& site : plan.sites) {
    all += static_cast<size_t>(
        std::count_if(site.actions.begin(), site.actions.end(),
                      [&](const Action& action) { return action.kind == kind; }));
  }
  return all;
}

// A kernel that does not probe some places.
class Refusing : public Uprobes {
 public:
  const char* name() const override { return "refusing"; }
  Result<ProbeHold> attach(pid_t, const std::string&, const std::vector<ProbePlace>& places,
                           int* reason) override {
    for (const ProbePlace& place : places) {
      if (std::count(refused.begin(), refused.end(), place.source) != 0) {
        if (reason != nullptr) {
          *reason = EINVAL;
        }
        return fail(ErrorKind::kEnvironment, "refused");
      }
    }
    set += places.size();
    return ProbeHold(this, [this, n = places.size()](void*) { set -= n; });
  }
  void read(std::vector<Hit>&) override {}
  uint64_t lost() const override { return 0; }

  std::vector<uint32_t> refused;  // by their source
  size_t set = 0;
};

}  // namespace

TEST_CASE("attach plan: what the kernel does not probe is left out, or refused with the unit") {
  const testing::WaitingProcess process;
  const Target target = opened(process);
  PlanRequest request;
  request.units = {"planned_unit"};
  request.locks = false;
  for (const bool marker : {false, true}) {
    Symbols symbols;
    auto plan = make_plan(target, request, symbols);
    REQUIRE(plan.has_value());
    Refusing kernel;
    for (uint32_t site = 0; site < plan->sites.size(); ++site) {
      if (plan->sites[site].only_accesses() != marker) {
        kernel.refused = {site};
      }
    }
    REQUIRE(kernel.refused.size() == 1);
    EventMerge merge;
    HitsToEvents events(*plan, symbols, merge, {});
    SetProbes probes(target, *plan, kernel, events);
    const auto set = probes.set_from(0);
    REQUIRE(set.has_value() == !marker);
    if (marker) {
      CHECK(set.error().kind == ErrorKind::kUsage);
      continue;
    }
    CHECK(kernel.set == plan->sites.size() - 1);
    REQUIRE(plan->missed.size() == 1);
    CHECK(plan->missed[0].find("its accesses are not seen") != std::string::npos);
    for (uint32_t group = 0; group < plan->groups.size(); ++group) {
      CHECK(probes.has(group));
      probes.remove(group);
      CHECK_FALSE(probes.has(group));
    }
    CHECK(kernel.set == 0);
  }
}

TEST_CASE("attach plan: a unit function has probes at its entry, its return and its accesses") {
  planned_unit();
  const testing::WaitingProcess process;
  const Target target = opened(process);
  PlanRequest request;
  request.units = {"planned_unit"};
  request.locks = false;
  Symbols symbols;
  const auto plan = make_plan(target, request, symbols);
  REQUIRE_MESSAGE(plan.has_value(), plan.error().to_string());
  REQUIRE(plan->functions.size() == 1);
  CHECK(plan->functions[0].name == "planned_unit");
  CHECK(plan->functions[0].unit);
  CHECK(has_units(*plan, 0));
  CHECK_FALSE(has_units(*plan, plan->sites.size()));
  CHECK(plan->accesses == 2);
  CHECK(count(*plan, Action::Kind::kEnter) == 1);
  CHECK(count(*plan, Action::Kind::kLeave) == 1);
  CHECK(count(*plan, Action::Kind::kAccess) == 2);
  CHECK(std::all_of(plan->sites.begin(), plan->sites.end(), [&](const Site& site) {
    return site.group < plan->groups.size() &&
           target.modules()[site.module].path == target.executable();
  }));
  REQUIRE(symbols.labels.size() == 1);
  CHECK(symbols.labels.text(0) == "planned_unit");
}

TEST_CASE("attach plan: accesses alone make no unit, a watch point names its bytes") {
  const testing::WaitingProcess process;
  const Target target = opened(process);
  PlanRequest request;
  request.accesses = {"planned_unit"};
  request.watch = {"planned_counter:8"};
  request.locks = false;
  Symbols symbols;
  const auto plan = make_plan(target, request, symbols);
  REQUIRE_MESSAGE(plan.has_value(), plan.error().to_string());
  CHECK_FALSE(has_units(*plan, 0));
  CHECK(plan->accesses == 2);
  REQUIRE(plan->watch.size() == 1);
  CHECK(plan->watch[0].address == reinterpret_cast<uint64_t>(&planned_counter));
  CHECK(plan->watch[0].size == 8);
}

TEST_CASE("attach plan: a name that nothing has is an error that suggests one") {
  const testing::WaitingProcess process;
  const Target target = opened(process);
  PlanRequest request;
  request.units = {"planed_unit"};
  Symbols symbols;
  const auto plan = make_plan(target, request, symbols);
  REQUIRE_FALSE(plan.has_value());
  CHECK(plan.error().to_string().find("planned_unit") != std::string::npos);
}
