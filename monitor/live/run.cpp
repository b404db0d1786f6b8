#include "monitor/live/run.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "decoders/capture/live.h"
#include "monitor/events/block_queue.h"
#include "monitor/events/held_units.h"
#include "monitor/events/symbol_delta.h"
#include "monitor/judge/watches.h"
#include "monitor/live/byte_spool.h"
#include "monitor/live/machine_clock.h"
#include "monitor/live/saved_capture.h"
#include "monitor/process/child.h"
#include "monitor/process/openable_pipe.h"
#include "monitor/process/symbols.h"
#include "monitor/process/twins_in_file.h"
#include "monitor/record/capture_file.h"
#include "monitor/record/probe_messages.h"
#include "monitor/record/probe_options.h"
#include "monitor/record/record.h"
#include "online/stream/event_merge.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr int kPoll = 20;  // milliseconds
// Without events for so long, nothing waits for more of them.
constexpr std::chrono::milliseconds kIdle{100};
constexpr size_t kPipeBytes = size_t{1} << 20;
constexpr size_t kRunBlock = 4096;
constexpr size_t kBlocks = 8;  // read and not yet judged
// Blocks of some kRunBlock events held back for a thread that is silent.
constexpr size_t kMaxHeld = 4096;
// Bytes of packed chunks that may wait because some thread holds them up.
constexpr size_t kMaxBacklog = size_t{64} << 20;

void add_live_options(const std::string& path, const RunOptions& options, ProbeOptions* probe) {
  std::string added;
  // Packing pays for files, not for a pipe.
  if (!probe->has("level=")) {
    added += "level=0:";
  }
  if (options.object_bytes != 0 && !probe->has("objects=")) {
    added += fmt::format("objects={}:", options.object_bytes);
  }
  probe->add(added + fmt::format("live={}:{}", options.round_milliseconds, output_option(path)));
}

// What is judged together, and what is needed to tell of it.
struct JudgedBlock {
  EventBlock events;
  std::vector<EventLoss> losses;
  SymbolDelta delta;
  std::vector<capture::Module> modules;  // all of them, when there are more than before
  bool may_cancel = false;               // units
  bool not_understood = false;           // LiveReader::not_understood() likewise
  uint64_t clock_checks = 0;             // LiveReader::clock_checks() when it was filled
};

// From the bytes of the pipe to events in order. On a thread of its own.
class Reading {
 public:
  explicit Reading(BlockQueue<JudgedBlock>& queue)
      : queue_(queue), merge_(kMaxHeld), unknown_(merge_.open(UINT64_MAX - 1)) {
    threads_.resize(unknown_ + 1);
  }

  bool feed(std::string_view bytes) {
    if (auto fed = reader_.feed(bytes); !fed) {
      failure_ = fed.error().to_string();
      return false;
    }
    pass_on();
    return true;
  }

  // In the place of finish(): whoever judges waits for nothing more.
  void give_up() { queue_.end(); }

  void finish() {
    reader_.finish(measure_open_clock);
    pass_on();
    merge_.close(unknown_);
    hand_over();
    queue_.end();
  }

  // After the end.
  const capture::LiveReader& reader() const { return reader_; }
  const std::string& failure() const { return failure_; }
  // At any time: events that were handed over.
  uint64_t events() const { return events_.load(std::memory_order_relaxed); }

 private:
  void pass_on() {
    reader_.new_threads([this](uint32_t thread) {
      const EventMerge::Stream stream = merge_.open(thread);
      threads_.resize(std::max<size_t>(threads_.size(), stream + 1));
      threads_[stream] = thread;
    });
    merge_.promise(unknown_, reader_.round());
    hand_over();
  }

  // Some more of the thread: a portion that stays in the cache until it is judged.
  bool read(EventMerge::Stream stream) {
    return reader_.take(threads_[stream], kRunBlock, [&](const capture::LiveReader::News& news) {
      EventBlock block = merge_.take_block();
      std::swap(block, *news.events);
      merge_.push(stream, std::move(block));
      merge_.promise(stream, news.promise);
      if (news.ended) {
        merge_.close(stream);
      }
    });
  }

  // Of the thread that the others wait for; of a backlog that is too large, of any.
  bool read_more() {
    const auto slowest = merge_.waiting_for();
    if (slowest && *slowest != unknown_ && read(*slowest)) {
      return true;
    }
    bool any = false;
    if (slowest && reader_.backlog() > kMaxBacklog) {
      for (EventMerge::Stream stream = 0; stream != threads_.size(); ++stream) {
        any |= stream != unknown_ && merge_.is_open(stream) && read(stream);
      }
    }
    return any;
  }

  void hand_over() {
    for (;;) {
      if (block_ == nullptr) {
        block_ = queue_.free_block();
      }
      if (stop_asked()) {
        return;
      }
      EventBlock& events = block_->events;
      const bool more = merge_.next(events, block_->losses, kRunBlock - events.events.size());
      if (events.events.size() >= kRunBlock || !block_->losses.empty()) {
        send();
      } else if (!more && !read_more() && !merge_.overtake()) {
        break;
      }
    }
    if (!block_->events.events.empty()) {
      send();
    }
  }

  void send() {
    symbol_deltas_.write(reader_.symbols(), block_->delta);
    events_.fetch_add(block_->events.events.size(), std::memory_order_relaxed);
    block_->may_cancel = reader_.may_cancel();
    block_->not_understood = reader_.not_understood();
    block_->clock_checks = reader_.clock_checks();
    if (reader_.modules().size() != modules_) {
      modules_ = reader_.modules().size();
      block_->modules = reader_.modules();
    }
    queue_.push(std::move(block_));
    block_ = nullptr;
  }

  BlockQueue<JudgedBlock>& queue_;
  std::unique_ptr<JudgedBlock> block_;  // to be filled next
  capture::LiveReader reader_;
  SymbolDeltaWriter symbol_deltas_{SymbolDeltaWriter::What::kAll};
  size_t modules_ = 0;
  EventMerge merge_;
  EventMerge::Stream unknown_;     // threads that had no event yet
  std::vector<uint32_t> threads_;  // by stream
  std::string failure_;
  std::atomic<uint64_t> events_{0};
};

// From events to findings.
class Judging {
 public:
  Judging(const RunOptions& options, const Watch::Callback& report)
      : follower_(options.follower), watches_(symbols_, completed(options.watches), report) {}

  // All that comes; after a stop nothing of it is judged.
  void judge(BlockQueue<JudgedBlock>& queue) {
    while (auto block = queue.pop(kIdle, [this] { idle(); })) {
      learn(std::move(block->delta), symbols_);
      if (block->clock_checks != clock_checks_) {
        // What was judged so far lies before that measurement.
        clock_checks_ = block->clock_checks;
        certain_.clear();
        for (const WatchSummary& summary : watches_.summaries()) {
          certain_.push_back(summary.found.definite);
        }
      }
      if (block->may_cancel) {
        watches_.expect_cancels();
      }
      if (!block->modules.empty()) {
        modules_ = std::move(block->modules);
        symboliser_.reset();
      }
      // What comes behind asm statements that are not understood may miss orders.
      if (!stop_asked() && !block->not_understood) {
        for (const EventLoss& loss : block->losses) {
          watches_.lost(loss);
        }
        watches_.add(block->events);
        if (follower_ != nullptr) {
          follower_->add(block->events, symbols_, names());
        }
      }
      block->events.clear();
      block->losses.clear();
      block->modules.clear();
      queue.give_back(std::move(block));
    }
  }

  void finish(const Reading& reading, bool cut) {
    if (cut || reading.reader().has_other_writers() || !reading.reader().problems().empty() ||
        !reading.failure().empty()) {
      watches_.incomplete();
    }
    modules_ = reading.reader().modules();
    watches_.finish();
    if (follower_ != nullptr) {
      follower_->finish(symbols_, names());
    }
  }

  std::vector<WatchSummary> summaries() const { return watches_.summaries(); }
  // Definite findings of a watch that the last good measurement of the clock came after.
  uint64_t certain(size_t watch) const { return watch < certain_.size() ? certain_[watch] : 0; }
  std::vector<std::string> warnings() const {
    auto all = symboliser_ ? symboliser_->warnings() : std::vector<std::string>();
    const auto more = libraries_without_twins(modules_, {});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

 private:
  std::vector<WatchOptions> completed(std::vector<WatchOptions> watches) {
    for (WatchOptions& options : watches) {
      options.names = names();
    }
    return watches;
  }

  ReportNames names() {
    ReportNames names;
    names.place = [this](const std::string& text) { return place(text); };
    names.variable = [this](uint64_t address) { return symboliser().variable(address); };
    names.calls = [this](const SourcePlace& from, const SourcePlace& to) {
      return symboliser().calls(from.pc, to.pc);
    };
    names.source = source_lines();
    return names;
  }

  void idle() {
    watches_.idle();
    if (follower_ != nullptr) {
      follower_->idle(names());
    }
  }

  // Opened when something is found.
  Symboliser& symboliser() {
    if (!symboliser_) {
      symboliser_ = std::make_unique<Symboliser>(modules_);
    }
    return *symboliser_;
  }

  SourcePlace place(const std::string& text) {
    if (text.rfind("0x", 0) == 0) {
      return symboliser().place(std::strtoull(text.c_str(), nullptr, 16));
    }
    SourcePlace place;
    place.text = text;
    return place;
  }

  EventFollower* follower_;
  Symbols symbols_;
  std::vector<capture::Module> modules_;
  std::unique_ptr<Symboliser> symboliser_;
  Watches watches_;
  uint64_t clock_checks_ = 0;
  std::vector<uint64_t> certain_;  // by watch
};

std::vector<std::string> warnings_of(const Reading& reading, const Judging& judging) {
  std::vector<std::string> all;
  if (!reading.failure().empty()) {
    all.push_back(reading.failure());
  }
  for (const auto& more :
       {reading.reader().problems(), reading.reader().notes(), judging.warnings()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

// A limit on the size of files, or a reader of the saved capture that has gone, is an error of the
// write, not the end of this process.
void block_signals_of_writing() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  sigaddset(&signals, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

// Until the program has ended, and all that it wrote is in the spool, or is left. On a thread of its own. Where there
// is no memory the program goes on, and what it writes is thrown away.
void save_all(const OpenablePipe& pipe, Child& child, const StopFlag& stop, SavedCapture& saved,
              ByteSpool& spool, const Reading& reading, const RunOptions& options,
              std::atomic<bool>& out_of_memory) {
  block_signals_of_writing();
  RunCostMeter cost(pipe.fd(), options.on_cost);
  std::array<char, 65536> buffer;
  bool judged = true;
  const auto gives_up = [&] { return child.left() || (stop.asked() && child.ended()); };
  while (!child.left()) {
    // Asked first: what the program wrote before its end is then in the pipe.
    const bool ended = child.ended();
    const ssize_t got = ::read(pipe.fd(), buffer.data(), buffer.size());
    if (got > 0) {
      const std::string_view bytes(buffer.data(), static_cast<size_t>(got));
      try {
        saved.add(bytes, gives_up);
        if (judged) {
          const auto begun = RunCostMeter::Clock::now();
          spool.push(bytes, saved.problem().empty());
          cost.handed_on(begun, reading.events());
        }
      } catch (const std::bad_alloc&) {
        out_of_memory = true;
        judged = false;
        spool.end();
      }
    } else if (ended) {
      break;  // also when a child of the program holds the pipe open
    } else {
      pollfd state{pipe.fd(), POLLIN, 0};
      ::poll(&state, 1, kPoll);
    }
  }
  try {
    saved.finish();
  } catch (const std::bad_alloc&) {
    out_of_memory = true;
  }
  spool.end();
}

// All that comes out of the spool. On a thread of its own.
void read_all(ByteSpool& spool, Reading& reading, std::atomic<bool>& out_of_memory) {
  std::string bytes;
  bool good = true;
  // After damage the rest is read all the same: the program must not wait for its pipe.
  for (bool more = true; more;) {
    try {
      more = spool.pop(bytes);
      good = good && (!more || stop_asked() || reading.feed(bytes));
    } catch (const std::bad_alloc&) {
      out_of_memory = true;
      good = false;
    }
  }
  try {
    reading.finish();
  } catch (const std::bad_alloc&) {
    out_of_memory = true;
    reading.give_up();
  }
}

}  // namespace

RunResult run(const std::vector<std::string>& command, const RunOptions& options,
              const Watch::Callback& report) {
  RunResult result;
  result.status = kRecordFailed;
  ProbeOptions probe_options;
  if (result.problem = probe_options.problem(); !result.problem.empty()) {
    result.status = kRecordUsage;
    return result;
  }
  if (probe_options.has("output=")) {
    result.problem = "TSOMON_OPTIONS names an output; remove it there, or use tsomon record";
    return result;
  }
  const OpenablePipe pipe(kPipeBytes);  // what fits is less often waited for
  if (!pipe.problem().empty()) {
    result.problem = pipe.problem();
    return result;
  }
  auto place = CapturePlace::make(options.save, true);
  if (!place) {
    result.status = place.error().kind == ErrorKind::kUsage ? kRecordUsage : kRecordFailed;
    result.problem = place.error().to_string();
    return result;
  }
  SavedCapture saved(place->path().string());
  if (!saved.problem().empty()) {
    result.problem = saved.problem();
    return result;
  }
  add_live_options(pipe.path(), options, &probe_options);
  ProbeMessages messages;
  BlockQueue<JudgedBlock> queue(kBlocks);
  Reading reading(queue);
  ByteSpool spool(saved.reopen());
  StopFlag stop;
  WorkMeter meter({}, &stop);
  const WorkScope scope(&meter);
  // They are there before the program: once that runs, nothing may be missing for it. Signals are
  // not for them.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  std::promise<Child*> started;
  std::atomic<bool> out_of_memory{false};
  std::thread saver([&, child = started.get_future()]() mutable {
    if (Child* const running = child.get()) {
      save_all(pipe, *running, stop, saved, spool, reading, options, out_of_memory);
    } else {
      spool.end();
    }
  });
  std::thread reader;
  try {
    reader = std::thread([&] {
      const WorkScope of_reader(&meter);
      read_all(spool, reading, out_of_memory);
    });
  } catch (...) {
    started.set_value(nullptr);
    saver.join();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  Child child(command, options.before_start, &stop, [&queue] { return queue.is_full(); });
  started.set_value(child.exec_error() == 0 ? &child : nullptr);
  if (child.exec_error() != 0) {
    saver.join();
    reader.join();
    const NotStarted failure = not_started(command, child);
    result.status = failure.status;
    result.problem = failure.problem;
    return result;
  }
  Judging judging(options, report);
  try {
    judging.judge(queue);
  } catch (const std::bad_alloc&) {
    out_of_memory = true;  // the program goes on; what it records must not hold it up
    while (auto block = queue.pop()) {
      *block = JudgedBlock();
      queue.give_back(std::move(block));
    }
  }
  saver.join();
  reader.join();
  if (out_of_memory) {
    throw std::bad_alloc();
  }
  judging.finish(reading, spool.failed());
  result.status = exit_status(child.wait());
  const ProbeMessages::Said said = messages.take();
  result.warnings = said.unsaid;
  if (child.left()) {
    result.warnings.push_back(left_running(child.pid()) + ", and is not watched any more");
  }
  if (!reading.reader().any_header()) {
    result.problem =
        said.refused ? refused(command) : not_recorded(command, result.status, "tsomon run");
    result.status = said.refused ? kRecordEnvironment : kRecordFailed;
    return result;
  }
  const std::vector<std::string> warnings = warnings_of(reading, judging);
  result.warnings.insert(result.warnings.end(), warnings.begin(), warnings.end());
  result.summaries = judging.summaries();
  // All watches saw the same units.
  if (const WatchSummary& seen = result.summaries.front(); seen.surprises != 0) {
    result.warnings.push_back(fmt::format(
        "{} units were cancelled by code that was loaded later: what was found before may not "
        "stand; TSOMON_OPTIONS=cancels=1 says from the beginning that units may be cancelled",
        seen.surprises));
  } else if (seen.taken_apart != 0) {
    result.warnings.push_back(taken_apart_text(seen.taken_apart));
  }
  const auto ended = std::find_if(result.summaries.begin(), result.summaries.end(),
                                  [](const WatchSummary& summary) { return summary.ended; });
  if (ended != result.summaries.end()) {
    result.warnings.push_back(fmt::format("{}: not all was judged", limit_text(*ended->ended)));
  }
  if (spool.failed()) {
    result.warnings.push_back(
        fmt::format("{}: was changed while it was written: not all was judged", options.save));
  }
  if (!saved.problem().empty()) {
    result.saved = false;
    result.warnings.push_back(saved.problem());
  }
  bool less_certain = false;
  for (size_t i = 0; i < result.summaries.size(); ++i) {
    WatchSummary& summary = result.summaries[i];
    // With less certain orders there are more executions: what some did, some still do.
    const uint64_t certain = judging.certain(i);
    if (reading.reader().clock_moved() && summary.found.definite > certain) {
      summary.found = {certain, summary.found.all() - certain};
      less_certain = true;
    }
    summary.lost_events += reading.reader().lost_events();
    summary.basis.selection = reading.reader().selection();
  }
  if (less_certain) {
    result.warnings.emplace_back(
        "violations that were reported as definite after the last good measurement of the clock "
        "are possible ones");
  }
  return result;
}

}  // namespace tsomon
