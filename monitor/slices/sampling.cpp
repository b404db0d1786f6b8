#include "monitor/slices/sampling.h"

#include <algorithm>
#include <ctime>
#include <new>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "monitor/process/descriptor.h"
#include "monitor/process/location_texts.h"
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

// Bytes of a slice that nothing else bounds. One that has a bound also ends where the program has no room for more records: what there is
// of it is whole then.
constexpr uint64_t kWhole = uint64_t{1} << 62;

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

// When a slice begins.
struct SliceBegin {
  microseconds at{0};    // since sampling began
  microseconds used{0};  // processor time of the process
  microseconds own{0};   // of this one
};

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
  bool needs_functions() const {
    return options_.plan.focus || options_.plan.cold || !alarm_.empty();
  }
  attach::ProcessAccess& access() const {
    return options_.access != nullptr ? *options_.access : attach::direct_access();
  }
  double rate() const;
  void go_on();
  bool sleep_until(Clock::time_point until);
  bool wait_for(const PlannedSlice& slice);
  Result<bool> stand_by(const PlannedSlice& planned);
  bool leave_out(const PlannedSlice& planned, const std::string& reason);
  Result<bool> watch_one(const PlannedSlice& planned);
  Result<SliceEnd> record(const PlannedSlice& planned, int file, microseconds patience);
  Result<bool> judge(const PlannedSlice& planned, const SliceEnd& end, int file,
                     const SliceBegin& begin);
  Result<JudgedFile> check(int file, SliceLooker* looker);
  uint64_t unjudged(const CheckReport& report, const std::string& path) const;
  void learn_functions(const SliceLook& look, WatchedSlice* slice);
  bool has_alarm(const WatchedSlice& slice) const;

  const SamplingOptions& options_;
  const std::function<void(const JudgedSlice&)>& judged_;
  Plan plan_;
  std::optional<TwinFunctions> functions_;
  std::optional<attach::Target> target_;         // where functions are looked for
  std::vector<uint64_t> first_;                  // functions that a slice waits for
  std::vector<uint64_t> alarm_;                  // likewise, between those that are planned
  microseconds quiet_until_{0};                  // nobody waits for these before
  std::shared_ptr<attach::ProcessFiles> files_;  // nullptr: they are found by their paths
  std::shared_ptr<KnownSymbolisers> symbolisers_ = std::make_shared<KnownSymbolisers>();
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
  if (needs_functions() || !options_.alarm_functions.empty() ||
      (options_.trigger && options_.trigger->kind == TriggerName::Kind::kFunction)) {
    auto target = attach::Target::open(options_.pid, access());
    if (!target) {
      return tl::unexpected<Error>(target.error());
    }
    target_ = std::move(*target);
    functions_.emplace(*target_);
  }
  if (!options_.alarm_functions.empty()) {
    auto named = trigger_functions({TriggerName::Kind::kFunction, options_.alarm_functions, {}, 0},
                                   *functions_);
    if (!named) {
      return tl::unexpected<Error>(named.error());
    }
    alarm_ = std::move(*named);
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
  constexpr microseconds kInTime{1000};
  if (const microseconds late = elapsed() - slice.begin; late > kInTime) {
    ++summary_.delayed;
    summary_.delay += late;
  }
  const Clock::time_point last =
      options_.time.count() == 0 ? Clock::time_point::max() : begin_ + options_.time;
  return sleep_until(std::min(begin_ + slice.begin, last)) &&
         (trigger_ == nullptr || trigger_->wait(last)) && !is_over();
}

void Sampler::learn_functions(const SliceLook& look, WatchedSlice* slice) {
  if (target_->mappings_changed()) {
    target_->refresh();
    functions_.emplace(*target_);
  }
  size_t without = 0;
  slice->shown = functions_->entries_of(look.seen, &without);
  slice->met = functions_->entries_of(look.met, &without);
  if (without != 0) {
    // Only another twin leads to a specialised copy: those of the same units, perhaps.
    slice->met = functions_->entries_of(look.met_units, &without);
  }
}

// A slice begins before the planned one when one of the functions is called.
Result<bool> Sampler::stand_by(const PlannedSlice& planned) {
  constexpr microseconds kWorthIt{5000};
  constexpr microseconds kLongest{500'000};  // then others may look
  Result<bool> goes_on = true;
  while (goes_on && *goes_on && !alarm_.empty() && !is_over() &&
         planned.begin - elapsed() > kWorthIt && elapsed() >= quiet_until_ &&
         (!options_.drop || options_.drop().empty())) {
    go_on();
    PlannedSlice one;
    one.kind = SliceKind::kTrigger;
    one.begin = std::min(planned.begin, elapsed() + kLongest);
    one.time = options_.plan.slice;
    goes_on = watch_one(one);
  }
  return goes_on;
}

// True: nobody asked to stop meanwhile.
bool Sampler::leave_out(const PlannedSlice& planned, const std::string& reason) {
  ++summary_.dropped[reason];
  summary_.gaps += planned.time;
  const bool goes_on = sleep_until(Clock::now() + planned.time);
  plan_.leave_out(planned.kind, elapsed());
  return goes_on;
}

Result<SliceEnd> Sampler::record(const PlannedSlice& planned, int file, microseconds patience) {
  SliceRequest request{options_.pid, options_.folder, planned.time, planned.functions, kWhole,
                       {},           &access()};
  for (const uint64_t most : {planned.most_bytes, options_.most_bytes}) {
    request.most_bytes = most == 0 ? request.most_bytes : std::min(request.most_bytes, most);
  }
  const bool bounded = options_.time.count() != 0;
  const microseconds left = std::max(options_.time - elapsed(), microseconds(1));
  if (bounded) {
    request.time = std::min(left, planned.time);
  }
  if (planned.kind == SliceKind::kTrigger) {
    request.functions = {WatchedFunctions::Which::kFirst, alarm_};
    request.patience = patience;
  } else if (!first_.empty()) {
    request.functions = {WatchedFunctions::Which::kFirst, first_};
    request.patience = bounded ? left : microseconds(0);
  }
  auto end = record_slice(request, file);
  summary_.shortened +=
      end && options_.most_bytes != 0 && end->bytes >= options_.most_bytes ? 1 : 0;
  return end;
}

// False: the program has ended.
Result<bool> Sampler::watch_one(const PlannedSlice& planned) {
  const auto made = make_slice_file();
  if (!made) {
    return tl::unexpected<Error>(made.error());
  }
  const Descriptor& file = *made;
  const SliceBegin begin{elapsed(), time_of(options_.pid), own_time()};
  const bool is_planned = planned.kind != SliceKind::kTrigger;
  const auto end = record(planned, file.get(), std::max(planned.begin - begin.at, microseconds(1)));
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  const bool shows_something = end ? end->threads != 0 : size > 0;
  if (options_.recorded && shows_something) {
    options_.recorded(file.get(), static_cast<uint64_t>(std::max<off_t>(size, 0)));
  }
  if (!end) {
    if (summary_.slices() == 0) {
      return tl::unexpected<Error>(end.error());
    }
    if (is_planned) {
      ++summary_.dropped["not answered"];
    }
    summary_.ended = end.error().message;
    return false;
  }
  if (!is_planned && end->threads == 0) {
    return true;  // nobody has called them
  }
  summary_.planned += is_planned ? 0 : 1;
  return judge(planned, *end, file.get(), begin);
}

Result<bool> Sampler::judge(const PlannedSlice& planned, const SliceEnd& end, int file,
                            const SliceBegin& begin) {
  SamplingSummary::Kind& kind = summary_.kinds[static_cast<size_t>(planned.kind)];
  ++kind.slices;
  kind.watched += end.watched;
  summary_.cut_units += end.cut_units;
  summary_.without_threads += end.threads == 0 ? 1 : 0;
  WatchedSlice watched;
  watched.kind = planned.kind;
  watched.watched = end.watched;
  watched.bytes = end.bytes;
  watched.cut_units = end.cut_units;
  watched.ended = elapsed();
  const microseconds most = std::max(time_of(options_.pid) - begin.used, microseconds(0));
  summary_.used = std::max(begin.used + most - used_before_, summary_.used);
  microseconds cost{0};
  if (end.threads != 0) {
    const std::string path = fmt::format("/proc/self/fd/{}", file);
    SliceLooker looker(options_.labels);
    auto judged = check(file, needs_functions() ? &looker : nullptr);
    if (!judged) {
      return tl::unexpected<Error>(judged.error());
    }
    const CheckReport& first = judged->checked.reports.front();
    cost = std::min(most, cost_of(first.events));
    const uint64_t left = judged->refused ? 0 : unjudged(first, path);
    if (needs_functions() && !judged->refused) {
      learn_functions(looker.look(), &watched);
    }
    watched.units = first.units;
    summary_.without_accesses += first.basis && first.basis->accesses == 0 ? 1 : 0;
    const WorkPause outside;  // what was found is told whole
    judged_({summary_.slices(), planned.kind, begin.at, file, left, judged->checked});
  }
  if (planned.kind == SliceKind::kTrigger || has_alarm(watched)) {
    const WorkPause outside;
    quiet_until_ = elapsed() + options_.alarm_rest;
    options_.alarm();
  }
  // Also what recording takes here: it is much of what short slices take.
  const microseconds judging = own_time() - begin.own;
  summary_.cost += cost;
  summary_.judging += judging;
  watched.cost = cost + judging;
  plan_.learn(watched);
  go_on();
  return true;
}

// What comes from the program may be anything: its size bounds what it may take.
Result<JudgedFile> Sampler::check(int file, SliceLooker* looker) {
  FileSearch search;
  search.known = symbolisers_;
  if (files_ != nullptr) {
    files_->round();
    search.opened = files_;
  }
  WorkBounds bounds;
  bounds.max_bytes = options_.judging_bytes;
  WorkMeter meter(bounds);
  try {
    const WorkScope scope(&meter);
    const off_t size = ::lseek(file, 0, SEEK_END);
    return within_input(static_cast<uint64_t>(std::max<off_t>(size, 0)),
                        [&] { return judge_slice(file, options_.questions, search, looker); });
  } catch (const WorkEnded& end) {
    const WorkPause outside;
    JudgedFile nothing;
    for (const CheckOptions& question : options_.questions) {
      CheckReport& report = nothing.checked.reports.emplace_back();
      report.property = question.property;
      report.missing(limit_text(end.limit()));
    }
    return nothing;
  } catch (const std::bad_alloc&) {
    return tl::unexpected<Error>(Error{
        ErrorKind::kEnvironment, "memory for judging a slice", {}, "the machine has no more"});
  }
}

uint64_t Sampler::unjudged(const CheckReport& report, const std::string& path) const {
  const bool ended_early =
      std::any_of(report.notes.begin(), report.notes.end(), [](const std::string& note) {
        return note == limit_text(WorkLimit::kStopped) || note == limit_text(WorkLimit::kWork) ||
               note == limit_text(WorkLimit::kMemory);
      });
  if (!ended_early) {
    return 0;
  }
  const WorkPause outside;  // also after a stop
  const auto all = events_of_slice(path);
  return all ? *all - std::min(*all, report.events) : 0;
}

bool Sampler::has_alarm(const WatchedSlice& slice) const {
  return elapsed() >= quiet_until_ &&
         std::any_of(alarm_.begin(), alarm_.end(), [&](uint64_t entry) {
           return std::binary_search(slice.shown.begin(), slice.shown.end(), entry);
         });
}

Result<SamplingSummary> Sampler::watch() {
  while (!is_over()) {
    const PlannedSlice planned = plan_.next(rate());
    auto goes_on = stand_by(planned);
    if (goes_on && *goes_on) {
      if (!wait_for(planned)) {
        break;
      }
      ++summary_.planned;
      const std::string reason = options_.drop ? options_.drop() : std::string();
      goes_on = reason.empty() ? watch_one(planned) : Result<bool>(leave_out(planned, reason));
    }
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

void SamplingSummary::add(const SamplingSummary& more) {
  for (size_t i = 0; i < kinds.size(); ++i) {
    kinds[i].slices += more.kinds[i].slices;
    kinds[i].watched += more.kinds[i].watched;
  }
  elapsed += more.elapsed;
  used += more.used;
  cost += more.cost;
  judging += more.judging;
  cut_units += more.cut_units;
  without_threads += more.without_threads;
  without_accesses += more.without_accesses;
  planned += more.planned;
  for (const auto& [reason, count] : more.dropped) {
    dropped[reason] += count;
  }
  gaps += more.gaps;
  shortened += more.shortened;
  delayed += more.delayed;
  delay += more.delay;
}

Result<SamplingSummary> watch_slices(const SamplingOptions& options,
                                     const std::function<void(const JudgedSlice&)>& judged) {
  Sampler sampler(options, judged);
  return sampler.prepare().and_then([&] { return sampler.watch(); });
}

}  // namespace tsomon
