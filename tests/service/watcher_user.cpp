// A program that watches another one by <tsomon/watcher.h>: watcher_user STORE PROGRAM. Ends with the first finding: 0; 1 where
// none comes, and 2 where something is not as the header says.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>

#include <tsomon/watcher.h>

namespace {

std::atomic<int> alarms{0};

// What adds up at any moment.
bool adds_up(const tsomon::Watcher::Counters& counters) {
  uint64_t verdicts = 0;
  for (const auto& each : counters.verdicts) {
    verdicts += each.second;
  }
  return counters.slices == counters.judged + counters.without_threads &&
         verdicts == counters.judged;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    return 2;
  }
  // Signals stay the program's own.
  std::signal(SIGHUP, [](int) { ++alarms; });
  std::atomic<bool> found{false};
  tsomon::Watcher::Callbacks callbacks;
  callbacks.found = [&](const tsomon::Watcher::Finding& finding) {
    std::printf("%s: %s: %s\n", finding.target.c_str(), finding.fingerprint.c_str(),
                finding.summary.c_str());
    found = true;
  };
  callbacks.message = [](const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); };
  tsomon::Watcher watcher("[service]\nstore = " + tsomon::Watcher::quoted(argv[1]) +
                              "\n[[target]]\nname = \"bank\"\nsample = \"50%\"\ncommand = [" +
                              tsomon::Watcher::quoted(argv[2]) + "]\n",
                          callbacks);
  if (!watcher.start()) {
    for (const std::string& error : watcher.errors()) {
      std::fprintf(stderr, "%s\n", error.c_str());
    }
    return 2;
  }
  std::raise(SIGHUP);
  bool right = alarms == 1;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!found && std::chrono::steady_clock::now() < until) {
    for (const tsomon::Watcher::Target& target : watcher.targets()) {
      right = right && adds_up(target.counters);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  watcher.stop();
  const auto targets = watcher.targets();
  right = right && watcher.is_over() && targets.size() == 1 && adds_up(targets[0].counters) &&
          watcher.status().find("\"bank\"") != std::string::npos;
  if (!right) {
    std::fprintf(stderr, "not as it should be: %s\n", watcher.status().c_str());
    return 2;
  }
  return found && targets[0].counters.new_findings != 0 ? 0 : 1;
}
