#include "monitor/fleet/worker.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/fleet/pause.h"
#include "monitor/process/descriptor.h"
#include "monitor/service/seen_findings.h"
#include "monitor/service/system_time.h"
#include "tso/support/printable.h"

namespace tsomon::fleet {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kFirstPause{100};
constexpr int kBadInput = 2;  // exit status
constexpr size_t kMostSightings = 100'000;
constexpr size_t kMostFindingBytes = size_t{64} << 10;
constexpr size_t kMostFindingsBytes = size_t{16} << 20;

// For the process that reads it, which is a child of this one.
std::string path_of(const Descriptor& file) {
  return fmt::format("/proc/{}/fd/{}", ::getpid(), file.get());
}

void replace_all(std::string* text, const std::string& what, const std::string& by) {
  for (size_t at = text->find(what); at != std::string::npos;
       at = text->find(what, at + by.size())) {
    text->replace(at, what.size(), by);
  }
}

// As it stands within a text of JSON.
std::string escaped(const std::string& text) {
  const std::string quoted = Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  return quoted.substr(1, quoted.size() - 2);
}

bool is_result(const std::string& output) {
  const size_t end = output.find('\n');
  return end != std::string::npos && Json::parse(output.substr(0, end), nullptr, false).is_object();
}

std::string failure_text(const service::IdleEnd& end) {
  using Why = service::IdleEnd::Why;
  if (end.why == Why::kTime) {
    return "it took more processor time than it may";
  }
  if (end.why == Why::kMemory) {
    return fmt::format("it took {} MiB of memory, more than it may", end.most_bytes >> 20);
  }
  return WIFSIGNALED(end.wait_status)
             ? fmt::format("it ended by signal {} ({})", WTERMSIG(end.wait_status),
                           ::strsignal(WTERMSIG(end.wait_status)))
             : fmt::format("it ended with status {} and no result", WEXITSTATUS(end.wait_status));
}

}  // namespace

std::vector<Sighting> sightings_of(const Work& work, const std::string& output) {
  std::vector<Sighting> sightings;
  if (is_part(work.question)) {
    return sightings;
  }
  size_t bytes = 0;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const Json object = Json::parse(line, nullptr, false);
    if (!object.is_object()) {
      continue;
    }
    std::vector<service::SeenFinding> found;
    if (work.question.command == "check") {
      found = service::seen_by_check(object);
    } else if (work.question.command == "predict") {
      found = service::seen_by_predict(object);
    }
    for (service::SeenFinding& each : found) {
      if (sightings.size() == kMostSightings) {
        return sightings;
      }
      if (each.json.size() > kMostFindingBytes || bytes > kMostFindingsBytes) {
        // The verdict has it whole.
        each.json = "{}";
      }
      bytes += each.json.size();
      sightings.push_back({work.id, work.tenant, work.host, work.content.build, work.content.name,
                           work.submitted, std::move(each)});
    }
  }
  return sightings;
}

Result<void> Worker::run(const Stopped& stopped) {
  milliseconds wait = kFirstPause;
  auto answered = steady_clock::now();
  const auto next_wait = [&] {
    pause(wait, stopped);
    wait = std::min(2 * wait, kLongestPause);
  };
  while (!stopped()) {
    const auto taken = fleet_.take(options_.name, options_.lease);
    if (!taken) {
      if (options_.once && steady_clock::now() - answered > kAwayWithOnce) {
        return error_of(taken);
      }
      options_.tell(taken.error().to_string());
      next_wait();
      continue;
    }
    answered = steady_clock::now();
    if (*taken) {
      wait = kFirstPause;
      if (const auto done = do_one(**taken, stopped); !done) {
        options_.tell(fmt::format("{}: {}", (*taken)->work.id, done.error().to_string()));
        next_wait();
      }
      continue;
    }
    if (options_.once) {
      const auto over = is_over();
      if (over && *over) {
        return {};
      }
    }
    wait = std::min(wait, milliseconds(1000));
    next_wait();
  }
  return {};
}

Result<bool> Worker::is_over() {
  const auto status = fleet_.status();
  if (!status) {
    return error_of(status);
  }
  return status->waiting == 0 && status->running == 0;
}

Result<void> Worker::do_one(const Taken& taken, const Stopped& stopped) {
  if (taken.tries > options_.most_tries) {
    return park(
        taken, Parking::kForGood,
        fmt::format("{} workers took it, and the last one did not come back", taken.tries - 1));
  }
  return parts_of(taken.work.question) != 0 ? put_together(taken, stopped)
                                            : judge(taken, {}, stopped);
}

Result<void> Worker::judge(const Taken& taken, const Answers& answers, const Stopped& stopped) {
  const Work& work = taken.work;
  auto file = temporary_file();
  auto suppressions = temporary_file();
  if (!file || !suppressions) {
    return fail_try(taken, (file ? suppressions : file).error().to_string());
  }
  if (const auto fetched = contents_.fetch(work.content, *file); !fetched) {
    return fetched.error().kind == ErrorKind::kDamaged
               ? park(taken, Parking::kNeedsContent, fetched.error().message)
               : fail_try(taken, fetched.error().to_string());
  }
  const std::string path = path_of(*file);
  std::vector<std::string> command = {options_.program, work.question.command, path, "--output",
                                      "json"};
  if (work.question.command != "explain") {
    command.insert(command.end(), {"--jobs", std::to_string(options_.jobs)});
  }
  const std::vector<std::string> arguments = arguments_of(work.question);
  command.insert(command.end(), arguments.begin(), arguments.end());
  const std::string& lines = work.question.suppressions;
  if (!lines.empty() && work.question.command != "explain") {
    if (!write_at(*suppressions, lines.data(), lines.size(), 0)) {
      return fail_try(taken, "its suppressions cannot be written");
    }
    command.insert(command.end(), {"--suppressions", path_of(*suppressions)});
  }
  for (const std::string& searched : answers.paths()) {
    command.insert(command.end(), {"--searched", searched});
  }

  Names names = answers.names;
  names.emplace_back(path, work.content.name);
  if (!lines.empty()) {
    names.emplace_back(path_of(*suppressions), "suppressions");
  }
  return run_command(taken, command, names, stopped);
}

// `names`: of paths, as they are called in what is stored.
Result<void> Worker::run_command(const Taken& taken, const std::vector<std::string>& command,
                                 const Names& names, const Stopped& stopped) {
  bool lost = false;
  auto extended = steady_clock::now();
  service::IdleProcess process(options_.bounds);
  auto end = process.run(command, [&] {
    if (steady_clock::now() - extended > options_.lease / 3) {
      extended = steady_clock::now();
      const auto kept = fleet_.extend(taken, options_.lease);
      lost = kept && !*kept;
    }
    return lost || stopped();
  });
  if (!end) {
    return fail_try(taken, end.error().to_string());
  }
  counters_.used += end->used;
  if (lost) {
    return fail(ErrorKind::kEnvironment, "somebody else has it now");
  }
  if (end->why == service::IdleEnd::Why::kStopped) {
    return park(taken, Parking::kBack, "");
  }
  // A bound that the command knows of itself makes its answer inconclusive, which is one.
  const bool answered =
      WIFEXITED(end->wait_status) && WEXITSTATUS(end->wait_status) <= 3 && is_result(end->output);
  if (!answered) {
    return fail_try(taken, failure_text(*end));
  }
  for (const auto& [path, name] : names) {
    replace_all(&end->output, path, escaped(name));
  }
  return insist([&] { return store(taken, end->output, WEXITSTATUS(end->wait_status)); }, stopped);
}

// The parts of a whole, and in the end their answers as one.
Result<void> Worker::put_together(const Taken& taken, const Stopped& stopped) {
  const Work& work = taken.work;
  const uint64_t count = parts_of(work.question);
  bool all = true;
  for (uint64_t number = 1; number <= count && !stopped(); ++number) {
    const Work part = part_of(work, number);
    // A server that is away for a while is no try of this work.
    State state = State::kUnknown;
    const auto put = insist(
        [&]() -> Result<void> {
          const auto told = fleet_.put(part, false);
          state = told ? *told : state;
          return told ? Result<void>() : error_of(told);
        },
        stopped);
    if (!put) {
      return put;
    }
    if (state == State::kParked) {
      const auto standing = fleet_.standing(part.tenant, part.id);
      if (!standing) {
        return error_of(standing);
      }
      if (standing->state == State::kParked) {  // and not put again just now
        return park(
            taken, standing->needs_content ? Parking::kNeedsContent : Parking::kForGood,
            fmt::format("part {} of {} ({}): {}", number, count, part.id, standing->reason));
      }
    }
    all = all && state == State::kDone;
  }
  if (!all || stopped()) {
    return park(taken, Parking::kLater, "");
  }
  Answers answers;
  for (uint64_t number = 1; number <= count; ++number) {
    const auto verdict = fleet_.verdict(part_of(work, number).id);
    if (!verdict) {
      return error_of(verdict);
    }
    if (!*verdict) {
      return park(taken, Parking::kLater, "");  // it was lost: it is put again
    }
    const auto output = output_of(**verdict);
    if (!output) {
      return fail_try(taken, output.error().to_string());
    }
    if ((*verdict)->exit_status == kBadInput) {
      // Each part says so.
      return insist([&] { return store(taken, *output, kBadInput); }, stopped);
    }
    auto file = temporary_file();
    if (!file || !write_at(*file, output->data(), output->size(), 0)) {
      return fail_try(taken, "the answers of its parts cannot be written");
    }
    answers.names.emplace_back(path_of(*file), fmt::format("part {}", number));
    answers.files.push_back(std::move(*file));
  }
  // A prediction is what its parts have found; a check goes through the recording once more, without their searches.
  return work.question.command == "check" ? judge(taken, answers, stopped)
                                          : merge(taken, answers, stopped);
}

Result<void> Worker::merge(const Taken& taken, const Answers& answers, const Stopped& stopped) {
  std::vector<std::string> command = {options_.program, taken.work.question.command, "--merge",
                                      "--output", "json"};
  const std::vector<std::string> paths = answers.paths();
  command.insert(command.end(), paths.begin(), paths.end());
  return run_command(taken, command, answers.names, stopped);
}

std::vector<std::string> Worker::Answers::paths() const {
  std::vector<std::string> paths;
  std::transform(files.begin(), files.end(), std::back_inserter(paths), path_of);
  return paths;
}

Result<std::string> Worker::output_of(const Verdict& verdict) {
  return verdict.chunks.chunks.empty() ? Result<std::string>(verdict.result)
                                       : fetch_part(fleet_, verdict.chunks);
}

Result<void> Worker::insist(const std::function<Result<void>()>& act, const Stopped& stopped) {
  milliseconds wait = kFirstPause;
  const auto begin = steady_clock::now();
  for (;;) {
    auto done = act();
    if (done || done.error().kind != ErrorKind::kEnvironment || stopped() ||
        steady_clock::now() - begin > 10 * options_.lease) {
      return done;
    }
    pause(wait, stopped);
    wait = std::min(2 * wait, kLongestPause);
  }
}

Result<void> Worker::store(const Taken& taken, const std::string& output, int exit_status) {
  Verdict verdict;
  verdict.id = taken.work.id;
  verdict.exit_status = exit_status;
  verdict.worker = options_.name;
  verdict.judged = service::now_in_microseconds();
  verdict.tries = taken.tries;
  if (output.size() <= kMostResultInMessage) {
    verdict.result = output;
  } else {
    ContentSender sender(fleet_);
    auto part = sender.send("", output, 0);
    const auto done = part ? sender.finish() : error_of(part);
    if (!done) {
      return done;
    }
    verdict.chunks = std::move(*part);
  }
  const auto done = fleet_.done(taken, verdict, sightings_of(taken.work, output));
  if (!done) {
    return error_of(done);
  }
  ++counters_.judged;
  return {};
}

Result<void> Worker::fail_try(const Taken& taken, const std::string& reason) {
  ++counters_.failed;
  options_.tell(fmt::format("{}: {}", taken.work.id, reason));
  const bool last = taken.tries >= options_.most_tries;
  return park(taken, last ? Parking::kForGood : Parking::kAgain,
              last ? fmt::format("{} (tried {} times)", reason, taken.tries) : reason);
}

Result<void> Worker::park(const Taken& taken, Parking how, const std::string& reason) {
  const auto done = fleet_.park(taken, options_.name, how, reason);
  if (done && (how == Parking::kForGood || how == Parking::kNeedsContent)) {
    ++counters_.parked;
    options_.tell(fmt::format("{}: parked: {}", taken.work.id, reason));
  }
  return done;
}

}  // namespace tsomon::fleet
