// `tsomon top`: what the monitor that keeps a store is doing, again and again.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "monitor/service/status_client.h"
#include "monitor/service/status_text.h"
#include "tools/command.h"
#include "tools/kept_findings.h"
#include "tools/number_option.h"
#include "tools/output.h"
#include "tools/stop_signals.h"
#include "tools/store_option.h"
#include "tools/terminal_screen.h"
#include "tso/support/printable.h"

namespace tsomon {
namespace {

using std::chrono::milliseconds;

constexpr const char* kTopTool = "tsomon top";
constexpr milliseconds kLeastInterval{100};
constexpr milliseconds kMostInterval{3'600'000};

struct TopArguments {
  std::string store;
  std::chrono::microseconds interval{1'000'000};
  uint64_t count = 0;  // 0: until it is ended
};

// On a terminal: until somebody ends it, whether the monitor goes or comes again.
int show_live(const TopArguments& options, milliseconds interval) {
  TerminalScreen screen;
  for (;;) {
    const size_t width = screen.columns();
    const auto status = service::ask_status(options.store);
    std::vector<std::string> lines;
    if (status) {
      lines = service::top_lines(*status, width);
    } else {
      lines = {status.error().to_string().substr(0, width == 0 ? std::string::npos : width)};
    }
    screen.draw(lines);
    if (screen.wait(interval) == TerminalScreen::Event::kEnd) {
      return kExitClean;
    }
  }
}

// Whole lines, an empty one between.
int show_blocks(const TopArguments& options, milliseconds interval) {
  const StopSignals signals;
  constexpr milliseconds kLook{50};
  for (uint64_t shown = 0;; ++shown) {
    const auto status = service::ask_status(options.store);
    if (!status) {
      return put_error(kTopTool, status.error());
    }
    std::string text = shown == 0 ? "" : "\n";
    for (const std::string& line : service::top_lines(*status, 0)) {
      text += line + "\n";
    }
    put_lines(stdout, text);
    if (std::ferror(stdout) != 0 || (options.count != 0 && shown + 1 >= options.count)) {
      return kExitClean;
    }
    const auto until = std::chrono::steady_clock::now() + interval;
    while (std::chrono::steady_clock::now() < until) {
      if (signals.asked()) {
        return kExitClean;
      }
      std::this_thread::sleep_for(std::min(kLook, std::chrono::duration_cast<milliseconds>(
                                                      until - std::chrono::steady_clock::now()) +
                                                      milliseconds(1)));
    }
  }
}

int run_top(const TopArguments& options) {
  const auto interval = std::clamp(std::chrono::duration_cast<milliseconds>(options.interval),
                                   kLeastInterval, kMostInterval);
  if (options.count == 0 && ::isatty(STDOUT_FILENO) != 0) {
    return show_live(options, interval);
  }
  return show_blocks(options, interval);
}

}  // namespace

void add_top_command(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "top", "What the tsomon monitor that keeps a store is doing, again and again");
  auto options = std::make_shared<TopArguments>();
  add_store_option(*command, options->store);
  add_duration(*command, "--interval", options->interval, "Between two looks, at least 100ms [1s]");
  command
      ->add_option(
          "--count", options->count,
          "How many looks, one below the other; without it a terminal is written anew until q "
          "or\nCtrl-C, and elsewhere they follow one another")
      ->option_text("N");
  command->footer(
      "SHARE: of the time that is watched; COST: of the target's processor time for it; HERE: as "
      "much\nas that is used by the monitor; a second: slices, events, units, candidates that are "
      "searched,\nevents that are lost; FOUND: violations; NEW: findings that the store did not "
      "have.\n"
      "Exit status: 0; 2 no monitor keeps this store, or bad usage; 4 it does not answer.");
  command->callback([options, &exit_status] { exit_status = run_top(*options); });
}

}  // namespace tsomon
