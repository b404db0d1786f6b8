// Captures made by tests, and events as text.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include "decoders/capture/writer.h"
#include "tso/model/cancelled_units.h"
#include "tso/model/trace.h"

namespace tsomon::capture {

// A recording in a temporary file; bytes() reads it back.
class Recording {
 public:
  explicit Recording(Writer::Options options = {}) {
    const auto folder = std::filesystem::temp_directory_path() / "tsomon-capture-XXXXXX";
    path_ = folder.string();
    const int fd = mkstemp(path_.data());
    REQUIRE(fd >= 0);
    ::close(fd);
    const std::string arguments("prog\0-x\0", 8);
    options.tsc_hz = options.tsc_hz == 0 ? 2000000000 : options.tsc_hz;
    options.command_line = arguments.data();
    options.command_line_size = arguments.size();
    REQUIRE(writer.open(path_.c_str(), options) == 0);
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording() { std::filesystem::remove(path_); }

  void events(uint32_t thread, uint64_t sequence, const std::string& payload, bool raw = false) {
    REQUIRE((raw ? writer.write_raw(ChunkType::kEvents, thread, sequence, payload.data(),
                                    payload.size())
                 : writer.write(ChunkType::kEvents, thread, sequence, payload.data(),
                                payload.size())) == 0);
    EndEntry& end = ends_[thread];
    end.thread = thread;
    end.chunks = std::max(end.chunks, sequence + 1);
    end.bytes += payload.size();
  }
  void text(ChunkType type, uint32_t id, const std::string& text) {
    char buffer[256];
    const char* end = put_text(buffer, buffer + sizeof buffer, id, text.data(),
                               static_cast<uint32_t>(text.size()));
    REQUIRE(end != nullptr);
    REQUIRE(writer.write_raw(type, kNoThread, 0, buffer, static_cast<size_t>(end - buffer)) == 0);
  }
  void trailer(uint64_t lost = 0, uint64_t cut = 0) {
    std::vector<EndEntry> entries;
    for (auto [thread, entry] : ends_) {
      entry.lost = lost;
      entry.cut = cut;
      entries.push_back(entry);
    }
    REQUIRE(writer.write_raw(ChunkType::kEnd, kNoThread, 0, entries.data(),
                             entries.size() * sizeof(EndEntry)) == 0);
  }
  std::string bytes() {
    writer.close();
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  Writer writer;

 private:
  std::string path_;
  std::map<uint32_t, EndEntry> ends_;
};

// Without its interval.
inline std::string describe_access(const EventBlock& block, const Symbols& symbols,
                                   const Event& event) {
  static const char* const kinds[kKindsWithCancels] = {"r",
                                                       "w",
                                                       "rmw",
                                                       "fence",
                                                       "acq",
                                                       "rel",
                                                       "racq",
                                                       "rrel",
                                                       "fork",
                                                       "join",
                                                       "begin",
                                                       "end",
                                                       "branch",
                                                       "wait",
                                                       "call",
                                                       "ret",
                                                       "alloc",
                                                       "free",
                                                       "try",
                                                       "notify",
                                                       "send",
                                                       "receive",
                                                       "request",
                                                       "post",
                                                       "take",
                                                       "count",
                                                       "destroy",
                                                       "cancel",
                                                       "cancelled begin"};
  std::string text(symbols.threads.text(event.thread));
  text += fmt::format(" {}", kinds[static_cast<int>(event.kind())]);
  if (event.kind() == EventKind::kUnitBegin) {
    text += fmt::format(" {}", symbols.labels.text(static_cast<uint32_t>(event.address)));
  } else if (event.kind() == EventKind::kFork || event.kind() == EventKind::kJoin) {
    text += fmt::format(" {}", symbols.threads.text(static_cast<uint32_t>(event.address)));
  } else if (event.size != 0 || event.address != 0) {
    text += fmt::format(" {}", symbols.access_text(event));
  }
  if (const auto value = block.read_value(event)) {
    text += fmt::format(" read {}", *value);
  }
  if (const auto value = block.write_value(event)) {
    text += fmt::format(" wrote {}", *value);
  }
  return text;
}

inline std::string describe(const Trace& trace, const Event& event) {
  const auto time = [](int64_t t) {
    return t == kTimeMin ? std::string("-inf") : t == kTimeMax ? "inf" : std::to_string(t);
  };
  return fmt::format("{} [{},{}]", describe_access(trace, trace.symbols, event),
                     time(trace.lo(event)), time(trace.hi(event)));
}

inline std::vector<std::string> describe(const Trace& trace) {
  std::vector<std::string> lines;
  for (const Event& event : trace.events) {
    lines.push_back(describe(trace, event));
  }
  return lines;
}

}  // namespace tsomon::capture
