#include "tests/tso/mini_trace.h"

#include <charconv>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "tso/model/cancelled_units.h"
#include "tso/support/result.h"

namespace tsomon::testing {
namespace {

std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end != text.data() ? std::optional(value) : std::nullopt;
}

class Builder {
 public:
  Trace build(std::string_view text) {
    std::istringstream words{std::string(text)};
    for (std::string word; words >> word;) {
      if (const size_t colon = word.find(':'); colon != std::string::npos) {
        thread_ = trace_.symbols.threads.intern(word.substr(0, colon));
        word = word.substr(colon + 1);
      }
      for (; !word.empty() && word.front() == '['; word.erase(0, 1)) {
        Event begin = event(EventKind::kUnitBegin);
        begin.address = trace_.symbols.labels.intern("unit");
        add(begin);
      }
      const std::string_view rest = word;
      const size_t length = rest.find_last_not_of(']') + 1;
      if (length > 0) {
        access(rest.substr(0, length));
      }
      for (size_t i = length; i < rest.size(); ++i) {
        add(event(EventKind::kUnitEnd));
      }
    }
    return std::move(trace_);
  }

 private:
  Event event(EventKind kind) const {
    Event result;
    result.set_kind(kind);
    result.thread = thread_;
    return result;
  }
  void add(const Event& event, std::optional<uint64_t> read = {},
           std::optional<uint64_t> written = {}) {
    const auto at = static_cast<int64_t>(trace_.events.size());
    trace_.add(event, at, at, read, written);
  }

  void access(std::string_view word) {
    static const std::map<std::string_view, EventKind> kinds = {{"R", EventKind::kRead},
                                                                {"W", EventKind::kWrite},
                                                                {"U", EventKind::kReadModifyWrite},
                                                                {"F", EventKind::kFence},
                                                                {"acq", EventKind::kAcquire},
                                                                {"rel", EventKind::kRelease},
                                                                {"racq", EventKind::kAcquireShared},
                                                                {"rrel", EventKind::kReleaseShared},
                                                                {"fork", EventKind::kFork},
                                                                {"join", EventKind::kJoin},
                                                                {"send", EventKind::kSend},
                                                                {"receive", EventKind::kReceive},
                                                                {"post", EventKind::kPost},
                                                                {"take", EventKind::kTake},
                                                                {"count", EventKind::kCount},
                                                                {"destroy", EventKind::kDestroy}};
    const size_t open = word.find('(');
    const auto kind = kinds.find(word.substr(0, open));
    TSOMON_CHECK(kind != kinds.end(), "unknown operation in a test's trace");
    Event result = event(kind->second);
    if (open == std::string_view::npos) {
      add(result);
      return;
    }
    const std::string_view inside = word.substr(open + 1, word.find(')') - open - 1);
    const size_t equals = inside.find('=');
    const std::string_view name = inside.substr(0, equals);
    result.address = kind->second == EventKind::kFork || kind->second == EventKind::kJoin
                         ? trace_.symbols.threads.intern(name)
                         : trace_.symbols.names.intern(name);
    if (equals == std::string_view::npos) {
      add(result);
      return;
    }
    const std::string_view values = inside.substr(equals + 1);
    const size_t comma = values.find(',');
    if (kind->second == EventKind::kReadModifyWrite) {
      add(result, number(values), number(values.substr(comma + 1)));
    } else if (kind->second == EventKind::kRead) {
      add(result, number(values));
    } else {
      add(result, {}, number(values));
    }
  }

  Trace trace_;
  ThreadId thread_ = 0;
};

}  // namespace

Trace mini_trace(std::string_view text) { return Builder().build(text); }

std::string show(const Trace& trace) {
  static const char* const names[kKindsWithCancels] = {"r",
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
  std::string text;
  for (const Event& event : trace.events) {
    text += fmt::format("T{}|{}({})|{}..{}", event.thread, names[static_cast<int>(event.kind())],
                        trace.symbols.access_text(event), trace.lo(event), trace.hi(event));
    if (const auto value = trace.read_value(event)) {
      text += fmt::format(" read {}", *value);
    }
    if (const auto value = trace.write_value(event)) {
      text += fmt::format(" wrote {}", *value);
    }
    text += "\n";
  }
  return text;
}

}  // namespace tsomon::testing
