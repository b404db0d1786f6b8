// Schedules as `explore` prints them and `--replay` takes them.
#include <cstdint>
#include <random>
#include <string>

#include <doctest/doctest.h>

#include "monitor/explore/schedule.h"
#include "tests/rounds.h"

using namespace tsomon;
using namespace tsomon::explore;

namespace {

Schedule random_schedule(std::mt19937_64& random) {
  Schedule schedule;
  for (uint64_t i = 1 + random() % 12; i > 0; --i) {
    const auto commit = static_cast<uint8_t>(random() % 2);
    const auto answer = static_cast<uint8_t>(commit == 0 ? random() % 3 : 0);
    const Choice choice{static_cast<uint16_t>(random() % 4), commit, answer};
    schedule.steps.insert(schedule.steps.end(), 1 + random() % 5, choice);
  }
  uint64_t word = random() % 1000;
  for (uint64_t i = random() % 6; i > 0; --i) {
    schedule.words.push_back(word);
    word += 1 + random() % 2;
  }
  for (uint32_t i = static_cast<uint32_t>(random() % 3); i > 0; --i) {
    schedule.origins.push_back(
        {i, static_cast<uint32_t>(random() % 3), static_cast<uint32_t>(random() % 5)});
  }
  for (uint64_t i = random() % 3; i > 0; --i) {
    schedule.parts[random() % 1000] = static_cast<uint8_t>(random());
  }
  return schedule;
}

}  // namespace

TEST_CASE("schedules: the text of any schedule reads as that schedule") {
  std::mt19937_64 random(31);
  for (int round = 0; round < rounds(500, 20'000); ++round) {
    const Schedule schedule = random_schedule(random);
    const std::string text = schedule_text(schedule);
    INFO(text);
    const auto read = parse_schedule(text);
    REQUIRE(read);
    REQUIRE(read->steps == schedule.steps);
    REQUIRE(read->words == schedule.words);
    REQUIRE(read->parts == schedule.parts);
    REQUIRE(read->origins.size() == schedule.origins.size());
    REQUIRE(schedule_text(*read) == text);
  }
}

TEST_CASE("schedules: what is none is refused, and a short text never becomes a long schedule") {
  CHECK(schedule_text({{{0, 0}, {0, 0}, {1, 1}}, {}, {}, {}}) == "0x2,1c");
  for (const std::string text :
       {"", ",", "0,", "x2", "0x0", "0x1000001", "64", "0c1", "0;xyz", "0;1+", "0;1+1000001",
        "0;1;0:0.0", "0;1;1:0", "0;1;;5.100", "0;1;;5", "0 ,1", "0;1;1:0.0;5.1;"}) {
    INFO(text);
    CHECK_FALSE(parse_schedule(text));
  }
  // Any change of a text is refused or another schedule, and ends.
  std::mt19937_64 random(32);
  for (int round = 0; round < rounds(500, 20'000); ++round) {
    std::string text = schedule_text(random_schedule(random));
    text[random() % text.size()] = "0123456789abcx,;:.+"[random() % 19];
    if (const auto read = parse_schedule(text)) {
      CHECK(read->steps.size() < 100'000'000);
    }
  }
}
