#include "tso/model/trace.h"

#include <algorithm>
#include <string>

#include <doctest/doctest.h>

using namespace tsomon;

TEST_CASE("values and long intervals live in the extras") {
  EventBlock block;
  Event event;
  event.set_kind(EventKind::kReadModifyWrite);
  event.size = 8;
  block.add(event, 5, 5);
  block.add(event, 5, 5 + 0xFFFFFFFFLL, 7);
  block.add(event, kTimeMin, kTimeMax, 1, 2);
  block.add(event, -3, -3, std::nullopt, 9);
  block.add(event, 0, 0x100000000LL);

  Trace trace;
  trace.append(block);
  trace.append(block);
  for (size_t half : {size_t{0}, size_t{5}}) {
    CHECK(trace.hi(trace.events[half]) == 5);
    CHECK(!trace.read_value(trace.events[half]));
    CHECK(trace.hi(trace.events[half + 1]) == 5 + 0xFFFFFFFFLL);
    CHECK(trace.read_value(trace.events[half + 1]) == 7);
    CHECK(!trace.write_value(trace.events[half + 1]));
    CHECK(trace.lo(trace.events[half + 2]) == kTimeMin);
    CHECK(trace.hi(trace.events[half + 2]) == kTimeMax);
    CHECK(trace.read_value(trace.events[half + 2]) == 1);
    CHECK(trace.write_value(trace.events[half + 2]) == 2);
    CHECK(trace.hi(trace.events[half + 3]) == -3);
    CHECK(trace.write_value(trace.events[half + 3]) == 9);
    CHECK(trace.hi(trace.events[half + 4]) == 0x100000000LL);
  }
}

TEST_CASE("source locations survive the round trip through their ids") {
  Symbols symbols;
  for (const char* text : {"0", "17", "2147483646", "2147483647", "4294967295", "007", "main.c:3",
                           "", "-4", "99999999999"}) {
    CHECK(symbols.location_text(symbols.intern_location(text)) == text);
  }
  CHECK(symbols.location_text(Event::kNoLocation).empty());
}

TEST_CASE("places of one line have one text") {
  Symbols symbols;
  const uint32_t line = symbols.intern_location("f a.cpp:7");
  const uint32_t first = symbols.intern_place("f a.cpp:7", "3/9:2");
  const uint32_t second = symbols.intern_place("f a.cpp:7", "12");
  CHECK(first != second);
  CHECK(symbols.intern_place("f a.cpp:7", "12") == second);
  CHECK(symbols.intern_place("f a.cpp:7", "") == line);
  CHECK(symbols.intern_place("7", "12") == symbols.intern_location("7"));
  for (const uint32_t place : {line, first, second}) {
    CHECK(symbols.location_text(place) == "f a.cpp:7");
    CHECK(symbols.without_place(place) == line);
  }
  CHECK(symbols.place_text(first) == "f a.cpp:7:3/9:2");
  CHECK(symbols.place_text(second, '@') == "f a.cpp:7@12");
  CHECK(symbols.place_text(line) == "f a.cpp:7");
  CHECK(symbols.without_place(Event::kNoLocation) == Event::kNoLocation);
  CHECK(symbols.location_text(symbols.intern_location("a\x1f"
                                                      "b")) == "a_b");
  const auto same = [](std::string a, std::string b) {
    std::replace(a.begin(), a.end(), '@', Symbols::kWithin);
    std::replace(b.begin(), b.end(), '@', Symbols::kWithin);
    return same_line(a, b);
  };
  CHECK(same("f a.cpp:7@3/9:2", "f a.cpp:7@4/9:2"));
  CHECK(same("f a.cpp:7@3", "f a.cpp:7@40"));
  CHECK(same("f a.cpp:7", "f a.cpp:7"));
  CHECK_FALSE(same("f a.cpp:7@3/9:2", "f a.cpp:7@3/9:8"));
  CHECK_FALSE(same("f a.cpp:7@3", "f a.cpp:8@3"));
}

TEST_CASE("interned strings keep their ids while the table grows") {
  Interner interner;
  for (uint32_t i = 0; i < 10000; ++i) {
    CHECK(interner.intern("name" + std::to_string(i)) == i);
  }
  for (uint32_t i = 0; i < 10000; ++i) {
    CHECK(interner.find("name" + std::to_string(i)) == i);
    CHECK(interner.text(i) == "name" + std::to_string(i));
  }
  CHECK(interner.find("other") == Interner::kNone);
}

TEST_CASE("labels carry the atomic sets of a unit") {
  CHECK(unit_label("take;head,tail") == "take");
  CHECK(unit_label("take") == "take");
  CHECK(unit_sets("take").empty());
  CHECK(unit_sets("take;head,tail") == std::vector<std::string_view>{"head", "tail"});
}
