#include "monitor/slices/sampling.h"

#include <algorithm>
#include <ctime>
#include <thread>

#include <fmt/format.h>

#include "monitor/process/descriptor.h"
#include "monitor/process/process_files.h"
#include "monitor/process/target.h"
#include "monitor/slices/slice_judge.h"
#include "monitor/slices/slice_look.h"
#include "monitor/slices/twin_functions.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::duration_cast;
using std::chrono::microseconds;

microseconds own_time() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return microseconds(time.tv_sec * 1'000'000 + time.tv_nsec / 1000);
}

microseconds cost_of(uint64_t events) {
  return microseconds(
      static_cast<int64_t>(static_cast<double>(events) * kNanosecondsOfEvent / 1000));
}

microseconds time_of(pid_t pid) {
  return microseconds(static_cast<int64_t>(attach::processor_seconds(pid) * 1e6));
}

class Sampler {
 public:
  Sampler(const SamplingOptions& options, const std::function<void(const JudgedSlice&)>& judged)
      : options_(options), judged_(judged), plan_(options.plan) {}

  Result<void> prepare();
  Result<SamplingSummary> watch();

 private:
  microseconds elapsed() const { return duration_cast<microseconds>(Clock::now() - begin_); }
  bool is_over() const {
    return stop_asked() || (options_.time.count() != 0 && elapsed() >= options_.time);
  }
  bool needs_functions() const { return options_.plan.focus || options_.plan.cold; }
  double rate() const;
  void go_on();
  bool sleep_until(Clock::time_point until);
  bool wait_for(const PlannedSlice& slice);
  Result<bool> watch_one(const PlannedSlice& slice);
  Result<void> learn_functions(const std::string& file, WatchedSlice* slice);

  const SamplingOptions& options_;
  const std::function<void(const JudgedSlice&)>& judged_;
  Plan plan_;
  std::optional<TwinFunctions> functions_;
  std::optional<attach::Target> target_;         // where functions are looked for
  std::vector<uint64_t> first_;                  // functions that a slice waits for
  std::shared_ptr<attach::ProcessFiles> files_;  // nullptr: they are found by their paths
  std::unique_ptr<Trigger> trigger_;
  SamplingSummary summary_;
  const Clock::time_point begin_ = Clock::now();
  microseconds used_before_{0};
};

Result<void> Sampler::prepare() {
  used_before_ = time_of(options_.pid);
  if (options_.access != nullptr) {
    files_ = std::make_shared<attach::ProcessFiles>(options_.pid, *options_.access);
  }
  if (needs_functions() ||
      (options_.trigger && options_.trigger->kind == TriggerName::Kind::kFunction)) {
    auto target = options_.access != nullptr ? attach::Target::open(options_.pid, *options_.access)
                                             : attach::Target::open(options_.pid);
    if (!target) {
      return tl::unexpected<Error>(target.error());
    }
    target_ = std::move(*target);
    functions_.emplace(*target_);
  }
  if (!options_.trigger) {
    return {};
  }
  if (options_.trigger->kind == TriggerName::Kind::kFunction) {
    return trigger_functions(*options_.trigger, *functions_).map([&](std::vector<uint64_t>&& all) {
      first_ = std::move(all);
    });
  }
  return Trigger::open(*options_.trigger, options_.pid).map([&](std::unique_ptr<Trigger>&& one) {
    trigger_ = std::move(one);
  });
}

// Processors that the process keeps busy.
double Sampler::rate() const {
  const auto time = static_cast<double>(elapsed().count());
  const auto used = static_cast<double>((time_of(options_.pid) - used_before_).count());
  constexpr double kFirst = 10'000;  // before that nobody knows
  return time < kFirst ? 1 : used / time;
}

void Sampler::go_on() {
  if (options_.going_on) {
    summary_.elapsed = elapsed();
    options_.going_on(summary_);
  }
}

// True: nobody asked to stop meanwhile.
bool Sampler::sleep_until(Clock::time_point until) {
  constexpr microseconds kLook{20'000};
  while (Clock::now() < until) {
    if (stop_asked()) {
      return false;
    }
    go_on();
    std::this_thread::sleep_for(std::min(kLook, duration_cast<microseconds>(until - Clock::now())));
  }
  return !stop_asked();
}

bool Sampler::wait_for(const PlannedSlice& slice) {
  const Clock::time_point last =
      options_.time.count() == 0 ? Clock::time_point::max() : begin_ + options_.time;
  return sleep_until(std::min(begin_ + slice.begin, last)) &&
         (trigger_ == nullptr || trigger_->wait(last)) && !is_over();
}

Result<void> Sampler::learn_functions(const std::string& file, WatchedSlice* slice) {
  if (target_->mappings_changed()) {
    target_->refresh();
    functions_.emplace(*target_);
  }
  const auto look = look_at_slice(file, options_.labels);
  if (!look) {
    return tl::unexpected<Error>(look.error());
  }
  size_t without = 0;
  slice->shown = functions_->entries_of(look->seen, &without);
  slice->met = functions_->entries_of(look->met, &without);
  if (without != 0) {
    // Only another twin leads to a specialised copy: those of the same units, perhaps.
    slice->met = functions_->entries_of(look->met_units, &without);
  }
  return {};
}

// False: the program has ended.
Result<bool> Sampler::watch_one(const PlannedSlice& planned) {
  const auto made = make_slice_file();
  if (!made) {
    return tl::unexpected<Error>(made.error());
  }
  const Descriptor& file = *made;
  SliceRequest request{options_.pid,      options_.folder,    planned.time,
                       planned.functions, planned.most_bytes, {},
                       options_.access};
  if (options_.time.count() != 0) {
    request.time = std::clamp(options_.time - elapsed(), microseconds(1), planned.time);
  }
  if (!first_.empty()) {
    request.functions = {WatchedFunctions::Which::kFirst, first_};
    request.patience = options_.time.count() == 0
                           ? microseconds(0)
                           : std::max(options_.time - elapsed(), microseconds(1));
  }
  const microseconds at = elapsed();
  const microseconds used = time_of(options_.pid);
  const auto end = record_slice(request, file.get());
  if (!end) {
    if (summary_.slices() == 0) {
      return tl::unexpected<Error>(end.error());
    }
    summary_.ended = end.error().message;
    return false;
  }
  SamplingSummary::Kind& kind = summary_.kinds[static_cast<size_t>(planned.kind)];
  ++kind.slices;
  kind.watched += end->watched;
  summary_.cut_units += end->cut_units;
  summary_.without_threads += end->threads == 0 ? 1 : 0;
  WatchedSlice watched;
  watched.kind = planned.kind;
  watched.watched = end->watched;
  watched.bytes = end->bytes;
  watched.ended = elapsed();
  const microseconds most = std::max(time_of(options_.pid) - used, microseconds(0));
  microseconds cost{0};
  const microseconds own = own_time();
  if (end->threads != 0) {
    if (files_ != nullptr) {
      files_->round();
    }
    FileSearch search;
    search.opened = files_;
    auto judged = judge_slice(file.get(), options_.questions, search);
    if (!judged) {
      return tl::unexpected<Error>(judged.error());
    }
    cost = std::min(most, cost_of(judged->checked.reports.front().events));
    if (needs_functions() && !judged->refused) {
      const std::string path = fmt::format("/proc/self/fd/{}", file.get());
      if (const auto learnt = learn_functions(path, &watched); !learnt) {
        return tl::unexpected<Error>(learnt.error());
      }
    }
    const WorkPause outside;  // what was found is told whole
    judged_({summary_.slices(), planned.kind, at, file.get(), judged->checked});
  }
  const microseconds judging = own_time() - own;
  summary_.cost += cost;
  summary_.judging += judging;
  watched.cost = cost + judging;
  plan_.learn(watched);
  go_on();
  return true;
}

Result<SamplingSummary> Sampler::watch() {
  while (!is_over()) {
    const PlannedSlice planned = plan_.next(rate());
    if (!wait_for(planned)) {
      break;
    }
    const auto goes_on = watch_one(planned);
    if (!goes_on) {
      return tl::unexpected<Error>(goes_on.error());
    }
    if (!*goes_on) {
      break;
    }
  }
  summary_.elapsed = elapsed();
  summary_.used = std::max(time_of(options_.pid) - used_before_, microseconds(0));
  return summary_;
}

}  // namespace

uint64_t SamplingSummary::slices() const {
  uint64_t sum = 0;
  for (const Kind& kind : kinds) {
    sum += kind.slices;
  }
  return sum;
}

Result<SamplingSummary> watch_slices(const SamplingOptions& options,
                                     const std::function<void(const JudgedSlice&)>& judged) {
  Sampler sampler(options, judged);
  return sampler.prepare().and_then([&] { return sampler.watch(); });
}

}  // namespace tsomon
