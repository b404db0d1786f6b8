// Which code accesses what units had in common, against a comparison of all pairs.
#include "monitor/slices/slice_look.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/rounds.h"

using namespace tsomon;

namespace {

struct Access {
  size_t unit = 0;
  uint64_t pc = 0;
  std::set<uint64_t> words;
  bool stores = false;
};
struct Unit {
  uint32_t thread = 0;
  uint64_t pc = 0;
  int64_t begin = 0;
  int64_t end = 0;
  bool labelled = false;
};

struct Made {
  EventBlock block;
  Symbols symbols;
  std::vector<Unit> units;
  std::vector<Access> accesses;

  void add(EventKind kind, uint32_t thread, uint64_t pc, uint64_t address, uint32_t size,
           int64_t lo, int64_t hi) {
    Event event;
    event.set_kind(kind);
    event.thread = thread;
    event.address = address;
    event.size = size;
    event.location = symbols.intern_location(fmt::format("0x{:x}", pc));
    block.add(event, lo, hi);
  }
};

Made random_slice(std::mt19937_64& random, bool labels) {
  Made made;
  struct Open {
    int depth = 0;
    size_t unit = 0;
  };
  std::map<uint32_t, Open> open;
  int64_t time = 0;
  const size_t events = 1 + random() % 40;
  for (size_t i = 0; i < events; ++i) {
    const auto thread = static_cast<uint32_t>(random() % 3);
    const uint64_t pc = 0x1000 + 16 * (random() % 12);
    const int64_t lo = time += static_cast<int64_t>(random() % 3);
    const int64_t hi = lo + static_cast<int64_t>(random() % 4);
    Open& now = open[thread];
    switch (random() % 5) {
      case 0: {
        const bool named = random() % 2 == 0;
        if (now.depth++ == 0) {
          now.unit = made.units.size();
          made.units.push_back({thread, pc, lo, lo, !labels || named});
        }
        made.add(EventKind::kUnitBegin, thread, pc,
                 made.symbols.labels.intern(named ? "ab" : "c;s"), 0, lo, hi);
        break;
      }
      case 1:
        if (now.depth != 0) {
          made.units[now.unit].end = std::max(made.units[now.unit].end, hi);
          --now.depth;
          made.add(EventKind::kUnitEnd, thread, pc, 0, 0, lo, hi);
        }
        break;
      default: {
        if (now.depth == 0) {
          now.unit = made.units.size();
          made.units.push_back({thread, pc, lo, lo, !labels});
        }
        made.units[now.unit].end = std::max(made.units[now.unit].end, hi);
        const EventKind kinds[] = {EventKind::kRead, EventKind::kWrite,
                                   EventKind::kReadModifyWrite};
        const EventKind kind = kinds[random() % 3];
        const uint64_t address = 64 + random() % 40;
        const auto size = static_cast<uint32_t>(1 + random() % 12);
        Access access{now.unit, pc, {}, kind != EventKind::kRead};
        for (uint64_t byte = address; byte < address + size; ++byte) {
          access.words.insert(byte / 8);
        }
        made.accesses.push_back(access);
        made.add(kind, thread, pc, address, size, lo, hi);
      }
    }
  }
  for (const auto& [thread, now] : open) {
    if (now.depth != 0) {
      made.units[now.unit].end = kTimeMax;
    }
  }
  return made;
}

bool meet(const Made& made, const Access& a, const Access& b) {
  const Unit& one = made.units[a.unit];
  const Unit& other = made.units[b.unit];
  return one.thread != other.thread && one.begin <= other.end && other.begin <= one.end &&
         (a.stores || b.stores) && (one.labelled || other.labelled);
}

std::vector<uint64_t> list(const std::set<uint64_t>& values) {
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("which code accesses what units had in common, against all pairs") {
  std::mt19937_64 random(41);
  int met_some = 0;
  const int count = rounds(2000, 20000);
  for (int round = 0; round < count; ++round) {
    const bool labels = random() % 2 == 0;
    const Made made = random_slice(random, labels);
    std::set<uint64_t> words;
    for (const Access& a : made.accesses) {
      for (const Access& b : made.accesses) {
        if (meet(made, a, b)) {
          std::set_intersection(a.words.begin(), a.words.end(), b.words.begin(), b.words.end(),
                                std::inserter(words, words.end()));
        }
      }
    }
    std::set<uint64_t> seen;
    std::set<uint64_t> met;
    std::set<size_t> units;
    for (const Access& access : made.accesses) {
      seen.insert({access.pc, made.units[access.unit].pc});
      if (std::any_of(access.words.begin(), access.words.end(),
                      [&](uint64_t word) { return words.contains(word); })) {
        met.insert({access.pc, made.units[access.unit].pc});
        units.insert(access.unit);
      }
    }
    std::set<uint64_t> met_units;
    for (const Access& access : made.accesses) {
      if (units.contains(access.unit)) {
        met_units.insert({access.pc, made.units[access.unit].pc});
      }
    }
    SliceLooker looker(labels ? std::vector<std::string>{"a*"} : std::vector<std::string>{});
    looker.add(made.block);
    looker.end(made.symbols);
    const SliceLook& look = looker.look();
    INFO(round);
    REQUIRE(look.events == made.block.events.size());
    REQUIRE(look.seen == list(seen));
    REQUIRE(look.met == list(met));
    REQUIRE(look.met_units == list(met_units));
    met_some += met.empty() ? 0 : 1;
  }
  CHECK(met_some > count / 4);
}
