// The small containers and the hash that everything else stands on, against those of the standard library.
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include <doctest/doctest.h>

#include "tests/rounds.h"
#include "tso/support/flat_map.h"
#include "tso/support/interner.h"
#include "tso/support/text_hash.h"

using namespace tsomon;

TEST_CASE("flat map: as a map that remembers the order of insertion, also when it is cleared") {
  std::mt19937_64 random(11);
  const int count = rounds(50, 400);
  for (int round = 0; round < count; ++round) {
    FlatMap<uint64_t, int> map;
    std::unordered_map<uint64_t, int> expected;
    std::vector<uint64_t> order;
    const uint64_t keys = 1 + random() % 200;
    for (int step = 0; step < 300; ++step) {
      // Keys that share their low bits, as addresses do.
      const uint64_t key = (random() % keys) << (round % 3 == 0 ? 32 : 4);
      const int value = static_cast<int>(random() % 1000);
      switch (random() % 8) {
        case 0:
          CHECK(map.contains(key) == expected.contains(key));
          break;
        case 1:
          if (!expected.contains(key)) {
            order.push_back(key);
          }
          map[key] = value;
          expected[key] = value;
          break;
        case 2:
          if (random() % 20 == 0) {
            map.clear();
            expected.clear();
            order.clear();
          } else {
            map.reserve(random() % 64);
          }
          break;
        default: {
          const auto [at, is_new] = map.try_emplace(key, value);
          const auto [other, other_new] = expected.try_emplace(key, value);
          if (other_new) {
            order.push_back(key);
          }
          REQUIRE(is_new == other_new);
          REQUIRE(*at == other->second);
        }
      }
      REQUIRE(map.size() == expected.size());
    }
    REQUIRE(map.entries().size() == order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      REQUIRE(map.entries()[i].key == order[i]);
      REQUIRE(map.entries()[i].value == expected[order[i]]);
      REQUIRE(*map.find(order[i]) == expected[order[i]]);
    }
  }
}

TEST_CASE("interner: ids count from 0 in the order of first appearance, and give the text back") {
  std::mt19937_64 random(12);
  Interner interner;
  std::map<std::string, uint32_t> expected;
  std::vector<std::string> order;
  for (int step = 0; step < 20'000; ++step) {
    std::string text;
    for (uint64_t i = random() % 6; i > 0; --i) {
      text += static_cast<char>(random() % 4);  // empty texts and zeros among them
    }
    const auto known = expected.find(text);
    CHECK(interner.find(text) == (known == expected.end() ? Interner::kNone : known->second));
    if (random() % 2 == 0) {
      if (known == expected.end()) {
        expected.emplace(text, static_cast<uint32_t>(order.size()));
        order.push_back(text);
      }
      REQUIRE(interner.intern(text) == expected[text]);
    }
  }
  REQUIRE(interner.size() == order.size());
  for (uint32_t id = 0; id < interner.size(); ++id) {
    REQUIRE(interner.text(id) == order[id]);
  }
}

TEST_CASE("names of texts stay the same: the hash is XXH3-64") {
  // As `xxhsum -H3` prints them.
  CHECK(hash_name("") == "2d06800538d394c2");
  CHECK(text_hash("") == 0x2d06800538d394c2);
  CHECK(hash_name("a") == "e6c632b61e964e1f");
  CHECK(hash_name("tsomon") != hash_name("tsomoN"));
  CHECK(hash_name(std::string(3, '\0')).size() == 16);
}
