// Watching other programs from inside a program: what `tsomon monitor` does, as a library call.
//
//   tsomon::Watcher watcher(R"(
//     [service]
//     store = "findings"
//     [[target]]
//     name = "bank"
//     program = "bank_server"
//     max_overhead = "2%"
//   )", {[](const tsomon::Watcher::Finding& finding) { puts(finding.summary.c_str()); }});
//   if (!watcher.start()) { for (const std::string& error : watcher.errors()) puts(error.c_str()); }
//   ...
//   watcher.stop();
//
// Purpose     The same configuration, budgets, findings and store as of `tsomon monitor` (docs/guide/monitor.md): a text in TOML,
//             so that every key is there, and mistakes have their line and column. `tsomon status`, `top` and `findings`
//             work on its store. A program that feeds events of its own uses <tsomon/monitor.h>.
// The program Its signals, its standard streams and what systemd is told stay its own: nothing is printed, and the threads of
//             the watcher have all signals blocked. `journal` has no meaning here. What a target's `command` writes goes to
//             the program's standard error.
// Callbacks   One at a time, on threads of the watcher; a target waits meanwhile. They must not call start(), stop() or the
//             destructor, nor throw. Nothing that they are given lives longer than the call.
// Errors      start() says false: errors() has each. What goes wrong later is a message.
// Thread-safety: targets(), status() and is_over() may be called from everywhere, also by callbacks; start(), stop() and the
//             destructor by one thread at a time. Any number of watchers, each with a store of its own.
//
// Includes nothing but the C++ library. Installed as <tsomon/watcher.h>; find_package(tsomon) gives the target
// tsomon::watcher to link with.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tsomon {

class Watcher {
 public:
  struct Finding {
    std::string target;  // its name in the configuration
    int pid = 0;
    int64_t time = 0;  // microseconds since 1970
    std::string host;
    std::string build;        // build-id of the executable, in hexadecimal; empty: it has none
    std::string fingerprint;  // `tsomon show` and `tsomon findings` know it by that
    std::string property;
    bool definite = false;
    uint64_t count = 0;   // times in the slice that showed it
    std::string summary;  // a sentence
    std::string json;     // all that is known, one object
  };

  // Since the watcher began; each grows only. At any moment slices = judged + without_threads, and as many slices have a
  // verdict of each property as were judged.
  struct Counters {
    uint64_t slices = 0;
    uint64_t judged = 0;
    uint64_t without_threads = 0;   // nobody took part
    uint64_t without_accesses = 0;  // judged, but nothing was seen that could be wrong
    uint64_t events = 0;            // seen
    uint64_t lost_events = 0;
    uint64_t units = 0;
    uint64_t cut_units = 0;   // open when their slice ended
    uint64_t candidates = 0;  // groups of units that had to be searched
    uint64_t violations = 0;  // each time
    uint64_t suppressed = 0;  // of them
    uint64_t new_findings = 0;
    uint64_t not_stored = 0;  // slices with findings that could not be
    uint64_t refusals = 0;    // of a process to be watched, or of a slice to be judged
    double watched_seconds = 0;
    double elapsed_seconds = 0;   // in which it could be watched
    double process_seconds = 0;   // processor time of the target
    double watching_seconds = 0;  // ... of it for being watched
    double judging_seconds = 0;   // ... of this program for it
    std::map<std::pair<std::string, std::string>, uint64_t> verdicts;  // by property and verdict
    std::map<std::string, uint64_t> inconclusive;                      // by reason
  };

  struct Target {
    std::string name;
    std::string state;  // "waiting", "watching", "refused" or "over"
    std::string why;    // of the last two
    int pid = 0;        // 0: none
    Counters counters;
  };

  struct Callbacks {
    std::function<void(const Finding&)> found;        // each new finding once; may be empty, as
    std::function<void(const std::string&)> message;  // ... this: what a monitor tells its user
  };

  // Nothing happens yet.
  Watcher(std::string configuration, Callbacks callbacks);
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  ~Watcher();  // stops

  // False: the configuration or the store is wrong. Once; after stop() another watcher is needed.
  bool start();
  const std::vector<std::string>& errors() const;
  // Returns when all that is known is stored and counted: within a second. Again: nothing.
  void stop();
  // It was stopped, or no target can come again.
  bool is_over() const;

  std::vector<Target> targets() const;
  // What `tsomon status --output json` says: one object; empty before start().
  std::string status() const;

  // A text as a string of TOML, quotes included, for configurations that are put together.
  static std::string quoted(std::string_view text);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tsomon
