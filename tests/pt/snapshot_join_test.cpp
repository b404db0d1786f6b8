// Where copies of a trace overlap, against the definition, and on a trace that is known.

#include "decoders/pt/packets/snapshot_join.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>

#include <doctest/doctest.h>

using namespace tsomon::pt;

namespace {

std::string psb_group(uint8_t time) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) {
    bytes += "\x02\x82";
  }
  bytes += '\x19';  // TSC
  bytes += static_cast<char>(time);
  bytes += std::string("\x11\x22\x33\0\0\0", 6);
  return bytes + "\x02\x23";  // PSBEND
}

// By the definition: the last place where all that both have agrees.
size_t naive_end(const std::string& earlier, const std::string& next) {
  for (size_t end = next.size(); end != 0; --end) {
    const size_t common = std::min(end, earlier.size());
    if (earlier.compare(earlier.size() - common, common, next, end - common, common) == 0) {
      return end;
    }
  }
  return 0;
}

}  // namespace

TEST_CASE("the overlap of two snapshots is the longest one") {
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    const auto text = [&] {
      std::string made;
      for (size_t size = random() % 12; size != 0; --size) {
        made += static_cast<char>(1 + random() % 2);
      }
      return made;
    };
    const std::string earlier = text();
    const std::string next = text();
    const SnapshotJoin join = join_snapshots(earlier, next);
    CHECK(join.from == (earlier.empty() ? 0 : naive_end(earlier, next)));
    CHECK(join.padding == 0);
    CHECK_FALSE(join.certain);
  }
}

TEST_CASE("only a time that both have makes an overlap certain") {
  // Every stretch between two times is the same: what repeats itself proves nothing.
  std::string trace;
  for (uint8_t time = 1; time < 40; ++time) {
    trace += psb_group(time) + std::string(60, '\x06') + std::string(1 + time % 3, '\0');
  }
  std::mt19937 random(8);
  size_t certain = 0;
  for (int round = 0; round < 3000; ++round) {
    const auto piece = [&](size_t end, size_t size) {
      return std::pair(end - std::min(end, size), end);
    };
    const auto [begin, end] = piece(1 + random() % trace.size(), 1 + random() % 400);
    const auto [next_begin, next_end] =
        piece(end + random() % (trace.size() - end + 1), 1 + random() % 400);
    std::string earlier = trace.substr(begin, end - begin);
    earlier.resize((earlier.size() + 7) / 8 * 8);  // as the kernel fills it
    const std::string next = trace.substr(next_begin, next_end - next_begin);
    const SnapshotJoin join = join_snapshots(earlier, next);
    // No byte comes twice.
    CHECK(next_begin + join.from >= std::min(end, next_end));
    if (join.certain) {
      ++certain;
      // Where the trace goes on with zeros, they may have been taken from the padding.
      const std::string joined =
          earlier.substr(0, earlier.size() - join.padding) + next.substr(join.from);
      CHECK(joined == trace.substr(begin, next_end - begin));
    }
  }
  CHECK(certain > 200);
}

TEST_CASE("snapshots without a single overlap, and hostile ones, take time in proportion") {
  // Every second byte begins a PSB.
  std::string psbs;
  for (int i = 0; i < 30000; ++i) {
    psbs += "\x02\x82";
  }
  CHECK_FALSE(join_snapshots(psbs, psbs).certain);
  CHECK(join_snapshots(psbs, psbs).from == psbs.size());
  CHECK(join_snapshots(std::string(60000, '\0'), std::string(60000, '\0')).from == 60000);
  CHECK(join_snapshots("", "abc").from == 0);
  CHECK(join_snapshots("abc", "").from == 0);
}
