// The cache before the table of names against a map.
#include "decoders/std/token_cache.h"

#include <map>
#include <random>
#include <string>

#include <doctest/doctest.h>

using tsomon::std_trace::kShortToken;
using tsomon::std_trace::TokenCache;

TEST_CASE("a token cache gives the id that was found, and asks less often than it is asked") {
  constexpr uint32_t kTokens = 100;
  constexpr int kLookups = 100'000;
  std::mt19937 random(1);
  TokenCache cache(6);
  std::map<std::string, uint32_t> ids;
  int misses = 0;
  for (int i = 0; i < kLookups; ++i) {
    std::string token = "x" + std::to_string(random() % kTokens);
    if (random() % 50 == 0) {
      token += "_a_name_that_is_too_long";
    }
    const size_t length = token.size();
    token.resize(length + kShortToken);  // 16 bytes from its start are readable
    const std::string name = token.substr(0, length);
    const uint32_t id = cache.get(token.data(), length, [&] {
      ++misses;
      return ids.try_emplace(name, static_cast<uint32_t>(ids.size())).first->second;
    });
    REQUIRE(ids.count(name) == 1);
    REQUIRE(id == ids[name]);
  }
  CHECK(misses > kLookups / 50);
  CHECK(misses < kLookups * 3 / 4);
}
