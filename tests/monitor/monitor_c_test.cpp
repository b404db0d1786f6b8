// The monitor's C interface: what it refuses, and that nothing that is refused goes unsaid. Programs in C that use it:
// tests/install.
#include "monitor/live/monitor_c.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

namespace {

struct Found {
  std::vector<std::string> texts;
  std::vector<nlohmann::json> objects;
};

void keep(const tsomon_monitor_finding* finding, void* user) {
  auto* const found = static_cast<Found*>(user);
  found->texts.emplace_back(finding->text);
  found->objects.push_back(nlohmann::json::parse(finding->json));
}

tsomon_monitor_summary finished(tsomon_monitor* monitor) {
  tsomon_monitor_summary summary;
  REQUIRE(tsomon_monitor_finish(monitor, &summary, sizeof summary) == TSOMON_MONITOR_OK);
  CHECK(nlohmann::json::parse(summary.json)["complete"].get<bool>() == (summary.complete == 1));
  return summary;
}

// A unit of two accesses.
void add_unit(tsomon_monitor_thread* thread, const int* value) {
  CHECK(tsomon_monitor_begin(thread, "unit") == TSOMON_MONITOR_OK);
  CHECK(tsomon_monitor_read(thread, value, sizeof *value, 0) == TSOMON_MONITOR_OK);
  CHECK(tsomon_monitor_write(thread, value, sizeof *value, 0) == TSOMON_MONITOR_OK);
  CHECK(tsomon_monitor_end(thread) == TSOMON_MONITOR_OK);
  CHECK(tsomon_monitor_fence(thread) == TSOMON_MONITOR_OK);
}

}  // namespace

TEST_CASE("C: a lost update is reported, and the summary counts it") {
  Found found;
  tsomon_monitor* const monitor = tsomon_monitor_new(nullptr, keep, &found);
  REQUIRE(monitor != nullptr);
  const int value = 0;
  const uint32_t label = tsomon_monitor_label(monitor, "add");
  const uint32_t location = tsomon_monitor_location(monitor, "add a.c:7");
  CHECK(location != 0);
  tsomon_monitor_thread* const threads[] = {tsomon_monitor_open(monitor, "one"),
                                            tsomon_monitor_open(monitor, "two")};
  for (tsomon_monitor_thread* const thread : threads) {
    REQUIRE(thread != nullptr);
    CHECK(tsomon_monitor_begin_label(thread, label) == TSOMON_MONITOR_OK);
    CHECK(tsomon_monitor_read(thread, &value, sizeof value, location) == TSOMON_MONITOR_OK);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(1));  // more than any clock's margin
  for (tsomon_monitor_thread* const thread : threads) {
    CHECK(tsomon_monitor_write(thread, &value, sizeof value, location) == TSOMON_MONITOR_OK);
    CHECK(tsomon_monitor_end(thread) == TSOMON_MONITOR_OK);
    CHECK(tsomon_monitor_fence(thread) == TSOMON_MONITOR_OK);
    tsomon_monitor_close(thread);
  }
  const tsomon_monitor_summary summary = finished(monitor);
  CHECK(summary.verdict == TSOMON_MONITOR_DEFINITE);
  CHECK(summary.complete == 1);
  CHECK(summary.findings == 1);
  CHECK(summary.accesses == 4);
  CHECK(summary.larger_units == 2);
  REQUIRE(found.texts.size() == 1);
  CHECK(found.texts[0].find("unit add") != std::string::npos);
  CHECK(found.objects[0]["accesses"][0]["location"] == "add a.c:7");
  // Again: the same; an older program has a shorter one.
  tsomon_monitor_summary again = {};
  CHECK(tsomon_monitor_finish(monitor, &again, offsetof(tsomon_monitor_summary, units)) ==
        TSOMON_MONITOR_OK);
  CHECK(again.events == summary.events);
  CHECK(again.units == 0);
  CHECK(tsomon_monitor_open(monitor, "late") == nullptr);
  CHECK(std::string(tsomon_monitor_error()).find("finished") != std::string::npos);
  CHECK(tsomon_monitor_free(monitor) == TSOMON_MONITOR_OK);
}

TEST_CASE("C: a monitor with open threads is neither finished nor freed") {
  tsomon_monitor* const monitor = tsomon_monitor_new(nullptr, nullptr, nullptr);
  tsomon_monitor_thread* const thread = tsomon_monitor_open(monitor, "T");
  const int value = 0;
  add_unit(thread, &value);
  CHECK(tsomon_monitor_finish(monitor, nullptr, 0) == TSOMON_MONITOR_BUSY);
  CHECK(tsomon_monitor_free(monitor) == TSOMON_MONITOR_BUSY);
  CHECK(std::string(tsomon_monitor_error()).find("tsomon_monitor_close") != std::string::npos);
  tsomon_monitor_close(thread);
  const tsomon_monitor_summary summary = finished(monitor);
  CHECK(summary.verdict == TSOMON_MONITOR_CLEAN);
  CHECK(summary.complete == 1);
  CHECK(tsomon_monitor_free(monitor) == TSOMON_MONITOR_OK);
}

TEST_CASE("C: an event that is refused is missing in the summary") {
  const int value = 0;
  const auto refused = [&](const auto& event) {
    tsomon_monitor* const monitor = tsomon_monitor_new(nullptr, nullptr, nullptr);
    tsomon_monitor_thread* const thread = tsomon_monitor_open(monitor, "T");
    add_unit(thread, &value);
    CHECK(event(thread) == TSOMON_MONITOR_BAD_ARGUMENT);
    CHECK(std::string(tsomon_monitor_error()) != "");
    tsomon_monitor_close(thread);
    const tsomon_monitor_summary summary = finished(monitor);
    CHECK(summary.verdict == TSOMON_MONITOR_INCONCLUSIVE);
    CHECK(summary.complete == 0);
    CHECK(std::string(summary.why) != "");
    CHECK(tsomon_monitor_free(monitor) == TSOMON_MONITOR_OK);
  };
  refused([&](tsomon_monitor_thread* thread) { return tsomon_monitor_read(thread, &value, 0, 0); });
  refused([&](tsomon_monitor_thread* thread) {
    return tsomon_monitor_write_between(thread, &value, size_t{1} << 24, 0, 1, 2);
  });
  refused([](tsomon_monitor_thread* thread) { return tsomon_monitor_begin(thread, nullptr); });
  refused([](tsomon_monitor_thread* thread) {
    return tsomon_monitor_begin_label(thread, tsomon_monitor_label(nullptr, "u"));
  });
  refused([](tsomon_monitor_thread* thread) { return tsomon_monitor_fork(thread, nullptr); });
}

TEST_CASE("C: nothing where something is needed is refused") {
  CHECK(tsomon_monitor_finish(nullptr, nullptr, 0) == TSOMON_MONITOR_BAD_ARGUMENT);
  CHECK(tsomon_monitor_free(nullptr) == TSOMON_MONITOR_OK);
  CHECK(tsomon_monitor_open(nullptr, "T") == nullptr);
  CHECK(tsomon_monitor_location(nullptr, "x") == 0);
  CHECK(tsomon_monitor_atomic_set(nullptr, "s", nullptr, 1) == TSOMON_MONITOR_BAD_ARGUMENT);
  CHECK(tsomon_monitor_id(nullptr) == UINT32_MAX);
  CHECK(tsomon_monitor_fence(nullptr) == TSOMON_MONITOR_BAD_ARGUMENT);
  tsomon_monitor_close(nullptr);
  tsomon_monitor_options options = TSOMON_MONITOR_OPTIONS;
  options.size = 3;
  CHECK(tsomon_monitor_new(&options, nullptr, nullptr) == nullptr);
  options.size = sizeof options + 8;  // of a later version
  CHECK(tsomon_monitor_new(&options, nullptr, nullptr) == nullptr);
}

TEST_CASE("C: options reach the monitor") {
  // Both stores may be late, or, without store buffers, neither.
  const auto verdict = [](const tsomon_monitor_options* options) {
    tsomon_monitor* const monitor = tsomon_monitor_new(options, nullptr, nullptr);
    const int x = 0;
    const int y = 0;
    tsomon_monitor_thread* const threads[] = {tsomon_monitor_open(monitor, "A"),
                                              tsomon_monitor_open(monitor, "B")};
    const int* const words[] = {&x, &y};
    for (int i : {0, 1}) {
      tsomon_monitor_begin(threads[i], "u");
      tsomon_monitor_write(threads[i], words[i], sizeof x, 0);
      tsomon_monitor_read(threads[i], words[1 - i], sizeof x, 0);
      tsomon_monitor_end(threads[i]);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    for (tsomon_monitor_thread* const thread : threads) {
      tsomon_monitor_fence(thread);
      tsomon_monitor_close(thread);
    }
    const tsomon_monitor_verdict result = finished(monitor).verdict;
    CHECK(tsomon_monitor_free(monitor) == TSOMON_MONITOR_OK);
    return result;
  };
  CHECK(verdict(nullptr) == TSOMON_MONITOR_POSSIBLE);
  tsomon_monitor_options options = TSOMON_MONITOR_OPTIONS;
  options.store_buffers = 0;
  CHECK(verdict(&options) == TSOMON_MONITOR_CLEAN);
}
