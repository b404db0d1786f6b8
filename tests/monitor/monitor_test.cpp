// The embedded monitor and the watch behind it.
#include "monitor/live/monitor.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "decoders/std/reader.h"
#include "monitor/judge/watch.h"

using namespace tsomon;

namespace {

// Than the margin of any clock: nobody knows the order of what is closer together.
void longer_than_margins() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

struct Watched {
  std::vector<ReportedFinding> found;
  WatchSummary summary;
};

Watched watch(std::string_view text) {
  auto trace = read_std_text(text, "test");
  REQUIRE(trace);
  Watched result;
  Watch watch(trace->symbols, {},
              [&](const ReportedFinding& found) { result.found.push_back(found); });
  watch.add(*trace);
  watch.finish();
  result.summary = watch.summary();
  return result;
}

}  // namespace

TEST_CASE("a lost update is reported by the event that closes the cycle") {
  auto trace = read_std_text(
      "A|begin(inc)|\nA|r(x)|a.c:1\nB|begin(inc)|\nB|r(x)|a.c:1\nA|w(x)|a.c:2\nA|fence|\n"
      "A|end|\nB|w(x)|a.c:2\nB|end|\n",
      "test");
  REQUIRE(trace);
  std::vector<ReportedFinding> found;
  Watch watch(trace->symbols, {}, [&](const ReportedFinding& each) { found.push_back(each); });
  EventBlock block;
  for (size_t i = 0; i < trace->events.size(); ++i) {
    block.clear();
    block.events.push_back(trace->events[i]);
    watch.add(block);
    CHECK(found.size() == (i < 7 ? 0 : 1));
  }
  watch.finish();
  REQUIRE(found.size() == 1);
  CHECK(found[0].definite());
  REQUIRE(found[0].cycle.steps.size() == 2);
  for (const ReportedStep& step : found[0].cycle.steps) {
    CHECK(step.label == "inc");
    CHECK(step.edge == EdgeKind::kConflict);
  }
  CHECK(found[0].text().find("a.c:2") != std::string::npos);
  CHECK(watch.summary().verdict() == Verdict::kDefinite);
  CHECK(watch.summary().threads == 2);
  CHECK(watch.summary().complete());
}

TEST_CASE("a candidate is judged: late commit is possible, with a fence clean") {
  const Watched late =
      watch("A|begin|\nA|w(x)|\nA|w(y)|\nA|end|\nB|begin|\nB|r(y)|\nB|r(x)|\nB|end|\n");
  REQUIRE(late.found.size() == 1);
  CHECK_FALSE(late.found[0].definite());
  CHECK_FALSE(late.found[0].cycle.witness.empty());
  CHECK(late.summary.verdict() == Verdict::kPossible);
  const Watched fenced =
      watch("A|begin|\nA|w(x)|\nA|w(y)|\nA|fence|\nA|end|\nB|begin|\nB|r(y)|\nB|r(x)|\nB|end|\n");
  CHECK(fenced.found.empty());
  CHECK(fenced.summary.verdict() == Verdict::kClean);
}

TEST_CASE("a candidate's units that do not end fenced are named, once for each place") {
  const Watched late = watch(
      "A|begin(put)|\nA|w(x)|a.c:1\nA|w(y)|a.c:2\nA|end|\nB|begin(get)|\nB|r(y)|b.c:1\n"
      "B|r(x)|b.c:2\nB|end|\nC|begin(put)|\nC|w(x)|a.c:1\nC|w(y)|a.c:2\nC|end|\n");
  REQUIRE(late.found.size() == 1);
  REQUIRE(late.found[0].unfenced.size() == 1);
  CHECK(late.found[0].unfenced[0].line.find("unit put: a fence is missing after #") !=
        std::string::npos);
  const auto json = late.found[0].json()["unfenced_units"];
  REQUIRE(json.size() == 1);
  CHECK(json[0]["label"] == "put");
  CHECK(json[0]["location"] == "a.c:2");
  CHECK(late.found[0].text().find("a.c:2") != std::string::npos);
}

TEST_CASE("candidates beyond what all of them may cost together are not judged") {
  const auto judged = [](int candidates, uint64_t max_undirected) {
    std::string text;
    for (int i = 0; i < candidates; ++i) {
      text += "A|begin|\nB|begin|\n";
      for (int k = 0; k < 60; ++k) {
        text += "A|w(x)|\nB|w(x)|\n";
      }
      text += "A|end|\nB|end|\nA|fence|\nB|fence|\n";
    }
    auto trace = read_std_text(text, "test");
    REQUIRE(trace);
    WatchOptions options;
    options.analysis.max_undirected = max_undirected;
    options.analysis.values = false;  // one look at each
    Watch watch(trace->symbols, options, [](const ReportedFinding&) {});
    watch.add(*trace);
    watch.finish();
    CHECK(watch.summary().candidates == static_cast<uint64_t>(candidates));
    return watch.summary().unjudged;
  };
  CHECK(judged(2, 4'000) == 0);
  CHECK(judged(20, 40'000) == 0);
  // An edge for each two accesses: 3,600 in a candidate, of which its events allow a thousand.
  CHECK(judged(20, 4'000) > 10);
}

TEST_CASE("atomic sets are watched: certain, possible and open orders") {
  const auto judged = [](const std::string& text, SetChoice sets) {
    auto trace = read_std_text(text, "test");
    REQUIRE(trace);
    WatchOptions options;
    options.source = BasisSource::kWritten;
    options.detector.policy = DetectorPolicy::kAtomicSets;
    options.detector.sets = sets;
    std::vector<ReportedFinding> found;
    Watch watch(trace->symbols, options,
                [&](const ReportedFinding& each) { found.push_back(each); });
    watch.add(*trace);
    watch.finish();
    const WatchSummary summary = watch.summary();
    CHECK(found.size() ==
          (summary.verdict() == Verdict::kDefinite || summary.verdict() == Verdict::kPossible));
    CHECK(summary.unjudged == 0);
    return summary.verdict();
  };
  const std::string update =
      "A|alloc(0x10+8)|\nA|begin(inc)|\nA|r(0x10+4)|\nB|begin(inc)|\nB|r(0x10+4)|\n"
      "B|w(0x10+4)|\nB|end|\nA|w(0x10+4)|\nA|end|\n";
  CHECK(judged(update, SetChoice::kObjects) == Verdict::kDefinite);
  CHECK(judged(update, SetChoice::kAuto) == Verdict::kDefinite);
  CHECK(judged("-|set(s;0x14+4)|\n" + update, SetChoice::kAuto) == Verdict::kClean);
  CHECK(judged("-|set(s;0x14+4)|\n" + update, SetChoice::kObjects) == Verdict::kDefinite);
  const std::string overlapping =
      "A|begin|\nA|r(x)||1..9\nB|begin|\nB|r(x)||2..9\nB|w(x)||3..9\nB|end||3..9\n"
      "A|w(x)||4..9\nA|end||5..9\n";
  CHECK(judged(overlapping, SetChoice::kAuto) == Verdict::kPossible);
  // As the input has them they are no cycle: a candidate.
  const std::string update_each =
      "A|begin|\nA|r(0x10+4)||1..9\nA|w(0x10+4)||2..9\nA|end||3..9\nB|begin||3..9\n"
      "B|r(0x10+4)||4..9\nB|w(0x10+4)||5..9\nB|end||6..9\n";
  for (const char* const before : {"", "-|set(s;0x12+4)|\n", "A|alloc(0xF+8)||0..0\n"}) {
    CHECK(judged(before + update_each, SetChoice::kAuto) == Verdict::kPossible);
  }
  // Accesses without a unit are each serializable in whatever order.
  CHECK(judged("A|r(x)||1..9\nB|w(x)||2..9\n", SetChoice::kAuto) == Verdict::kClean);
  CHECK(judged("A|begin|\nA|r(x)||1..1\nA|r(y)||2..9\nA|end||3..9\nB|w(y)||4..9\n",
               SetChoice::kAuto) == Verdict::kInconclusive);
  CHECK(judged("A|r(x)||1..1\nB|w(x)||2..9\n", SetChoice::kObjects) == Verdict::kInconclusive);
}

TEST_CASE("an embedded monitor watches declared sets and objects") {
  int x = 0;
  int y = 0;
  for (const char* const sets : {"x", "y", "object"}) {
    CAPTURE(std::string(sets));
    std::vector<Monitor::Finding> findings;
    Monitor::Options options;
    options.atomic_sets = true;
    Monitor monitor([&](const Monitor::Finding& finding) { findings.push_back(finding); }, options);
    const std::string_view kind = sets;
    if (kind != "object") {
      monitor.atomic_set("one", kind == "x" ? &x : &y, sizeof x);
    }
    {
      Monitor::Thread a = monitor.thread("a");
      Monitor::Thread b = monitor.thread("b");
      if (kind == "object") {
        a.allocate(&x, sizeof x);
        longer_than_margins();
      }
      a.begin("inc;one");
      a.read(&x, sizeof x);
      b.begin("inc;one");
      b.read(&x, sizeof x);
      longer_than_margins();
      b.write(&x, sizeof x);
      b.end();
      longer_than_margins();
      a.write(&x, sizeof x);
      a.end();
      a.free(&x);
    }
    const Monitor::Summary summary = monitor.finish();
    CHECK(findings.size() == (kind == "y" ? 0 : 1));
    CHECK(summary.complete);
  }
}

TEST_CASE("the same locations are reported once and counted") {
  std::string text;
  for (int i = 0; i < 10; ++i) {
    text +=
        "A|begin(inc)|\nA|r(x)|1\nB|begin(inc)|\nB|r(x)|1\nA|w(x)|2\nA|fence|\nA|end|\n"
        "B|w(x)|2\nB|fence|\nB|end|\n";
  }
  const Watched watched = watch(text);
  CHECK(watched.found.size() == 1);
  CHECK(watched.summary.occurrences >= 10);
}

TEST_CASE("a loss makes a clean result inconclusive") {
  Symbols symbols;
  symbols.threads.intern("A");
  Watch watch(symbols, {}, [](const ReportedFinding&) {});
  watch.lost({0, 3});
  watch.finish();
  CHECK(watch.summary().verdict() == Verdict::kInconclusive);
  CHECK(watch.summary().lost_events == 3);
  CHECK_FALSE(watch.summary().complete());
}

TEST_CASE("monitor: findings arrive on its thread while the program runs") {
  std::atomic<int> count{0};
  std::atomic<bool> same_thread{false};
  const auto here = std::this_thread::get_id();
  std::string text;
  std::string json;
  Monitor monitor([&](const Monitor::Finding& finding) {
    same_thread = same_thread || std::this_thread::get_id() == here;
    text = finding.text;
    json = finding.json;
    ++count;
  });
  const uint32_t line = monitor.location("bank.cpp:7");
  int x = 0;
  Monitor::Thread a = monitor.thread("A");
  Monitor::Thread b = monitor.thread("B");
  a.begin("inc");
  a.read(&x, sizeof x, line);
  b.begin("inc");
  b.read(&x, sizeof x, line);
  longer_than_margins();
  a.write(&x, sizeof x, line);
  a.fence();
  a.end();
  longer_than_margins();
  b.write(&x, sizeof x, line);
  a.pause();
  b.pause();
  // Both handles are open: what closes the cycle is known all the same.
  while (count == 0) {
    a.pause();
    b.pause();
    std::this_thread::yield();
  }
  b.end();
  a.close();
  b.close();
  const Monitor::Summary summary = monitor.finish();
  CHECK(count == 1);
  CHECK_FALSE(same_thread);
  CHECK(text.find("bank.cpp:7") != std::string::npos);
  CHECK(text.find("A unit inc") != std::string::npos);
  CHECK(json.find("\"verdict\":\"definite\"") != std::string::npos);
  CHECK(summary.events == 9);
  CHECK(summary.findings == 1);
  CHECK(summary.complete);
}

TEST_CASE("monitor: threads under a lock are serializable") {
  Monitor monitor([](const Monitor::Finding& finding) { FAIL_CHECK(finding.text); });
  std::mutex lock;
  int x = 0;
  const auto work = [&](Monitor::Thread thread) {
    for (int i = 0; i < 2000; ++i) {
      thread.begin("inc");
      {
        const std::lock_guard guard(lock);
        thread.acquire(&lock);
        thread.read(&x, sizeof x);
        thread.write(&x, sizeof x);
        thread.release(&lock);
      }
      thread.end();
    }
  };
  std::vector<std::thread> threads;
  for (const char* name : {"a", "b", "b"}) {
    threads.emplace_back(work, monitor.thread(name));
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const Monitor::Summary summary = monitor.finish();
  CHECK(summary.events == 3 * 2000 * 6);
  CHECK(summary.units == 3 * 2000);
  CHECK(summary.findings == 0);
  CHECK(summary.complete);
}

TEST_CASE("monitor: what is lost makes it incomplete") {
  Monitor monitor([](const Monitor::Finding&) {});
  {
    Monitor::Thread thread = monitor.thread("A");
    int x = 0;
    thread.write(&x, sizeof x);
    thread.lost(5);
    thread.write(&x, sizeof x);
  }
  const Monitor::Summary summary = monitor.finish();
  CHECK(summary.events == 2);
  CHECK_FALSE(summary.complete);
}

TEST_CASE("monitor: a closed handle has its number and ignores the rest") {
  Monitor monitor([](const Monitor::Finding&) {});
  int x = 0;
  Monitor::Thread main = monitor.thread("main");
  Monitor::Thread closed = monitor.thread("worker");
  const uint32_t id = closed.id();
  closed.write(&x, sizeof x);
  closed.close();
  CHECK(closed.id() == id);
  main.join(closed.id());
  Monitor::Thread none;
  CHECK(none.id() == Monitor::Thread::kNoThread);
  for (Monitor::Thread* thread : {&closed, &none}) {
    thread->begin(0);
    thread->begin("unit");
    thread->read(&x, sizeof x);
    thread->read(&x, sizeof x, 0, {1, 2});
    thread->write(&x, sizeof x);
    thread->write(&x, sizeof x, 0, {1, 2});
    thread->update(&x, sizeof x);
    thread->update(&x, sizeof x, 0, {1, 2});
    thread->fence();
    thread->acquire(&x);
    thread->release(&x);
    thread->allocate(&x, sizeof x);
    thread->free(&x);
    thread->end();
    thread->fork(main);
    thread->join(main.id());
    thread->lost(1);
    thread->pause();
    thread->close();
  }
  main.fork(none);
  main.join(none.id());
  main.close();
  const Monitor::Summary summary = monitor.finish();
  CHECK(summary.events == 2);
  CHECK(summary.complete);
}

TEST_CASE("monitor: without a callback findings are counted") {
  Monitor monitor(nullptr);
  int x = 0;
  Monitor::Thread a = monitor.thread("A");
  Monitor::Thread b = monitor.thread("B");
  for (Monitor::Thread* thread : {&a, &b}) {
    thread->begin("inc");
    thread->read(&x, sizeof x);
  }
  for (Monitor::Thread* thread : {&a, &b}) {
    thread->write(&x, sizeof x);
    thread->fence();
    thread->end();
  }
  a.close();
  b.close();
  CHECK(monitor.finish().findings == 1);
}

TEST_CASE("a cancelled unit is none, where cancels are expected") {
  enum class How : uint8_t { kEnd, kCancel, kUnexpectedCancel };
  for (const How how : {How::kEnd, How::kCancel, How::kUnexpectedCancel}) {
    Monitor::Options options;
    options.cancels = how != How::kUnexpectedCancel;
    Monitor monitor([](const Monitor::Finding&) {}, options);
    const int data = 0;
    Monitor::Thread reader = monitor.thread("reader");
    Monitor::Thread writer = monitor.thread("writer");
    reader.begin("read");
    reader.read(&data, sizeof data);
    writer.begin("write");
    writer.update(&data, sizeof data);
    writer.end();
    reader.read(&data, sizeof data);
    how == How::kEnd ? reader.end() : reader.cancel();
    reader.close();
    writer.close();
    const Monitor::Summary summary = monitor.finish();
    CAPTURE(static_cast<int>(how));
    CHECK(summary.complete == (how != How::kUnexpectedCancel));
    CHECK((summary.findings == 0) == (how == How::kCancel));
  }
}

TEST_CASE("a cancel that was not expected leaves a clean verdict inconclusive, and says so") {
  Monitor monitor([](const Monitor::Finding&) {});
  const int data = 0;
  {
    Monitor::Thread reader = monitor.thread("reader");
    reader.begin("read");
    reader.read(&data, sizeof data);
    reader.read(&data, sizeof data);
    reader.cancel();
  }
  const Monitor::Summary summary = monitor.finish();
  CHECK(summary.verdict == Monitor::Verdict::kInconclusive);
  CHECK(summary.why == "units were cancelled by code that was loaded later");
}
