// `tsomon submit`.
#include <algorithm>
#include <chrono>
#include <deque>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include <fmt/format.h>

#include "monitor/fleet/pause.h"
#include "monitor/fleet/store_forwarder.h"
#include "monitor/fleet/submission.h"
#include "monitor/process/host_name.h"
#include "monitor/service/message_limiter.h"
#include "tools/command.h"
#include "tools/fleet/open.h"
#include "tools/input_memory.h"
#include "tools/output.h"
#include "tools/stop_signals.h"
#include "tso/support/printable.h"

namespace tsomon {
namespace {

constexpr const char* kSubmitTool = "tsomon submit";
constexpr unsigned kMostFailures = 3;  // one after the other: the fleet is away, or rests

Result<std::vector<fleet::Question>> questions_of(const SubmitArguments& options) {
  fleet::Question common;
  if (!options.suppressions.empty()) {
    std::ifstream file(options.suppressions, std::ios::binary);
    common.suppressions.assign(std::istreambuf_iterator<char>(file), {});
    if (!file.is_open() || file.bad()) {
      return tl::unexpected<Error>(
          Error{ErrorKind::kUnreadable, printable(options.suppressions), {}, "cannot be read"});
    }
  }
  std::vector<fleet::Question> questions;
  std::map<std::string, bool> taken;
  for (const std::string& command : options.ask) {
    fleet::Question question = common;
    question.command = command;
    for (const std::string& pair : options.set) {
      const size_t equals = pair.find('=');
      const std::string name = pair.substr(0, equals);
      if (equals == std::string::npos) {
        return fail(ErrorKind::kUsage,
                    fmt::format("--set: expected NAME=VALUE, found {}", printable(pair)));
      }
      taken[name] = taken[name] || fleet::is_option(command, name);
      if (fleet::is_option(command, name)) {
        question.options[name] = pair.substr(equals + 1);
      }
    }
    if (auto checked = fleet::check_question(question); !checked) {
      return tl::unexpected<Error>(checked.error());
    }
    questions.push_back(std::move(question));
  }
  for (const auto& [name, known] : taken) {
    if (!known) {
      return fail(
          ErrorKind::kUsage,
          fmt::format("--set: {} has no option {} that may be asked for; {}", options.ask.front(),
                      printable(name), fmt::join(fleet::options_of(options.ask.front()), ", ")));
    }
  }
  return questions;
}

// Of every result that a command wrote: there is one for each property, and for each test of a file.
std::string verdicts_in(const std::string& results) {
  std::vector<std::string> verdicts;
  std::istringstream lines(results);
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::ordered_json::parse(line, nullptr, false);
    const auto found = object.is_object() ? object.find("verdict") : object.end();
    if (object.is_object() && found != object.end()) {
      verdicts.push_back(found->is_string() ? printable(found->get<std::string>()) : "not judged");
    }
  }
  return fmt::format("{}", fmt::join(verdicts, ", "));
}

struct Piece {
  std::string id;
  std::string file;
  std::string command;
  std::string outcome;  // "done", or why there is none
  int status = kExitClean;
  bool ended = false;
};

class Submitter {
 public:
  Submitter(fleet::Fleet& fleet, const SubmitArguments& options,
            std::vector<fleet::Question> questions)
      : fleet_(fleet), options_(options) {
    how_.tenant = options.tenant;
    how_.host = options.host.empty() ? host_name() : options.host;
    how_.version = TSOMON_VERSION;
    how_.search = options.search;
    how_.sources = !options.no_sources;
    how_.questions = std::move(questions);
  }

  int run(const StopSignals& signals) {
    if (!options_.store.empty()) {
      return forward(signals);
    }
    unsent_.assign(options_.files.begin(), options_.files.end());
    int status = submit_unsent(signals);
    if (signals.asked()) {
      return worse(status, kExitInconclusive);
    }
    if (options_.wait) {
      return worse(status, wait(signals));
    }
    tell_what_is_due(true);
    if (!unsent_.empty()) {
      put_message(kSubmitTool, fmt::format("{} of {} files were not submitted: submit them again",
                                           unsent_.size(), options_.files.size()));
      status = worse(status, kExitEnvironment);
    }
    return status;
  }

 private:
  // Each file once, or until the fleet seems to be away. What it did not take stays in unsent_.
  int submit_unsent(const StopSignals& signals) {
    int status = kExitClean;
    unsigned failures = 0;
    for (size_t left = unsent_.size(); left > 0 && failures < kMostFailures && !signals.asked();
         --left) {
      const std::string file = std::move(unsent_.front());
      unsent_.pop_front();
      const auto submitted = submit_file(file);
      if (submitted) {
        failures = 0;
      } else if (submitted.error().kind == ErrorKind::kEnvironment && file != "-") {
        ++failures;
        Error error = submitted.error();
        if (error.input == printable(file)) {
          error.input.clear();  // of all files it is the same
        }
        failed(error);
        unsent_.push_back(file);
      } else {
        status = worse(status, put_error(kSubmitTool, submitted.error()));
      }
    }
    return status;
  }

  Result<void> submit_file(const std::string& file) {
    const auto submitted = fleet::submit(fleet_, file, how_, true);
    if (!submitted) {
      return tl::unexpected<Error>(submitted.error());
    }
    put_messages(kSubmitTool, file, submitted->notes);
    for (size_t i = 0; i < submitted->work.size(); ++i) {
      const auto& [id, before] = submitted->work[i];
      const std::string& command = how_.questions[i].command;
      if (options_.output == OutputFormat::kJson) {
        put_json(stdout,
                 {{"schema", 1},
                  {"tool", kSubmitTool},
                  {"file", file},
                  {"id", id},
                  {"command", command},
                  {"before", fleet::name_of(before)},
                  {"bytes", submitted->bytes},
                  {"sent", submitted->sent}},
                 kSubmitTool);
      } else {
        put_lines(stdout, id + "\n");
      }
      pieces_.push_back({id, file, command, {}, kExitClean, false});
    }
    return {};
  }

  // From the store: once, until all is judged (--wait), or until a signal comes.
  int forward(const StopSignals& signals) {
    using namespace std::chrono_literals;
    fleet::StoreForwarder forwarder(fleet_, options_.store, how_);
    int status = kExitClean;
    auto time = 100ms;
    for (bool over = false; !over && !signals.asked();) {
      const auto done = forwarder.step([&] { return signals.asked(); });
      for (const std::string& id : forwarder.ids()) {
        put_lines(stdout, id + "\n");
      }
      if (!done) {
        failed(done.error());
        status = exit_status_of(done.error());
        over = !options_.follow && !options_.wait;
      } else {
        status = kExitClean;
        over = !options_.follow && (*done || !options_.wait);
        time = forwarder.ids().empty() ? time : 100ms;
      }
      if (!over) {
        fleet::pause(time, [&] { return signals.asked(); });
      }
      time = std::min(2 * time, 5000ms);
      tell_what_is_due(over || signals.asked());
    }
    const fleet::ForwardCounters& counters = forwarder.counters();
    put_message(kSubmitTool,
                fmt::format("{} slices submitted, {} judged, {} given up, {} gone before",
                            counters.submitted, counters.judged, counters.parked, counters.lost));
    return status;
  }

  int wait(const StopSignals& signals) {
    using namespace std::chrono_literals;
    auto time = 50ms;
    int status = kExitClean;
    size_t left = pieces_.size() + unsent_.size();
    while (left > 0 && !signals.asked()) {
      status = worse(status, submit_unsent(signals));
      look_at_all(signals);
      left = unsent_.size() +
             static_cast<size_t>(std::count_if(pieces_.begin(), pieces_.end(),
                                               [](const Piece& piece) { return !piece.ended; }));
      tell_what_is_due(left == 0 || signals.asked());
      if (left > 0) {
        fleet::pause(time, [&] { return signals.asked(); });
      }
      time = std::min(2 * time, 2000ms);
    }
    for (const Piece& piece : pieces_) {
      status = worse(status, piece.ended ? piece.status : kExitInconclusive);
    }
    return unsent_.empty() ? status : worse(status, kExitInconclusive);
  }

  // Each piece that has not ended, once, or until nothing can be learned; then the next time begins behind these.
  void look_at_all(const StopSignals& signals) {
    unsigned failures = 0;
    for (size_t i = 0; i < pieces_.size() && failures < kMostFailures && !signals.asked(); ++i) {
      Piece& piece = pieces_[next_];
      next_ = (next_ + 1) % pieces_.size();
      if (!piece.ended) {
        failures = look(&piece) ? 0 : failures + 1;
      }
    }
  }

  // It is asked again.
  bool failed(const Error& error) {
    if (const auto told = limiter_.add(error.to_string(), std::chrono::steady_clock::now())) {
      put_message(kSubmitTool, *told);
    }
    return false;
  }

  void tell_what_is_due(bool all) {
    for (const std::string& text : limiter_.due(std::chrono::steady_clock::now(), all)) {
      put_message(kSubmitTool, text);
    }
  }

  // False: the fleet did not say.
  bool look(Piece* piece) {
    const auto standing = fleet_.standing(how_.tenant, piece->id);
    if (!standing) {
      return failed(standing.error());
    }
    switch (standing->state) {
      case fleet::State::kDone:
        return end(piece);
      case fleet::State::kParked:
        if (standing->needs_content) {
          return again(piece);
        }
        settle(piece, "parked: " + standing->reason, kExitInconclusive, {});
        break;
      case fleet::State::kUnknown:
        return again(piece);
      case fleet::State::kWaiting:
      case fleet::State::kRunning:
        break;
    }
    return true;
  }

  // The fleet has lost it, or what it needs.
  bool again(Piece* piece) {
    if (piece->file == "-") {
      settle(piece, "lost: standard input cannot be submitted again", kExitInconclusive, {});
      return true;
    }
    const auto submitted = fleet::submit(fleet_, piece->file, how_, false);
    if (!submitted) {
      return failed(submitted.error());
    }
    if (std::none_of(submitted->work.begin(), submitted->work.end(),
                     [&](const auto& work) { return work.first == piece->id; })) {
      settle(piece, "lost: the file is another one now", kExitInconclusive, {});
    }
    return true;
  }

  bool end(Piece* piece) {
    const auto verdict = fleet_.verdict(piece->id);
    if (!verdict) {
      return failed(verdict.error());
    }
    if (*verdict) {
      settle(piece, "done", (*verdict)->exit_status, (*verdict)->result);
    }
    return true;
  }

  void settle(Piece* piece, const std::string& outcome, int status, const std::string& result) {
    piece->outcome = outcome;
    piece->status = status;
    piece->ended = true;
    if (options_.output == OutputFormat::kJson) {
      put_json(stdout,
               {{"schema", 1},
                {"tool", kSubmitTool},
                {"file", piece->file},
                {"id", piece->id},
                {"command", piece->command},
                {"outcome", outcome},
                {"exit_status", status}},
               kSubmitTool);
      return;
    }
    const std::string verdicts = verdicts_in(result);
    put_lines(stdout, fmt::format("{}: {}: {}\n", printable(piece->file), piece->command,
                                  verdicts.empty() ? printable(outcome) : verdicts));
  }

  fleet::Fleet& fleet_;
  const SubmitArguments& options_;
  fleet::SubmissionOptions how_;
  std::deque<std::string> unsent_;  // files
  std::vector<Piece> pieces_;
  size_t next_ = 0;  // where the next look at all begins
  service::MessageLimiter limiter_;
};

int submit_all(const SubmitArguments& options, const StopSignals& signals) {
  auto questions = questions_of(options);
  if (!questions) {
    return put_error(kSubmitTool, questions.error());
  }
  if (!fleet::is_tenant(options.tenant)) {
    put_message(
        kSubmitTool,
        fmt::format("--tenant: expected lower-case letters, digits and hyphens, at most 32, "
                    "found {}",
                    printable(options.tenant)));
    return kExitBadInput;
  }
  int exit_status = kExitClean;
  const auto fleet = open_fleet_of(options.fleet, kSubmitTool, &exit_status);
  return fleet == nullptr ? exit_status
                          : Submitter(*fleet, options, std::move(*questions)).run(signals);
}

}  // namespace

int run_submit(const SubmitArguments& options) {
  const StopSignals signals;
  try {
    return within_memory_of(options.files, [&] { return submit_all(options, signals); });
  } catch (const WorkEnded& end) {
    put_message(kSubmitTool, end.what());
    return kExitInconclusive;
  }
}

}  // namespace tsomon
