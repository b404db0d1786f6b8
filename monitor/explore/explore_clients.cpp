#include "monitor/explore/explore_clients.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "monitor/explore/program_process.h"
#include "monitor/specification/sequential_program.h"
#include "tso/support/work.h"

namespace tsomon::explore {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kMostClients = 1'000'000;  // of one size

struct Listed {
  std::string object;
  std::vector<ClientOperation> operations;
};

Error program_error(const ExploreOptions& options, const std::string& message) {
  return {ErrorKind::kUnreadable, options.command[0], {}, message};
}

Result<Listed> listed_operations(const ExploreOptions& options) {
  std::vector<std::string> command = options.command;
  command.emplace_back("--operations");
  auto process = ProgramProcess::start(command, {});
  if (!process) {
    return tl::unexpected(process.error());
  }
  Listed listed;
  for (const std::string& outcome : (*process)->run({}).outcomes) {
    std::istringstream words(outcome);
    std::string what;
    std::string name;
    words >> what >> name;
    if (what == "object") {
      listed.object = name;
    } else if (what == "operation") {
      ClientOperation operation{name, false, {}};
      for (std::string word; words >> word;) {
        if (word == "fresh") {
          operation.fresh = true;
        } else {
          operation.arguments.push_back(std::atoll(word.c_str()));
        }
      }
      listed.operations.push_back(std::move(operation));
    }
  }
  if (listed.operations.empty()) {
    return tl::unexpected(program_error(
        options, "with --operations it lists none: it has to register them (tsomon_client.h)"));
  }
  return listed;
}

Result<bool> keep_chosen(const ExploreOptions& options, const ClientPlan& plan,
                         std::vector<ClientOperation>* operations) {
  for (const std::string& name : plan.operations) {
    if (std::none_of(operations->begin(), operations->end(),
                     [&](const ClientOperation& operation) { return operation.name == name; })) {
      return tl::unexpected(program_error(options, fmt::format("it has no operation {}", name)));
    }
  }
  if (!plan.operations.empty()) {
    std::erase_if(*operations, [&](const ClientOperation& operation) {
      return std::find(plan.operations.begin(), plan.operations.end(), operation.name) ==
             plan.operations.end();
    });
  }
  return true;
}

// What `--replay` says with clients: a client, and a schedule of it.
struct ClientSchedule {
  std::string client;
  std::string schedule;
};

Result<ClientSchedule> parse_client_schedule(const std::string& text, const Listed& listed) {
  const auto wrong = [](const std::string& message) {
    return tl::unexpected(Error{ErrorKind::kUsage, {}, {}, "--replay: " + message});
  };
  const size_t at = text.rfind('@');
  if (at == std::string::npos) {
    return wrong("with --clients it is CLIENT@SCHEDULE, as a finding has it");
  }
  ClientSchedule parsed{text.substr(0, at), text.substr(at + 1)};
  std::istringstream calls(parsed.client);
  for (std::string call; calls >> call;) {
    if (call == "|") {
      continue;
    }
    const std::string name = call.substr(0, call.find('('));
    if (std::none_of(listed.operations.begin(), listed.operations.end(),
                     [&](const ClientOperation& operation) { return operation.name == name; })) {
      return wrong(fmt::format("the program has no operation {}", name));
    }
  }
  return parsed;
}

// The client's traces, or its replay.
Result<Exploration> explore_client(const ExploreOptions& options, const std::string& client) {
  return explore(of_client(options, client));
}

// The clients of one size, by several threads.
class SizeExplorer {
 public:
  SizeExplorer(const ExploreOptions& options, std::vector<std::string> clients,
               Clock::time_point begun)
      : options_(options), clients_(std::move(clients)), begun_(begun) {}

  void run() {
    WorkMeter* const meter = current_meter();
    std::vector<std::thread> threads;
    for (uint32_t job = 1; job < options_.jobs; ++job) {
      threads.emplace_back([this, meter] {
        const WorkScope scope(meter);
        work();
      });
    }
    work();
    for (std::thread& thread : threads) {
      thread.join();
    }
  }

  // Adds what was explored. True: nothing more is to be.
  bool add_to(Exploration* all, std::optional<Error>* error) {
    for (auto& [number, explored] : explored_) {
      if (number > last_) {
        break;
      }
      if (!explored) {
        *error = explored.error();
        return true;
      }
      ++all->clients;
      all->executions += explored->executions;
      all->blocked += explored->blocked;
      all->redundant += explored->redundant;
      all->classes += explored->classes;
      all->in_place += explored->in_place;
      all->forked += explored->forked;
      if (all->forked_because.empty()) {
        all->forked_because = explored->forked_because;
      }
      all->refused = all->refused || explored->refused;
      for (const std::string& why : explored->notes) {
        add_note(all, fmt::format("{} ({})", why, clients_[number]));
      }
      if (!explored->findings.empty()) {
        all->findings = std::move(explored->findings);
        all->outcomes = std::move(explored->outcomes);
        all->client = clients_[number];
        return true;
      }
    }
    if (!over_.empty()) {
      add_note(all, over_);
    }
    return !over_.empty() || all->refused;
  }

 private:
  // The first few say enough.
  static void add_note(Exploration* all, const std::string& text) {
    if (all->notes.size() < 10) {
      all->notes.push_back(text);
    }
  }

  void work() {
    for (;;) {
      const size_t number = next_.fetch_add(1);
      ExploreOptions options = options_;
      {
        const std::lock_guard lock(mutex_);
        if (number >= clients_.size() || number > last_ || !over_.empty()) {
          return;
        }
        if (stop_asked()) {
          over_ = "interrupted";
          return;
        }
        if (options_.seconds > 0) {
          options.seconds =
              options_.seconds - std::chrono::duration<double>(Clock::now() - begun_).count();
          if (options.seconds <= 0) {
            over_ = "the time is over (--time)";
            return;
          }
        }
      }
      options.jobs = 1;
      options.folder.clear();
      auto explored = explore_client(options, clients_[number]);
      const std::lock_guard lock(mutex_);
      if (!explored || !explored->findings.empty() || explored->refused) {
        last_ = std::min(last_, number);
      }
      explored_.emplace(number, std::move(explored));
    }
  }

  const ExploreOptions& options_;
  const std::vector<std::string> clients_;
  const Clock::time_point begun_;
  std::atomic<size_t> next_{0};
  std::mutex mutex_;  // all that follows
  size_t last_ = SIZE_MAX;
  std::string over_;
  std::map<size_t, Result<Exploration>> explored_;
};

// What the clients' calls are compared with, where the program names it.
Result<void> choose_object(const ExploreOptions& options, const Listed& listed,
                           ExploreOptions* each) {
  if (listed.object == "sequential" && !each->specification) {
    std::vector<std::string> command = options.command;
    command.emplace_back("--specification");
    auto specification = SequentialProgram::start(command);
    if (!specification) {
      return tl::unexpected(specification.error());
    }
    each->specification = std::move(*specification);
  }
  if (listed.object.empty()) {
    return {};
  }
  each->linearizability = true;
  if (!each->object && !each->specification) {
    each->object = linearizability::object_kind(listed.object);
    if (!each->object) {
      return tl::unexpected(program_error(
          options,
          fmt::format("its object, {}, is not known (--object lists what is)", listed.object)));
    }
  }
  return {};
}

Result<Exploration> replay_client(ExploreOptions options, const Listed& listed) {
  const auto asked = parse_client_schedule(options.replay, listed);
  if (!asked) {
    return tl::unexpected(asked.error());
  }
  options.replay = asked->schedule;
  auto replayed = explore_client(options, asked->client);
  if (replayed) {
    replayed->clients = 1;
    replayed->client = asked->client;
  }
  return replayed;
}

// All clients, those with few calls first, until one is violated.
Result<Exploration> explore_plan(const ExploreOptions& options, const Listed& listed,
                                 const ClientBounds& bounds) {
  const auto begun = Clock::now();
  Exploration all;
  all.program = options.command[0];
  for (uint32_t calls = 1; calls <= bounds.calls; ++calls) {
    std::vector<std::string> clients;
    const bool whole = for_each_client(listed.operations, bounds, calls, [&](const Client& client) {
      clients.push_back(client_text(client, listed.operations));
      return clients.size() < kMostClients;
    });
    SizeExplorer explorer(options, std::move(clients), begun);
    explorer.run();
    std::optional<Error> error;
    if (explorer.add_to(&all, &error)) {
      if (error) {
        return tl::unexpected(*error);
      }
      break;
    }
    if (!whole) {
      all.notes.push_back(
          fmt::format("there are more than {} clients of {} calls", kMostClients, calls));
      break;
    }
  }
  if (!options.folder.empty() && !all.client.empty()) {
    const auto again = explore_client(options, all.client);
    if (!again) {
      return tl::unexpected(again.error());
    }
    all.traces = again->traces;
  }
  all.seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  return all;
}

}  // namespace

ExploreOptions of_client(ExploreOptions options, const std::string& client) {
  options.command.emplace_back("--client");
  options.command.push_back(client);
  return options;
}

Result<Exploration> explore_clients(const ExploreOptions& options, const std::string& file) {
  std::ifstream input(file, std::ios::binary);
  std::stringstream text;
  text << input.rdbuf();
  if (!input) {
    return tl::unexpected(Error{ErrorKind::kUnreadable, file, {}, "cannot be read"});
  }
  const auto plan = parse_client_plan(text.str(), file);
  if (!plan) {
    return tl::unexpected(plan.error());
  }
  auto listed = listed_operations(options);
  if (!listed) {
    return tl::unexpected(listed.error());
  }
  if (const auto chosen = keep_chosen(options, *plan, &listed->operations); !chosen) {
    return tl::unexpected(chosen.error());
  }
  ExploreOptions each = options;
  if (const auto chosen = choose_object(options, *listed, &each); !chosen) {
    return tl::unexpected(chosen.error());
  }
  return options.replay.empty() ? explore_plan(each, *listed, plan->bounds)
                                : replay_client(each, *listed);
}

}  // namespace tsomon::explore
