// What merging costs for each event: stream_merger_bench [--benchmark_...]
//
// EventMerge by number of streams and by the length of a run of one stream; StreamMerger with
// producers on their own threads.
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include "online/stream/event_merge.h"
#include "online/stream/stream_merger.h"

namespace {

using namespace tsomon;

constexpr int64_t kBlockEvents = 512;

Event event() {
  Event event;
  event.set_kind(EventKind::kRead);
  event.size = 8;
  return event;
}

// Stream s has the times [i * streams + s] * run, `run` events at each.
void merge_blocks(benchmark::State& state) {
  const int64_t streams = state.range(0);
  const int64_t run = state.range(1);
  EventMerge merge;
  std::vector<EventMerge::Stream> numbers;
  std::vector<int64_t> next(static_cast<size_t>(streams));
  for (int64_t s = 0; s < streams; ++s) {
    numbers.push_back(merge.open(static_cast<uint64_t>(s)));
  }
  EventBlock out;
  std::vector<EventLoss> losses;
  int64_t events = 0;
  for ([[maybe_unused]] const auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
    state.PauseTiming();
    for (size_t s = 0; s < numbers.size(); ++s) {
      EventBlock block = merge.take_block();
      for (int64_t i = 0; i < kBlockEvents; ++i) {
        const int64_t time = (next[s]++ / run) * streams + static_cast<int64_t>(s);
        block.add(event(), time, time + 1);
      }
      merge.push(numbers[s], std::move(block));
    }
    state.ResumeTiming();
    for (;;) {
      out.clear();
      if (!merge.next(out, losses, 4096)) {
        break;
      }
      events += static_cast<int64_t>(out.events.size());
      benchmark::DoNotOptimize(out.events.data());
    }
  }
  state.counters["ns/event"] =
      benchmark::Counter(static_cast<double>(events) * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(merge_blocks)->ArgsProduct({{1, 2, 8, 64}, {1, 8, 64}})->MinTime(0.1);

void from_threads(benchmark::State& state) {
  constexpr int64_t kEvents = 1 << 20;
  int64_t events = 0;
  for ([[maybe_unused]] const auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
    StreamMerger merger;
    std::vector<std::thread> threads;
    for (int64_t t = 0; t < state.range(0); ++t) {
      threads.emplace_back([stream = merger.open(0)]() mutable {
        for (int64_t i = 0; i < kEvents; ++i) {
          stream.add(event(), i, i + 1);
        }
      });
    }
    EventBlock out;
    std::vector<EventLoss> losses;
    while (!merger.drained()) {
      out.clear();
      if (!merger.next(out, losses)) {
        merger.wait(std::chrono::milliseconds(10));
      }
      events += static_cast<int64_t>(out.events.size());
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
  state.counters["ns/event"] =
      benchmark::Counter(static_cast<double>(events) * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(from_threads)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
