// Runs the instrumented programs of tests/probe/programs and reads what they recorded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <sys/wait.h>

#include "decoders/capture/reader.h"

namespace tsomon::probe_tests {

inline const std::string kPrograms = TSOMON_PROBE_PROGRAMS;

// The compilers that the programs were built with.
inline std::vector<std::string> compilers() {
  std::vector<std::string> found;
  for (const char* name : {"g++", "clang++-14"}) {
    if (std::filesystem::exists(kPrograms + "/" + name + "/basics")) {
      found.emplace_back(name);
    }
  }
  return found;
}

struct Run {
  int status = -1;                       // of the program; 128 + N after signal N
  std::string path;                      // of the capture
  std::map<std::string, uint64_t> said;  // lines "name number" of its output
};

// `program`: name and arguments. `options` follow output= in TSOMON_OPTIONS.
inline Run run(const std::string& compiler, const std::string& program,
               const std::string& options) {
  Run run;
  const std::string name = program.substr(0, program.find(' '));
  run.path = kPrograms + "/" + compiler + "/" + name + ".capture";
  std::filesystem::remove(run.path);
  const std::string command = "TSOMON_OPTIONS='output=" + run.path + options + "' " + kPrograms +
                              "/" + compiler + "/" + program + " >" + run.path + ".out 2>" +
                              run.path + ".log";
  const int status = std::system(("exec env " + command).c_str());
  run.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  std::ifstream output(run.path + ".out");
  std::string key;
  std::string number;
  while (output >> key >> number) {
    run.said[key] = std::strtoull(number.c_str(), nullptr, 0);
  }
  return run;
}

// A whole file; "" when there is none.
inline std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
// What the program and its probe said on standard error.
inline std::string log_of(const Run& run) { return text_of(run.path + ".log"); }

// The capture, intact or not.
inline capture::Capture read_any(const std::string& path) {
  auto capture = capture::read_capture(text_of(path));
  REQUIRE_MESSAGE(capture.has_value(), path);
  return std::move(*capture);
}

inline capture::Capture read(const std::string& path) {
  capture::Capture capture = read_any(path);
  for (const std::string& problem : capture.problems) {
    MESSAGE(problem);
  }
  CHECK(capture.trace.complete);
  return capture;
}

inline std::map<EventKind, int> count_kinds(const Trace& trace) {
  std::map<EventKind, int> count;
  for (const Event& event : trace.events) {
    ++count[event.kind()];
  }
  return count;
}

// A copy or fill; its pieces are accesses that follow one another.
struct Range {
  ThreadId thread = 0;
  EventKind kind = EventKind::kRead;
  uint64_t address = 0;
  uint64_t size = 0;
};
inline std::vector<Range> ranges_of(const Trace& trace) {
  std::vector<Range> ranges;
  for (const Event& event : trace.events) {
    if (!ranges.empty() && ranges.back().thread == event.thread &&
        ranges.back().kind == event.kind() && event.size != 0 &&
        ranges.back().address + ranges.back().size == event.address) {
      ranges.back().size += event.size;
    } else {
      ranges.push_back({event.thread, event.kind(), event.address, event.size});
    }
  }
  return ranges;
}
inline int64_t count_ranges(const std::vector<Range>& ranges, EventKind kind, uint64_t address,
                            uint64_t size) {
  return std::count_if(ranges.begin(), ranges.end(), [&](const Range& range) {
    return range.kind == kind && range.address == address && range.size == size;
  });
}

// What a thread did to some objects, in order, as text: "acq(mutex) fence". Objects are named by
// what the program said; events without an object are fences, waits and unit boundaries.
inline std::string story(const Trace& trace, const std::string& thread, const Run& run,
                         const std::vector<std::string>& objects) {
  static const std::map<EventKind, std::string> kinds = {{EventKind::kRead, "r"},
                                                         {EventKind::kWrite, "w"},
                                                         {EventKind::kReadModifyWrite, "rmw"},
                                                         {EventKind::kFence, "fence"},
                                                         {EventKind::kAcquire, "acq"},
                                                         {EventKind::kRelease, "rel"},
                                                         {EventKind::kAcquireShared, "racq"},
                                                         {EventKind::kReleaseShared, "rrel"},
                                                         {EventKind::kWait, "wait"},
                                                         {EventKind::kSend, "send"},
                                                         {EventKind::kReceive, "receive"},
                                                         {EventKind::kPost, "post"},
                                                         {EventKind::kTake, "take"},
                                                         {EventKind::kCount, "count"},
                                                         {EventKind::kUnitBegin, "begin"},
                                                         {EventKind::kUnitEnd, "end"}};
  const uint32_t id = trace.symbols.threads.find(thread);
  std::string text;
  for (const Event& event : trace.events) {
    if (event.thread != id || kinds.count(event.kind()) == 0) {
      continue;
    }
    std::string word = kinds.at(event.kind());
    constexpr uint32_t kOfObjects = kinds::kAccesses | kind_mask(EventKind::kWait) |
                                    kind_mask(EventKind::kSend) | kind_mask(EventKind::kReceive) |
                                    kind_mask(EventKind::kPost) | kind_mask(EventKind::kTake) |
                                    kind_mask(EventKind::kCount);
    if (is(event, kOfObjects)) {
      const std::string* object = nullptr;
      for (const std::string& name : objects) {
        object = run.said.at(name) == event.address ? &name : object;
      }
      if (object == nullptr) {
        continue;
      }
      word += "(" + *object + ")";
    }
    text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

}  // namespace tsomon::probe_tests
