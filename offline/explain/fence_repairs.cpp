#include "offline/explain/fence_repairs.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "offline/explain/code.h"
#include "offline/explain/fence_sets.h"
#include "offline/explain/fenced_input.h"
#include "tso/support/work.h"

namespace tsomon::explain {
namespace {

// Of judging whole inputs once for each place of a fence; beyond, slices are judged.
constexpr uint64_t kMaxWholeWork = 4'000'000'000;

class FenceRepairs {
 public:
  FenceRepairs(const std::vector<ExplainedTrace>& inputs,
               const std::vector<const ExplainedViolation*>& violations,
               const RepairOptions& options, Repairs* result)
      : inputs_(inputs), violations_(violations), options_(options), result_(result) {}

  void find() {
    if (options_.analysis.property == Property::kScSerializability || violations_.empty()) {
      return;
    }
    std::vector<FencedInput> wholes;
    wholes.reserve(inputs_.size());
    bool whole = true;
    for (uint32_t i = 0; i < inputs_.size(); ++i) {
      wholes.emplace_back(*inputs_[i].trace, options_.analysis);
      whole = whole && wholes.back().can_ask();
    }
    FenceSearch inputs;
    for (uint32_t i = 0; whole && i < inputs_.size(); ++i) {
      add_question(
          i, wholes[i].late_stores(),
          [&wholes, i](std::vector<uint32_t> stores, FenceTime time) {
            return wholes[i].with_fences_after(std::move(stores), time);
          },
          &inputs);
    }
    for (const FencedInput& one : wholes) {
      inputs.work += one.work();
    }
    if (whole && inputs.work * (1 + inputs.places.size()) <= kMaxWholeWork) {
      search_fences(inputs, [](const Repair&, FenceTime) { return true; });
      return;
    }
    FenceSearch slices;
    if (!add_slices(&slices)) {
      result_->notes.missing(
          "fences were not looked for: the slice around a violation alone does not show it");
      return;
    }
    result_->notes.missing(
        "not all sets of fences were looked at: the input is too large to be judged for each, so "
        "those of the slices around its violations were");
    search_fences(slices, [&](const Repair& repair, FenceTime time) {
      return whole ? holds_for_all(repair, wholes, time) : std::nullopt;
    });
  }

  void find_around() {
    FenceSearch slices;
    if (options_.analysis.property != Property::kScSerializability && add_slices(&slices)) {
      search_fences(slices, [](const Repair&, FenceTime) { return true; });
    }
  }

 private:
  using Stores = std::vector<std::pair<uint32_t, uint32_t>>;  // place, store
  using AskFences = std::function<Left(std::vector<uint32_t> stores, FenceTime time)>;

  // Where fences may be, and what is asked about them.
  struct FenceSearch {
    std::vector<FencePlace> places;
    std::map<std::string, uint32_t> numbers;  // by location
    std::vector<Stores> stores;               // by question
    std::vector<AskFences> questions;
    uint64_t work = 0;  // of asking each once; 0: not known
  };

  void add_question(uint32_t input, const std::vector<uint32_t>& late, AskFences ask,
                    FenceSearch* search) const {
    Stores& mine = search->stores.emplace_back();
    for (const uint32_t store : late) {
      const std::string location = location_of(*inputs_[input].trace, store);
      const auto [known, is_new] =
          search->numbers.try_emplace(location, static_cast<uint32_t>(search->places.size()));
      if (is_new) {
        search->places.push_back({location, input, store, 0});
      }
      mine.emplace_back(known->second, store);
    }
    search->questions.push_back(std::move(ask));
  }

  // False: a slice does not show its violation.
  bool add_slices(FenceSearch* search) const {
    for (const ExplainedViolation* const one : violations_) {
      if (!one->slice || !one->slice->can_ask()) {
        return false;
      }
      add_question(
          one->input, one->slice->late_stores(),
          [one](std::vector<uint32_t> stores, FenceTime time) {
            return one->slice->with_fences_after(std::move(stores), time);
          },
          search);
    }
    return true;
  }

  // Whether what the questions are content with holds for the inputs.
  using VerifyFences = std::function<std::optional<bool>(const Repair&, FenceTime)>;

  void search_fences(FenceSearch& search, const VerifyFences& verify) {
    count_times(search.numbers, &search.places);
    if (!ask_for_fences(search, FenceTime::kOpen, verify)) {
      ask_for_fences(search, FenceTime::kRecorded, verify);
    }
  }

  // False: there are none.
  bool ask_for_fences(const FenceSearch& search, FenceTime time, const VerifyFences& verify) {
    std::vector<uint64_t> costs;
    costs.reserve(search.places.size());
    for (const FencePlace& place : search.places) {
      costs.push_back(std::max<uint64_t>(1, place.times));
    }
    std::vector<FenceQuestion> questions;
    for (size_t i = 0; i < search.questions.size(); ++i) {
      questions.emplace_back([&, i](const std::vector<bool>& chosen) {
        std::vector<uint32_t> after;
        for (const auto& [place, store] : search.stores[i]) {
          if (chosen[place]) {
            after.push_back(store);
          }
        }
        return removes(search.questions[i](std::move(after), time));
      });
    }
    const bool all = !of_events() && search.work > 0 && costs.size() <= kMostTried &&
                     search.work << costs.size() <= kMaxWholeWork;
    const FenceSets found =
        all ? try_fence_sets(costs, questions) : find_fence_sets(costs, questions);
    // find_fence_sets takes it that more fences never help less, which holds of single events
    // alone.
    if (!found.complete || !(of_events() || all || costs.empty())) {
      result_->notes.missing("not all sets of fences were looked at");
    }
    bool any = false;
    for (const std::vector<uint32_t>& set : found.sets) {
      Repair repair;
      for (const uint32_t place : set) {
        repair.fences.push_back(search.places[place]);
      }
      repair.verified = verify(repair, time);
      repair.assumes_times = time == FenceTime::kRecorded;
      any = any || repair.verified.value_or(true);
      result_->repairs.push_back(std::move(repair));
    }
    return any;
  }

  // With fences wherever a store of these places is.
  static std::optional<bool> holds_for_all(const Repair& repair,
                                           const std::vector<FencedInput>& wholes, FenceTime time) {
    const auto is_fenced = [&](const std::string& location) {
      return std::any_of(repair.fences.begin(), repair.fences.end(),
                         [&](const FencePlace& fence) { return fence.location == location; });
    };
    for (const FencedInput& whole : wholes) {
      const Answer holds = removes(whole.with_fences_at(is_fenced, time));
      if (holds != Answer::kYes) {
        return holds == Answer::kNo ? std::optional(false) : std::nullopt;
      }
    }
    return true;
  }

  void count_times(const std::map<std::string, uint32_t>& numbers,
                   std::vector<FencePlace>* places) const {
    for (const ExplainedTrace& input : inputs_) {
      for (uint32_t e = 0; e < input.trace->events.size(); ++e) {
        spend(4);
        if (!is(input.trace->events[e], kinds::kStores)) {
          continue;
        }
        if (const auto place = numbers.find(location_of(*input.trace, e)); place != numbers.end()) {
          ++(*places)[place->second].times;
        }
      }
    }
  }

  bool of_events() const { return options_.analysis.property == Property::kRobustness; }

  const std::vector<ExplainedTrace>& inputs_;
  const std::vector<const ExplainedViolation*>& violations_;
  const RepairOptions& options_;
  Repairs* result_;
};

}  // namespace

void find_fence_repairs(const std::vector<ExplainedTrace>& inputs,
                        const std::vector<const ExplainedViolation*>& violations,
                        const RepairOptions& options, Repairs* result) {
  FenceRepairs(inputs, violations, options, result).find();
}

void find_fences_around(const std::vector<ExplainedTrace>& inputs,
                        const std::vector<const ExplainedViolation*>& violations,
                        const RepairOptions& options, Repairs* result) {
  FenceRepairs(inputs, violations, options, result).find_around();
}

}  // namespace tsomon::explain
