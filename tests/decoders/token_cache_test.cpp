// The cache before the table of names against a map.
#include "decoders/std/token_cache.h"

#include <map>
#include <random>
#include <string>

#include <doctest/doctest.h>

using tsomon::std_trace::kShortToken;
using tsomon::std_trace::TokenCache;

TEST_CASE("a token cache gives the id that was found, and finds few again once it has grown") {
  constexpr uint32_t kTokens = 30'000;
  std::mt19937 random(1);
  uint64_t looked_up[2] = {0, 0};
  for (const unsigned most_bits : {0U, 15U}) {
    TokenCache cache(6, most_bits);
    std::map<std::string, uint32_t> ids;
    uint64_t misses = 0;
    for (int i = 0; i < 400'000; ++i) {
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
    looked_up[most_bits == 0 ? 0 : 1] = misses;
  }
  CHECK(looked_up[0] > 350'000);
  CHECK(looked_up[1] < 200'000);
}
