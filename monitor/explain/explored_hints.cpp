#include "monitor/explain/explored_hints.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "monitor/explain/explain_explored.h"
#include "monitor/explain/explain_line.h"

namespace tsomon {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostAdded = 4;  // rounds in which fences are added

Property property_of(const explore::ExploreFinding& finding, explore::Model model) {
  return finding.kind == "robustness"   ? Property::kRobustness
         : model == explore::Model::kSc ? Property::kScSerializability
                                        : Property::kSerializability;
}

// The program with one repair and another one, until the bounds are used up.
class RepairTrials {
 public:
  RepairTrials(explore::ExploreOptions options, const explore::Exploration& before)
      : options_(std::move(options)),
        before_(before),
        executions_(before.executions + before.blocked + kMostExecutionsRepaired),
        begun_(Clock::now()) {
    options_.replay.clear();
    options_.folder.clear();
    options_.linearizability = false;
    options_.preemptions = UINT32_MAX;
  }

  std::string line_of(const explore::ExploreFinding& finding) {
    const std::vector<RepairLine> lines =
        repair_lines(finding.trace, property_of(finding, options_.model));
    std::string left;
    std::vector<NamedFence> fences;
    for (const RepairLine& line : lines) {
      const Tried tried = explored_with(line.repair, finding);
      if (tried.helps) {
        return line.fences.empty() ? line.text : fences_line(line.fences, EventNumbers::kLeftOut);
      }
      if (fences.empty() && !line.fences.empty()) {
        fences = line.fences;
        left = tried.left;
      }
    }
    return line_with_more(finding, std::move(fences), std::move(left));
  }

 private:
  struct Tried {
    bool helps = false;  // no execution has the finding then, or anything that it had not before
    std::string left;    // one that has it
  };

  // What the executions that are left ask for is added.
  std::string line_with_more(const explore::ExploreFinding& finding, std::vector<NamedFence> fences,
                             std::string left) {
    for (size_t round = 0; round < kMostAdded && !left.empty(); ++round) {
      const size_t before = fences.size();
      for (const RepairLine& line : repair_lines(left, property_of(finding, options_.model))) {
        if (fences.size() == before) {
          add_fences(line.fences, &fences);
        }
      }
      if (fences.size() == before) {
        break;
      }
      const Tried tried = explored_with(repair_of(fences), finding);
      if (tried.helps) {
        leave_out(finding, &fences);
        return fences_line(fences, EventNumbers::kLeftOut);
      }
      left = tried.left;
    }
    return {};
  }

  // Whatever is not needed.
  void leave_out(const explore::ExploreFinding& finding, std::vector<NamedFence>* fences) {
    for (size_t i = fences->size(); i-- > 0 && fences->size() > 1;) {
      std::vector<NamedFence> fewer = *fences;
      fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i));
      if (explored_with(repair_of(fewer), finding).helps) {
        *fences = std::move(fewer);
      }
    }
  }

  static explain::Repair repair_of(const std::vector<NamedFence>& fences) {
    explain::Repair repair;
    for (const NamedFence& fence : fences) {
      repair.fences.push_back(fence.at);
    }
    return repair;
  }

  Tried explored_with(const explain::Repair& repair, const explore::ExploreFinding& finding) {
    explore::ExploreOptions options = options_;
    options.executions = executions_;
    if (options.seconds > 0) {
      options.seconds -=
          before_.seconds + std::chrono::duration<double>(Clock::now() - begun_).count();
      if (options.seconds <= 0) {
        return {};
      }
    }
    if (executions_ == 0) {
      return {};
    }
    const auto tried =
        explore_repair(repair, before_, finding.kind,
                       {finding.locations.begin(), finding.locations.end()}, options);
    if (!tried) {
      executions_ = 0;
      return {};
    }
    executions_ -= std::min(executions_, std::max<uint64_t>(1, tried->executions));
    const bool is_new = std::any_of(tried->others.begin(), tried->others.end(),
                                    [](const OtherFinding& other) { return other.is_new; });
    return {tried->gone == std::optional(true) && !is_new, tried->left};
  }

  explore::ExploreOptions options_;
  const explore::Exploration& before_;
  uint64_t executions_;  // that are left
  const Clock::time_point begun_;
};

}  // namespace

void add_repairs(explore::ExploreOptions options, explore::Exploration* explored) {
  const explore::Exploration before = *explored;
  RepairTrials trials(std::move(options), before);
  size_t asked = 0;
  for (explore::ExploreFinding& finding : explored->findings) {
    if (!finding.trace.empty() && ++asked <= kMostFindingsRepaired) {
      finding.repair = trials.line_of(finding);
    }
  }
}

}  // namespace tsomon
