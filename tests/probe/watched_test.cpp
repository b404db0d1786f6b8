// accesses=sets: the recording of the declared memory is the whole recording without the rest.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/probe/recorded_program.h"

using namespace tsomon;
using namespace tsomon::probe_tests;

namespace {

constexpr uint64_t kGranule = 8;

bool is_memory(const Event& event) {
  return event.kind() == EventKind::kRead || event.kind() == EventKind::kWrite ||
         event.kind() == EventKind::kReadModifyWrite;
}

// Whether some member of a set lies in the byte's granule.
bool watches(const Trace& trace, uint64_t address) {
  const uint64_t granule = address / kGranule;
  return std::any_of(
      trace.symbols.sets.begin(), trace.symbols.sets.end(), [&](const AtomicSet& set) {
        return std::any_of(set.members.begin(), set.members.end(), [&](const LocationKey& member) {
          return member.address / kGranule <= granule &&
                 granule <= (member.address + member.size - 1) / kGranule;
        });
      });
}

std::string value_text(std::optional<uint64_t> value) {
  return value ? fmt::format("={}", *value) : std::string();
}

// What a thread did to the watched bytes and to its store buffer, byte by byte. Locked operations
// and values are told whole.
std::vector<std::string> watched_story(const Trace& trace, ThreadId thread, const Run& run) {
  const uint64_t arena = run.said.at("arena");
  std::vector<std::string> story;
  for (const Event& event : trace.events) {
    if (event.thread != thread) {
      continue;
    }
    if (event.kind() == EventKind::kFence) {
      story.emplace_back("fence");
    }
    const uint64_t length = 8 * 4096;
    if (!is_memory(event) || event.address - arena >= length) {
      continue;
    }
    bool any = false;
    for (uint64_t at = event.address; at < event.address + event.size; ++at) {
      any = any || watches(trace, at);
    }
    if (event.kind() == EventKind::kReadModifyWrite) {
      story.push_back(any ? fmt::format("rmw {}+{}{}{}", event.address - arena, event.size,
                                        value_text(trace.read_value(event)),
                                        value_text(trace.write_value(event)))
                          : std::string("fence"));
      continue;
    }
    for (uint64_t at = event.address; any && at < event.address + event.size; ++at) {
      if (watches(trace, at)) {
        story.push_back(fmt::format("{} {}{}{}", event.kind() == EventKind::kRead ? "r" : "w",
                                    at - arena, value_text(trace.read_value(event)),
                                    value_text(trace.write_value(event))));
      }
    }
  }
  return story;
}

int64_t count_of(const Trace& trace, EventKind kind, uint64_t address) {
  return std::count_if(trace.events.begin(), trace.events.end(), [&](const Event& event) {
    return event.kind() == kind && event.address == address;
  });
}

int64_t accesses_to(const Trace& trace, uint64_t address) {
  return std::count_if(trace.events.begin(), trace.events.end(), [&](const Event& event) {
    return is_memory(event) && event.address == address;
  });
}

}  // namespace

TEST_CASE("of the declared memory everything is recorded, of other memory the fences") {
  for (const std::string& compiler : compilers()) {
    for (const char* options : {"", ":share=0", ":stamp_every=1"}) {
      CAPTURE(compiler);
      CAPTURE(options);
      const Run all = run(compiler, "watched", options);
      REQUIRE(all.status == 0);
      const Trace whole = read(all.path).trace;
      const Run chosen = run(compiler, "watched", std::string(options) + ":accesses=sets");
      REQUIRE(chosen.status == 0);
      const Trace part = read(chosen.path).trace;
      CHECK_FALSE(whole.selection.any());
      CHECK(part.selection.only_sets);
      CHECK(part.events.size() < whole.events.size());
      for (ThreadId thread = 0; thread < 2; ++thread) {
        CAPTURE(thread);
        const auto expected = watched_story(whole, thread, all);
        const auto found = watched_story(part, thread, chosen);
        CHECK(expected.size() > 4000);
        REQUIRE(found.size() == expected.size());
        for (size_t i = 0; i < found.size(); ++i) {
          REQUIRE(found[i] == expected[i]);
        }
      }
      for (const Event& event : part.events) {
        const bool outside = is_memory(event) && event.size != 0;
        if (outside) {
          // Of 16-byte atomics one half is enough.
          REQUIRE((watches(part, event.address) || watches(part, event.address + event.size - 1)));
        }
      }
      // Synchronisation is recorded wherever it is.
      CHECK(count_of(part, EventKind::kPost, chosen.said.at("semaphore")) == 2);
      CHECK(count_of(part, EventKind::kSend, chosen.said.at("once")) == 1);
      CHECK(count_of(part, EventKind::kReceive, chosen.said.at("once")) == 2);
    }
  }
}

TEST_CASE("a declaration drains the stores that were not recorded") {
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    const Run result = run(compiler, "watched late", ":accesses=sets");
    REQUIRE(result.status == 0);
    const Trace trace = read(result.path).trace;
    const uint64_t late = result.said.at("arena") + 7 * 4096;
    // Not the store before it, and one fence although it is said twice.
    CHECK(accesses_to(trace, late) == 1);
    std::vector<EventKind> last;
    for (const Event& event : trace.events) {
      if (event.thread == 0 && (is_memory(event) || event.kind() == EventKind::kFence)) {
        last.push_back(event.kind());
      }
    }
    REQUIRE(last.size() > 2);
    CHECK(last[last.size() - 1] == EventKind::kRead);
    CHECK(last[last.size() - 2] == EventKind::kFence);
    CHECK(std::count(last.begin(), last.end(), EventKind::kFence) >
          std::count(last.begin(), last.end() - 2, EventKind::kFence));
  }
}

TEST_CASE("outside of units plain loads are left out, and nothing else") {
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    const Run all = run(compiler, "watched late", "");
    REQUIRE(all.status == 0);
    const Trace whole = read(all.path).trace;
    const Run chosen = run(compiler, "watched late", ":outside=stores");
    REQUIRE(chosen.status == 0);
    const Trace part = read(chosen.path).trace;
    CHECK(part.selection.stores_outside);
    CHECK_FALSE(part.selection.only_sets);
    // A store, then a load: the one is there, the other is not.
    const uint64_t at = 7 * 4096;
    CHECK(accesses_to(whole, all.said.at("arena") + at) == 2);
    REQUIRE(accesses_to(part, chosen.said.at("arena") + at) == 1);
    for (const Event& event : part.events) {
      if (event.address == chosen.said.at("arena") + at && is_memory(event)) {
        CHECK(event.kind() == EventKind::kWrite);
      }
    }
    // The second thread does all its work in a unit.
    CHECK(watched_story(part, 1, chosen) == watched_story(whole, 1, all));
  }
}

TEST_CASE("of a range with too many parts the rest is lost, not forgotten") {
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    const Run result = run(compiler, "watched many", ":accesses=sets");
    REQUIRE(result.status == 0);
    const Trace trace = read_any(result.path).trace;
    CHECK_FALSE(trace.complete);
    CHECK(trace.lost_events == 1);
    const uint64_t many = result.said.at("arena") + 7 * 4096;
    CHECK(accesses_to(trace, many) == 1);
    CHECK(accesses_to(trace, many + 16 * 99) == 0);
  }
}

TEST_CASE("a global variable that is named is watched as a whole") {
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    const Run all = run(compiler, "watched", ":set=*::arena");
    REQUIRE(all.status == 0);
    const Trace whole = read(all.path).trace;
    const Run chosen = run(compiler, "watched", ":set=*::arena:accesses=sets");
    REQUIRE(chosen.status == 0);
    const Trace part = read(chosen.path).trace;
    const auto named = std::find_if(part.symbols.sets.begin(), part.symbols.sets.end(),
                                    [](const AtomicSet& set) { return set.name == "*::arena"; });
    REQUIRE(named != part.symbols.sets.end());
    REQUIRE(named->members.size() == 1);
    CHECK(named->members[0] == LocationKey{chosen.said.at("arena"), 8 * 4096});
    for (ThreadId thread = 0; thread < 2; ++thread) {
      CHECK(watched_story(part, thread, chosen) == watched_story(whole, thread, all));
    }
    CHECK(count_of(part, EventKind::kPost, chosen.said.at("semaphore")) == 2);
  }
}

TEST_CASE("objects and declared sets are not chosen together") {
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    CHECK(run(compiler, "watched", ":accesses=sets:objects=4K").status == 2);
    CHECK(run(compiler, "watched", ":accesses=some").status == 2);
  }
}
