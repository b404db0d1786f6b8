// Near misses, against a plain recursive definition of the distance.
#include "monitor/probe/nearest.h"

#include <algorithm>
#include <random>
#include <string>

#include <doctest/doctest.h>

using namespace tsomon;

namespace {

uint32_t distance(const std::string& a, const std::string& b) {
  if (a.empty()) {
    return static_cast<uint32_t>(b.size());
  }
  const bool any = a.back() == '*';
  const std::string a1 = a.substr(0, a.size() - 1);
  if (b.empty()) {
    return distance(a1, b) + (any ? 0 : 1);
  }
  const std::string b1 = b.substr(0, b.size() - 1);
  uint32_t least = std::min({distance(a1, b) + (any ? 0 : 1), distance(a, b1) + (any ? 0 : 1),
                             distance(a1, b1) + (any || a.back() == b.back() ? 0 : 1)});
  if (a.size() > 1 && b.size() > 1 && a.back() == b[b.size() - 2] && a[a.size() - 2] == b.back()) {
    least = std::min(least, distance(a.substr(0, a.size() - 2), b.substr(0, b.size() - 2)) + 1);
  }
  return least;
}

std::string nearest(const std::string& written, const std::vector<std::string>& words) {
  Nearest nearest(written.c_str());
  for (const std::string& word : words) {
    nearest.offer(word.c_str());
  }
  return nearest.best();
}

}  // namespace

TEST_CASE("the word that was meant is found, and none where none is near") {
  const std::vector<std::string> words = {"attach", "check", "doctor", "record", "run"};
  CHECK(nearest("chekc", words) == "check");
  CHECK(nearest("recrod", words) == "record");
  CHECK(nearest("frobnicate", words).empty());
  CHECK(nearest("", words).empty());
  CHECK(nearest("x", words).empty());
  CHECK(nearest("*Acount::*", {"Account::deposit", "main"}) == "Account::deposit");
  CHECK(nearest(std::string(100, 'a'), {std::string(100, 'a')}).empty());
  CHECK(nearest("aaaa", {std::string(300, 'a')}).empty());
}

TEST_CASE("of random words the nearest is one with the least distance") {
  std::mt19937 random(20);
  const auto word = [&](const char* letters, uint32_t kinds, uint32_t most) {
    std::string text;
    for (uint32_t left = random() % (most + 1); left != 0; --left) {
      text += letters[random() % kinds];
    }
    return text;
  };
  for (int round = 0; round != 2000; ++round) {
    const std::string written = word("ab*", 3, 6);
    const std::vector<std::string> words = {word("ab", 2, 6), word("ab", 2, 6), word("ab", 2, 6)};
    const auto letters = static_cast<uint32_t>(
        std::count_if(written.begin(), written.end(), [](char c) { return c != '*'; }));
    uint32_t least = std::min(2 + letters / 4, letters);  // what is less counts
    std::string best;
    for (const std::string& each : words) {
      if (!each.empty() && distance(written, each) < least) {
        least = distance(written, each);
        best = each;
      }
    }
    CHECK(nearest(written, words) == best);
  }
}
