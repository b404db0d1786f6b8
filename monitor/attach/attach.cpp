#include "monitor/attach/attach.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "monitor/attach/address_names.h"
#include "monitor/attach/attach_signals.h"
#include "monitor/attach/choose_uprobes.h"
#include "monitor/attach/cost.h"
#include "monitor/attach/hits_to_events.h"
#include "monitor/attach/merged_watch.h"
#include "monitor/attach/overhead.h"
#include "monitor/attach/perf_rings.h"
#include "monitor/attach/proved_watch_points.h"
#include "monitor/attach/saved_trace.h"
#include "monitor/attach/set_probes.h"
#include "monitor/attach/watched_code.h"
#include "monitor/process/target.h"
#include "tso/support/work.h"

namespace tsomon::attach {
namespace {

// A hit has its time before it has its place in a ring. So long after, it is there, unless its
// thread was kept from running just then: what it tells is late, which the merge notices.
constexpr int64_t kSlack = 20'000'000;  // nanoseconds
// What the start of an interval may lie before its hit.
constexpr int64_t kReach = 2'000'000;
constexpr int64_t kPoll = 5'000'000;
constexpr int64_t kMeasure = 500'000'000;  // between two looks at the overhead
constexpr int64_t kLook = 100'000'000;     // between two looks at the process
constexpr const char* kAssumption =
    "values are what memory held when the hits were taken: that nobody stored before the "
    "instructions were carried out is assumed";

class Session {
 public:
  Session(Target target, const AttachOptions& options, const Watch::Callback& report)
      : target_(std::move(target)), options_(options), report_(report), request_(options.plan) {
    symbols_.initial_zero = false;
  }

  Result<AttachSummary> run() {
    if (auto ready = prepare(); !ready) {
      return tl::unexpected<Error>(ready.error());
    }
    Signals signals;
    WorkMeter meter({}, &signals.stop());
    const WorkScope scope(&meter);
    judge_events();
    if (auto set = begin(); !set) {
      return failed(set.error());
    }
    report_start();
    watch_until_end(signals);
    auto summary = finish();
    if (signals.stop().asked()) {
      // Freeing what a long run has left takes seconds, and the process ends now.
      [[maybe_unused]] static MergedWatch* left = nullptr;
      left = merged_.release();
    }
    return summary;
  }

 private:
  // All that may be refused before the process is touched.
  Result<void> prepare() {
    for (const std::string& file : options_.modules) {
      if (auto added = target_.add_file(file); !added) {
        return tl::unexpected<Error>(added.error());
      }
    }
    request_.values = options_.values != Values::kNone;
    request_.group_by_function = options_.max_overhead > 0;
    auto plan = make_plan(target_, request_, symbols_);
    if (!plan) {
      return tl::unexpected<Error>(plan.error());
    }
    plan_ = std::move(*plan);
    auto probes = own_uprobes();
    if (!probes) {
      return tl::unexpected<Error>(probes.error());
    }
    probes_ = std::move(*probes);
    if (auto measured = measure_hit(); !measured) {
      return measured;
    }
    if (auto proved = prove_watch_points(plan_.watch); !proved) {
      return tl::unexpected<Error>(proved.error());
    }
    auto rings = PerfRings::create();
    if (!rings) {
      return tl::unexpected<Error>(rings.error());
    }
    rings_ = std::move(*rings);
    watched_ = std::make_unique<WatchedCode>(target_, plan_, symbols_);
    saved_.emplace(options_.save, symbols_, options_.values == Values::kMemory ? kAssumption : "");
    if (!saved_->problem().empty()) {
      return fail(ErrorKind::kEnvironment, saved_->problem());
    }
    return {};
  }

  Result<void> measure_hit() {
    if (options_.max_overhead <= 0) {
      return {};
    }
    const auto cost = uprobe_hit_cost();
    if (!cost) {
      return tl::unexpected<Error>(cost.error());
    }
    overhead_.emplace(*cost, target_.processor_seconds());
    note(fmt::format("a hit takes {:.1f} microseconds", *cost / 1000));
    return {};
  }

  // Hits become events, which are merged, saved and judged.
  void judge_events() {
    std::vector<WatchOptions> watches = options_.watches;
    for (WatchOptions& watch : watches) {
      watch.analysis.values &= options_.values != Values::kNone;
      watch.source = BasisSource::kAttached;
      watch.names = report_names();
    }
    merged_ = std::make_unique<MergedWatch>(
        symbols_, watches,
        [this](const ReportedFinding& found) {
          report_(found);
          violation_ = violation_ || (options_.until && options_.until());
        },
        [this](const EventBlock& block, const std::vector<EventLoss>& losses) {
          saved_->add(block, losses);
          if (options_.follower != nullptr) {
            options_.follower->add(block, symbols_, report_names());
          }
        });
    HitsToEventsOptions turning;
    turning.values = options_.values;
    turning.in_system_call = [this](uint32_t thread) { return target_.in_system_call(thread); };
    turning.alone = [this](int64_t time) { return alone_ && time < rings_->alone_until(); };
    turning.watched = [this](const Hit& hit) { return watched_->find(hit); };
    events_ = std::make_unique<HitsToEvents>(plan_, symbols_, merged_->merge(), turning);
    set_probes_.emplace(target_, plan_, *probes_, *events_);
  }

  // First what tells of sleeping, then the units.
  Result<void> begin() {
    if (auto set = rings_->attach(
            target_.pid(), [this] { return target_.threads(); }, plan_.watch);
        !set) {
      return tl::unexpected<Error>(set.error());
    }
    watching_ = !plan_.watch.empty();
    alone_ = target_.alone();
    if (auto set = set_probes_->set_from(0); !set) {
      return set;
    }
    events_->all_live_from(hit_clock() + kClockError);
    if (has_units(plan_, 0)) {
      events_->units_were_set(target_.threads());
    }
    return {};
  }

  Result<std::unique_ptr<Uprobes>> own_uprobes() const {
    auto chosen = choose_uprobes(target_.pid());
    if (!chosen) {
      return tl::unexpected<Error>(chosen.error());
    }
    if (!chosen->why_slower.empty()) {
      note("probes through perf, which take longer: " + chosen->why_slower);
    }
    return std::move(chosen->probes);
  }

  // A process that has ended meanwhile is no fault of the kernel's.
  tl::unexpected<Error> failed(const Error& error) const {
    if (target_.ended()) {
      return fail(ErrorKind::kUnreadable, fmt::format("process {} has ended", target_.pid()));
    }
    return tl::unexpected<Error>(error);
  }
  void note(const std::string& text) const {
    if (options_.note) {
      options_.note(text);
    }
  }
  void warn(const std::string& text) {
    summary_.warnings.push_back(text);
    note(text);
  }

  void report_start() {
    size_t units = 0;
    for (const PlannedFunction& function : plan_.functions) {
      units += function.unit ? 1 : 0;
    }
    note(
        fmt::format("{} ({}): {} unit functions, {} instructions that access memory, {} probes "
                    "through {}, {} watch points",
                    target_.pid(), target_.executable(), units, plan_.accesses, plan_.sites.size(),
                    probes_->name(), plan_.watch.size()));
    report_plan();
    if (options_.values == Values::kMemory) {
      warn(probes_->reads_memory() ? kAssumption : "contents of memory are read through BPF alone");
    }
  }

  void report_plan() {
    for (const std::string& text : plan_.notes) {
      warn(text);
    }
    for (const std::string& text : plan_.missed) {
      warn(text);
      incomplete_ = true;
    }
  }

  void watch_until_end(Signals& signals) {
    const int64_t start = hit_clock();
    int64_t next_look = start + kLook;
    int64_t next_measure = start + kMeasure;
    while (summary_.ended.empty()) {
      if (const int number = signals.wait(kPoll); number != 0) {
        summary_.ended = fmt::format("signal {}", number);
      }
      const int64_t now = hit_clock();
      take_hits(now - kSlack);
      if (violation_) {
        summary_.ended = "a violation was found";
      } else if (options_.duration > 0 &&
                 static_cast<double>(now - start) > options_.duration * 1e9) {
        summary_.ended = "the time is over";
      }
      if (now >= next_look) {
        next_look = now + kLook;
        look_at_target();
      }
      if (rings_->code_mapped() > code_seen_) {
        look_at_modules();
      }
      if (overhead_ && now >= next_measure) {
        next_measure = now + kMeasure;
        bound_overhead();
      }
    }
  }

  // Turns into events what came before `until`.
  void take_hits(int64_t until) {
    probes_->read(waiting_);
    rings_->read(waiting_);
    std::stable_sort(waiting_.begin(), waiting_.end(),
                     [](const Hit& left, const Hit& right) { return left.time < right.time; });
    size_t done = 0;
    while (done < waiting_.size() && waiting_[done].time < until) {
      summary_.hits += waiting_[done].kind != Hit::Kind::kSleep ? 1 : 0;
      events_->add(waiting_[done++]);
    }
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(done));
    if (const uint64_t lost = probes_->lost(); lost != summary_.lost_hits) {
      events_->lost(lost - summary_.lost_hits);
      summary_.lost_hits = lost;
    }
    if (const uint64_t lost = rings_->lost(); lost != summary_.lost_watch_hits) {
      events_->lost(lost - summary_.lost_watch_hits);
      summary_.lost_watch_hits = lost;
    }
    events_->advance(std::min(until, hit_clock()) - kReach);
    merged_->judge();
  }

  // Takes the probes of the busiest function out when the hits take too much of the process's time.
  void bound_overhead() {
    const std::vector<uint64_t>& hits = events_->hits_of_groups();
    const uint64_t watch_hits = events_->hits_of_watch_points();
    hits_before_.resize(hits.size());
    const uint64_t of_watch_points = watch_hits - watch_hits_before_;
    uint64_t all = watch_hits + probes_->lost();
    uint64_t recent = of_watch_points;
    uint64_t most = 0;
    uint32_t busiest = 0;
    size_t units_left = 0;
    for (uint32_t group = 0; group < hits.size(); ++group) {
      const uint64_t now = hits[group] - hits_before_[group];
      all += hits[group];
      recent += now;
      // Units that go on without their locks would look violated.
      if (!set_probes_->has(group) || plan_.groups[group].locks) {
        continue;
      }
      if (now >= most) {
        most = now;
        busiest = group;
      }
      ++units_left;
    }
    hits_before_ = hits;
    watch_hits_before_ = watch_hits;
    const double percent =
        overhead_->measure(all, events_->take_gaps(), target_.processor_seconds());
    if (percent <= options_.max_overhead || recent == 0) {
      return;
    }
    const std::string text = fmt::format(
        "hits of {:.1f} microseconds take {:.1f} % of the time of the process, the "
        "bound is {} %: ",
        overhead_->hit_cost() / 1000, percent, options_.max_overhead);
    events_->lost(0);
    const int64_t before = hit_clock() - kClockError;
    if (watching_ && (of_watch_points > most || units_left == 0)) {
      events_->watching_ends_at(before);
      rings_->stop_watching();
      watching_ = false;
      warn(text + "the watch points are no longer watched");
    } else if (units_left != 0) {
      events_->group_gone_at(busiest, before);
      set_probes_->remove(busiest);
      warn(text + plan_.groups[busiest].name + " is no longer watched");
      --units_left;
    }
    if (units_left == 0 && !watching_) {
      summary_.ended = "the bound of the overhead leaves nothing to watch";
    }
  }

  void look_at_target() {
    if (target_.ended()) {
      summary_.ended = "the process has ended";
      return;
    }
    if (!target_.same_program()) {
      summary_.ended = "the process executes another program now; attach again to watch that";
      return;
    }
    const std::vector<pid_t> now = target_.threads();
    const std::set<uint32_t> alive(now.begin(), now.end());
    for (const uint32_t thread : events_->threads()) {
      if (alive.count(thread) != 0) {
        seen_.insert(thread);
      } else if (seen_.erase(thread) != 0 &&
                 std::none_of(waiting_.begin(), waiting_.end(),
                              [&](const Hit& hit) { return hit.thread == thread; })) {
        events_->thread_ended(thread);
      }
    }
    look_at_modules();
  }

  void look_at_modules() {
    const int64_t mapped = rings_->code_mapped();
    code_seen_ = mapped;
    if (!target_.mappings_changed()) {
      return;
    }
    const size_t before = target_.modules().size();
    std::vector<bool> absent;
    for (const Module& module : target_.modules()) {
      absent.push_back(module.code.empty());
    }
    target_.refresh();
    watched_->forget_places();
    probes_->mappings_changed();
    for (uint32_t i = 0; i < before; ++i) {
      if (absent[i] && !target_.modules()[i].code.empty() && is_probed(i)) {
        note(target_.modules()[i].path + " was loaded: its probes are there already");
      }
    }
    if (target_.modules().size() != before) {
      watch_modules(static_cast<uint32_t>(before), mapped);
    }
  }

  bool is_probed(uint32_t module) const {
    for (size_t group = 0; group < plan_.groups.size(); ++group) {
      if (plan_.groups[group].module == module && set_probes_->has(group)) {
        return true;
      }
    }
    return false;
  }

  // Probes what was asked for in the modules from `first` on, which were mapped just now.
  void watch_modules(uint32_t first, int64_t mapped) {
    std::string names;
    for (size_t i = first; i < target_.modules().size(); ++i) {
      names += (names.empty() ? "" : ", ") + target_.modules()[i].path;
    }
    const size_t groups = plan_.groups.size();
    const size_t sites = plan_.sites.size();
    auto extended = extend_plan(plan_, first, target_, request_, symbols_);
    Result<void> set;
    if (!extended) {
      set = tl::unexpected<Error>(extended.error());
    } else if (extended->sites.size() == sites) {
      return;  // nothing of it was asked for
    } else {
      plan_ = std::move(*extended);
      set = set_probes_->set_from(groups);
      report_plan();
    }
    if (!set) {
      warn(fmt::format("{} was loaded, and is not watched: {}", names, set.error().to_string()));
      incomplete_ = true;
      return;
    }
    if (has_units(plan_, sites)) {
      events_->units_were_set(target_.threads());
    }
    // What ran of it meanwhile is not known.
    events_->lost(0);
    const std::string delay = mapped == 0
                                  ? std::string()
                                  : fmt::format(" {:.1f} milliseconds later",
                                                static_cast<double>(hit_clock() - mapped) / 1e6);
    warn(
        fmt::format("{} was loaded: {} probes were set{}; what it did before was not seen "
                    "(--module FILE sets them in advance)",
                    names, plan_.sites.size() - sites, delay));
  }

  ReportNames report_names() {
    ReportNames names;
    names.place = [this](const std::string& text) { return place_in(plan_.places, text); };
    names.variable = [this](uint64_t address) {
      if (!names_) {  // opened when something is found
        names_.emplace(target_);
      }
      return names_->variable(address);
    };
    names.source = source_lines();
    return names;
  }

  Result<AttachSummary> finish() {
    events_->ends_at(hit_clock() - kClockError);
    set_probes_->remove_all();
    rings_->detach();
    take_hits(INT64_MAX / 2);
    events_->finish();
    if (events_->unmatched() != 0) {
      warn(fmt::format("{} hits could not be told apart", events_->unmatched()));
      incomplete_ = true;
    }
    for (size_t i = 0; i < plan_.watch.size(); ++i) {
      if (events_->hits_of_watch_point(i) == 0) {
        note(fmt::format("{}: no access of it at 0x{:x} was seen", plan_.watch[i].name,
                         plan_.watch[i].address));
      }
    }
    if (incomplete_) {
      merged_->watches().incomplete();
      saved_->incomplete();
    }
    merged_->finish();
    saved_->finish();
    if (options_.follower != nullptr) {
      options_.follower->finish(symbols_, report_names());
    }
    summary_.watches = merged_->watches().summaries();
    summary_.program = target_.executable();
    judge_nothing();
    summary_.values = events_->values();
    summary_.left_out = events_->left_out();
    if (summary_.left_out != 0) {
      note(fmt::format(
          "{} hits and accesses were left out: they came before the last probe was live, after the "
          "first one went, or in units and calls of locks that had begun before",
          summary_.left_out));
    }
    if (const ValueCounts& values = summary_.values; values.differed != 0) {
      warn(
          fmt::format("of {} accesses whose registers show what was read {} found memory changed "
                      "since their hit",
                      values.compared, values.differed));
    }
    if (summary_.lost_hits != 0) {
      warn(fmt::format("{} hits of probes were lost: there was no room for them",
                       summary_.lost_hits));
    }
    if (summary_.lost_watch_hits != 0) {
      warn(fmt::format("{} hits of watch points, or times of sleeping, were lost",
                       summary_.lost_watch_hits));
    }
    summary_.not_saved = !saved_->problem().empty();
    if (summary_.not_saved) {
      warn(saved_->problem());
    }
    return std::move(summary_);
  }

  // Why nothing was seen: the verdict says so.
  void judge_nothing() {
    const Shortfall why =
        summary_.hits == 0
            ? Shortfall{"no probe was hit: the process did not run what is watched",
                        "attach to functions that it calls, or for longer"}
            : Shortfall{
                  "nothing is known of what was hit: units and calls of locks had begun before "
                  "the last probe was live",
                  "attach for longer"};
    for (WatchSummary& watch : summary_.watches) {
      if (watch.events == 0) {
        watch.basis.no_event = why;
      }
    }
  }

  Target target_;
  const AttachOptions& options_;
  const Watch::Callback& report_;
  Symbols symbols_;
  Plan plan_;
  std::optional<AddressNames> names_;
  std::unique_ptr<Uprobes> probes_;
  std::optional<SetProbes> set_probes_;
  std::unique_ptr<PerfRings> rings_;
  std::unique_ptr<WatchedCode> watched_;
  std::optional<SavedTrace> saved_;
  std::unique_ptr<MergedWatch> merged_;
  std::unique_ptr<HitsToEvents> events_;
  std::vector<Hit> waiting_;
  std::set<uint32_t> seen_;  // threads that the process was seen to have
  AttachSummary summary_;
  PlanRequest request_;
  std::optional<Overhead> overhead_;  // nothing: no bound
  std::vector<uint64_t> hits_before_;
  uint64_t watch_hits_before_ = 0;
  bool watching_ = false;   // there are watch points
  bool alone_ = false;      // the process had one thread and no shared memory at the start
  int64_t code_seen_ = 0;   // PerfRings::code_mapped() at the last look
  bool violation_ = false;  // that ends the session
  bool incomplete_ = false;
};

}  // namespace

Result<AttachSummary> attach_to(pid_t pid, const AttachOptions& options,
                                const Watch::Callback& report) {
  auto target = Target::open(pid);
  if (!target) {
    return tl::unexpected<Error>(target.error());
  }
  return Session(std::move(*target), options, report).run();
}

}  // namespace tsomon::attach
