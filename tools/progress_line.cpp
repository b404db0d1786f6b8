#include "tools/progress_line.h"

#include <chrono>
#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "tso/support/printable.h"

namespace tsomon {
namespace {

constexpr std::chrono::milliseconds kFirst{1000};
constexpr std::chrono::milliseconds kRewritten{250};
constexpr std::chrono::milliseconds kNextLine{5000};

}  // namespace

ProgressLine::ProgressLine(std::string input, const Progress& progress, bool asked)
    : input_(std::move(input)), progress_(progress), terminal_(isatty(STDERR_FILENO) != 0) {
  if (terminal_ || asked) {
    thread_ = std::thread([this] { run(); });
  }
}

ProgressLine::~ProgressLine() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      end_ = true;
    }
    ended_.notify_one();
    thread_.join();
  }
}

void ProgressLine::run() {
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  bool shown = false;
  while (!ended_.wait_for(lock,
                          !shown      ? kFirst
                          : terminal_ ? kRewritten
                                      : kNextLine,
                          [this] { return end_; })) {
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start);
    std::string line = fmt::format("tsomon check: {}: {} s", printable(input_), seconds.count());
    if (const uint64_t events = progress_.events; events > 0) {
      line += fmt::format(", {} events", events);
    }
    if (const uint64_t groups = progress_.groups; groups > 0) {
      line += fmt::format(", {} of {} groups of units searched", progress_.searched.load(), groups);
    }
    fmt::print(stderr, "{}{}{}", terminal_ ? "\r" : "", line, terminal_ ? "\x1b[K" : "\n");
    std::fflush(stderr);
    shown = true;
  }
  if (shown && terminal_) {
    fmt::print(stderr, "\r\x1b[K");
    std::fflush(stderr);
  }
}

}  // namespace tsomon
