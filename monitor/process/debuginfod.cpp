#include "monitor/process/debuginfod.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include "tso/support/work.h"

namespace tsomon {
namespace {

using Clock = std::chrono::steady_clock;
using Progress = int (*)(debuginfod_client*, long, long);
using Find = int (*)(debuginfod_client*, const unsigned char*, int, char**);

struct Client {
  debuginfod_client* (*begin)() = nullptr;
  void (*end)(debuginfod_client*) = nullptr;
  void (*set_progress)(debuginfod_client*, Progress) = nullptr;
  Find find_code = nullptr;
  Find find_debug = nullptr;
};

std::mutex problem_mutex;
std::string problem_to_report;
bool problem_taken = false;

void report_problem(std::string problem) {
  const std::lock_guard lock(problem_mutex);
  if (!problem_taken && problem_to_report.empty()) {
    problem_to_report = std::move(problem);
  }
}

template <typename Function>
bool look_up(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

Client load() {
  const char* const servers = std::getenv("DEBUGINFOD_URLS");
  if (servers == nullptr || *servers == '\0') {
    return {};
  }
  Client client;
  void* const library = ::dlopen("libdebuginfod.so.1", RTLD_LAZY | RTLD_LOCAL);
  const bool whole = library != nullptr && look_up(library, "debuginfod_begin", client.begin) &&
                     look_up(library, "debuginfod_end", client.end) &&
                     look_up(library, "debuginfod_set_progressfn", client.set_progress) &&
                     look_up(library, "debuginfod_find_executable", client.find_code) &&
                     look_up(library, "debuginfod_find_debuginfo", client.find_debug);
  if (!whole) {
    report_problem(
        "DEBUGINFOD_URLS is set, but libdebuginfod.so.1 is not installed: no server is asked "
        "(apt-get install libdebuginfod1)");
    return {};
  }
  return client;
}

// Without functions when no server is to be asked.
const Client& client() {
  static const Client loaded = load();
  return loaded;
}

std::atomic<double> seconds_spent{0};
thread_local Clock::time_point turn_began;

double seconds_of_turn() {
  return std::chrono::duration<double>(Clock::now() - turn_began).count();
}

bool is_over(double seconds) {
  return seconds > kSecondsForOne || seconds_spent.load() + seconds > kSecondsForAll;
}

// Not 0: the client gives up.
int keep_to_bounds(debuginfod_client* /*client*/, long /*done*/, long /*all*/) {
  if (is_over(seconds_of_turn())) {
    report_problem(
        fmt::format("debuginfod: waited for {} seconds for a file, or {} in all: what did not come "
                    "is missing",
                    kSecondsForOne, kSecondsForAll));
    return 1;
  }
  return stop_asked() ? 1 : 0;
}

void end_turn() {
  const double seconds = seconds_of_turn();
  for (double before = seconds_spent.load();
       !seconds_spent.compare_exchange_weak(before, before + seconds);) {
  }
}

// The path in the client's cache.
std::string find(debuginfod_client* connection, Find find, std::string_view build_id) {
  char* path = nullptr;
  const int fd = find(connection, reinterpret_cast<const unsigned char*>(build_id.data()),
                      static_cast<int>(build_id.size()), &path);
  if (fd < 0) {
    if (fd != -ENOENT && fd != -ECANCELED) {
      report_problem(fmt::format("debuginfod: {}", std::strerror(-fd)));
    }
    return {};
  }
  ::close(fd);
  std::string found = path;
  std::free(path);
  return found;
}

}  // namespace

DebuginfodTurn::DebuginfodTurn(Dwfl* dwfl) {
  if (client().set_progress == nullptr || dwfl == nullptr) {
    return;
  }
  if (debuginfod_client* const own = dwfl_get_debuginfod_client(dwfl)) {
    client().set_progress(own, keep_to_bounds);
    turn_began = Clock::now();
    bounds_ = true;
  }
}

DebuginfodTurn::~DebuginfodTurn() {
  if (bounds_) {
    end_turn();
  }
}

std::string fetch_code(std::string_view build_id, bool or_debug) {
  const Client& loaded = client();
  debuginfod_client* const connection =
      loaded.begin == nullptr || build_id.empty() || is_over(0) ? nullptr : loaded.begin();
  if (connection == nullptr) {
    return {};
  }
  loaded.set_progress(connection, keep_to_bounds);
  turn_began = Clock::now();
  std::string found = find(connection, loaded.find_code, build_id);
  if (found.empty() && or_debug) {
    found = find(connection, loaded.find_debug, build_id);
  }
  end_turn();
  loaded.end(connection);
  return found;
}

std::string take_debuginfod_problem() {
  const std::lock_guard lock(problem_mutex);
  problem_taken = problem_taken || !problem_to_report.empty();
  return std::exchange(problem_to_report, {});
}

}  // namespace tsomon
