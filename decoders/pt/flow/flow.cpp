#include "decoders/pt/flow/flow.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>

#include <fmt/format.h>

#include "decoders/pt/flow/stream_decoder.h"

namespace tsomon::pt {
namespace {

using Kind = PathEntry::Kind;

// The pieces of one thread, in the order of their time, with marks where they do not fit.
void join(std::vector<PathPiece*>& pieces, std::vector<PathEntry>& entries) {
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const PathPiece* a, const PathPiece* b) { return a->lo < b->lo; });
  uint64_t expected = 0;
  for (PathPiece* piece : pieces) {
    const Kind first = piece->entries.front().kind;
    if (!entries.empty() && first != Kind::kGap && entries.back().kind != Kind::kGap &&
        (piece->entered == 0 || piece->entered != expected)) {
      const PathEntry& next = piece->entries.front();
      entries.push_back({Kind::kElsewhere, false, {}, next.lo, next.hi});
    }
    if (entries.empty()) {
      entries = std::move(piece->entries);
    } else {
      entries.insert(entries.end(), piece->entries.begin(), piece->entries.end());
    }
    expected = piece->expected;
    piece->entries = {};
  }
}

// A loss on a CPU concerns every thread that ran there meanwhile.
void spread_gaps(const Input& input, const TraceStream& stream, const DecodedStream& decoded,
                 std::vector<PathPiece>& lost) {
  if (stream.cpu < 0) {
    return;
  }
  for (const StreamGap& gap : decoded.gaps) {
    const Switch* running = nullptr;
    const auto add = [&] {
      if (running != nullptr && running->thread != 0) {
        PathPiece piece;
        piece.process = running->process;
        piece.thread = running->thread;
        piece.lo = std::max(gap.lo, running->time);
        piece.entries.push_back({Kind::kGap, false, {}, piece.lo, gap.hi});
        lost.push_back(std::move(piece));
      }
    };
    for (const Switch& item : input.switches) {
      if (item.cpu != stream.cpu) {
        continue;
      }
      if (item.time > gap.lo) {
        add();
      }
      if (item.time > gap.hi) {
        running = nullptr;
        break;
      }
      running = &item;
    }
    add();
  }
}

}  // namespace

Flow decode_flow(const Input& input, const FlowOptions& options) {
  std::vector<DecodedStream> decoded(input.streams.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < decoded.size(); i = next++) {
      decoded[i] = decode_stream(input, input.streams[i], options);
    }
  };
  std::vector<std::thread> workers;
  for (size_t i = 1; i < std::min<size_t>(options.jobs, decoded.size()); ++i) {
    workers.emplace_back(work);
  }
  work();
  for (std::thread& worker : workers) {
    worker.join();
  }

  Flow flow;
  flow.constants = ReadOnlyData(input.code);
  std::map<std::pair<int, int>, std::vector<PathPiece*>> threads;
  std::map<std::string, uint64_t> problems;
  std::vector<PathPiece> lost;
  for (size_t i = 0; i < decoded.size(); ++i) {
    spread_gaps(input, input.streams[i], decoded[i], lost);
  }
  // First: at equal times a gap comes before what was decoded.
  for (PathPiece& piece : lost) {
    threads[{piece.process, piece.thread}].push_back(&piece);
  }
  for (size_t i = 0; i < decoded.size(); ++i) {
    for (PathPiece& piece : decoded[i].pieces) {
      threads[{piece.process, piece.thread}].push_back(&piece);
    }
    for (const auto& [text, count] : decoded[i].problems) {
      problems[text] += count;
    }
    flow.gaps += decoded[i].gaps.size();
    flow.of_nobody += decoded[i].of_nobody;
    flow.instructions += decoded[i].instructions;
    flow.instructions_walked += decoded[i].instructions_walked;
    flow.code.push_back(std::move(decoded[i].code));
  }
  for (auto& [id, pieces] : threads) {
    flow.threads.push_back({id.first, id.second, {}});
    join(pieces, flow.threads.back().entries);
  }
  for (const auto& [text, count] : problems) {
    flow.problems.push_back(count == 1 ? text : fmt::format("{} ({} times)", text, count));
  }
  return flow;
}

}  // namespace tsomon::pt
