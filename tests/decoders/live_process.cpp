#include "tests/decoders/live_process.h"

#include <cstring>

namespace tsomon::capture {
namespace {

Writer::Options live(uint64_t frequency) {
  Writer::Options options;
  options.live = true;
  options.tsc_hz = frequency;
  return options;
}

template <typename Entry>
std::string bytes_of(const Entry& entry) {
  return {reinterpret_cast<const char*>(&entry), sizeof entry};
}

}  // namespace

LiveProcess::LiveProcess(std::mt19937_64& random, const LiveProcessOptions& options)
    : random_(random), options_(options), file_(live(options.frequency)) {
  share_ = below(3) == 0 ? 0 : 20 + below(2000);
  const uint64_t rates[] = {0, 1, 4, 16, 256};
  stamp_every_ = rates[below(5)];
  capacity_ = static_cast<uint32_t>(4 * kMaxToken + below(2000));
  for (uint32_t id = 0; id < 3; ++id) {
    file_.text(ChunkType::kLabels, id, fmt::format("label {}", id));
  }
  for (uint32_t number = 0; number < options.threads; ++number) {
    Thread& thread = threads_.emplace_back();
    thread.number = number;
    thread.truth = &truth_[number];
    thread.operations_left = static_cast<uint32_t>(below(options.operations + 1));
  }
}

std::string LiveProcess::run() {
  begin(threads_[0]);
  // Some processes end in the middle of what their threads do.
  uint64_t steps_left = below(4) == 0 ? below(2000) : UINT64_MAX;
  const uint64_t writer_share = 2 + below(60);
  for (; steps_left != 0; --steps_left) {
    if (below(writer_share) == 0) {
      writer_step();
    }
    std::vector<Thread*> ready;
    for (Thread& thread : threads_) {
      if (thread.begun && !thread.ended) {
        ready.push_back(&thread);
      }
    }
    if (ready.empty()) {
      break;
    }
    // One of them may go on alone for a while, or all rest.
    Thread& thread = *ready[below(ready.size())];
    if (below(200) == 0) {
      now_ += below(options_.frequency);
    }
    for (uint64_t i = below(8) == 0 ? below(100) : 1; i != 0 && !thread.ended; --i) {
      step(thread);
    }
  }
  if (!options_.killed) {
    flush();
  }
  return file_.bytes();
}

void LiveProcess::step(Thread& thread) {
  tick();
  if (options_.handlers && !thread.busy && thread.contexts.size() < 4 && below(100) == 0) {
    interrupt(thread);
    return;
  }
  if (!thread.steps.empty()) {
    const Step step = std::move(thread.steps.front());
    thread.steps.pop_front();
    step();
  } else if (thread.operations_left != 0) {
    --thread.operations_left;
    operation(thread);
  } else {
    end(thread);
  }
}

size_t LiveProcess::add_truth(Thread& thread, EventKind kind, uint64_t address, uint32_t size,
                              int64_t at) {
  thread.truth->push_back({kind, address, size, at});
  return thread.truth->size() - 1;
}

void LiveProcess::open_chunk(Thread& thread, Context& context) {
  context.tokens.assign(capacity_ + kMaxToken, 0);
  context.sequence = thread.sequence++;
  context.since = 0;
  context.announced = 0;
  context.encoder->pc_only = stamp_every_ != 0 && stamp_every_ < 256;
  start_chunk(*context.encoder, context.tokens.data(), capacity_);
}

void LiveProcess::close_chunk(Thread& thread, Context& context) {
  if (has_run(*context.encoder)) {
    put_nothing(*context.encoder);
  }
  std::string payload = bytes_of(context.start);
  payload.append(reinterpret_cast<const char*>(context.tokens.data()), context.encoder->end);
  thread.bytes += payload.size();
  full_.push_back({thread.number, context.sequence, std::move(payload)});
}

// Unit ends that the readers put where records are missing.
void LiveProcess::gap(Thread& thread) {
  thread.had_gap = true;
  for (; thread.open_units != 0; --thread.open_units) {
    add_truth(thread, EventKind::kUnitEnd, 0, 0, -1);
  }
}

void LiveProcess::begin(Thread& thread) {
  thread.begun = true;
  thread.busy = true;
  thread.contexts.push_back(std::make_unique<Context>());
  open_chunk(thread, context(thread));
  thread.steps.push_back([&thread] { thread.busy = false; });
  const Stamp stamp = announce(thread);
  thread.steps.push_back([this, &thread, stamp] {
    put_point(*context(thread).encoder, RecordType::kThreadBegin, 0, 0, *stamp);
  });
}

void LiveProcess::end(Thread& thread) {
  const Stamp stamp = announce(thread);
  thread.steps.push_back([this, &thread, stamp] {
    put_point(*context(thread).encoder, RecordType::kThreadEnd, 0, 0, *stamp);
  });
  thread.steps.push_back([&thread] { thread.busy = true; });
  thread.steps.push_back([this, &thread] {
    close_chunk(thread, context(thread));
    thread.contexts.clear();
    thread.busy = false;
    thread.ended = true;
  });
}

// A handler: its steps come before what is left of the operation that it interrupts.
void LiveProcess::interrupt(Thread& thread) {
  std::deque<Step> rest;
  rest.swap(thread.steps);
  ++thread.interruptions;
  thread.busy = true;
  Position position;
  REQUIRE(snapshot(*context(thread).encoder, &position));
  auto inner = std::make_unique<Context>();
  inner->start = {context(thread).sequence + 1, position.end, static_cast<uint16_t>(position.slot),
                  static_cast<uint16_t>(position.count)};
  open_chunk(thread, *inner);
  thread.contexts.push_back(std::move(inner));
  if (rest.empty()) {  // between two operations
    put_nothing(*context(thread).encoder);
  }
  put_stamp(*context(thread).encoder, now_);
  thread.steps.push_back([&thread] { thread.busy = false; });
  for (uint64_t i = below(4); i != 0; --i) {
    operation(thread);
  }
  thread.steps.push_back([&thread] { thread.busy = true; });
  thread.steps.push_back([this, &thread] {
    close_chunk(thread, context(thread));
    thread.contexts.pop_back();
  });
  thread.steps.push_back([&thread] { thread.busy = false; });
  thread.steps.insert(thread.steps.end(), std::make_move_iterator(rest.begin()),
                      std::make_move_iterator(rest.end()));
}

// Room for two tokens, in a new chunk if need be.
void LiveProcess::room(Thread& thread) {
  thread.steps.push_back([this, &thread] {
    if (has_room(*context(thread).encoder)) {
      return;
    }
    thread.busy = true;
    const uint64_t lost = options_.loses && below(3) == 0 ? 1 + below(5) : 0;
    std::vector<Step> change;
    const auto stamp = std::make_shared<uint64_t>(0);
    change.emplace_back([this, &thread] { close_chunk(thread, context(thread)); });
    change.emplace_back([this, &thread] { open_chunk(thread, context(thread)); });
    change.emplace_back([this, &thread, lost, stamp] {
      if (lost != 0) {
        put_lost(*context(thread).encoder, lost);
        lost_ += lost;
        gap(thread);
      }
      *stamp = now_;
    });
    change.emplace_back([this, &thread, stamp] {
      put_stamp(*context(thread).encoder, *stamp);
      thread.busy = false;
    });
    thread.steps.insert(thread.steps.begin(), change.begin(), change.end());
  });
}

LiveProcess::Stamp LiveProcess::announce(Thread& thread) {
  room(thread);
  auto stamp = std::make_shared<uint64_t>(0);
  thread.steps.push_back([this, &thread, stamp] {
    Context& here = context(thread);
    here.announced = here.encoder->end + 1;
    here.since = 0;
    *stamp = now_;
  });
  return stamp;
}

void LiveProcess::put(Thread& thread, const Stamp& stamp) {
  thread.steps.push_back([this, &thread, stamp] { put_stamp(*context(thread).encoder, *stamp); });
}

void LiveProcess::write(ChunkType type, uint32_t thread, uint64_t sequence,
                        const std::string& payload) {
  REQUIRE((below(2) == 0
               ? file_.writer.write(type, thread, sequence, payload.data(), payload.size())
               : file_.writer.write_raw(type, thread, sequence, payload.data(), payload.size())) ==
          0);
}

void LiveProcess::drain() {
  for (; !full_.empty(); full_.pop_front()) {
    write(ChunkType::kEvents, full_.front().thread, full_.front().sequence, full_.front().payload);
  }
}

void LiveProcess::writer_step() {
  if (round_.empty()) {
    if (below(2) == 0) {
      drain();
    } else {
      begin_round();
    }
    return;
  }
  const Step step = std::move(round_.front());
  round_.pop_front();
  step();
}

void LiveProcess::begin_round() {
  round_since_ = now_;
  silent_.clear();
  for (Thread& thread : threads_) {
    if (!thread.begun) {
      continue;
    }
    round_.push_back([this, &thread] {
      if (!observe(thread)) {
        silent_ += bytes_of(thread.number);
      }
    });
  }
  // Threads that were created before the round are in it, those that come later need not be.
  round_.push_back([this] {
    drain();
    RoundEntry entry;
    entry.since = round_since_;
    write(ChunkType::kRound, kNoThread, 0, bytes_of(entry) + silent_);
  });
}

std::string LiveProcess::snapshot_payload(const Context& context, const Position& position) const {
  std::string payload = bytes_of(context.start);
  payload.append(reinterpret_cast<const char*>(context.tokens.data()), position.end);
  if (position.count != 0) {
    uint8_t end[4];
    const uint32_t size = put_end(end, position);
    payload.append(reinterpret_cast<const char*>(end), size);
  }
  return payload;
}

bool LiveProcess::observe(Thread& thread) {
  if (!options_.observes || thread.busy) {
    return false;
  }
  if (thread.contexts.empty()) {
    return true;
  }
  const Context& here = context(thread);
  const bool announced = here.announced == here.encoder->end + 1;
  Position position;
  REQUIRE(snapshot(*here.encoder, &position));
  if (thread.contexts.size() != 1 || position.count == kMaxCount) {
    return false;
  }
  OpenEntry entry;
  entry.since = announced ? 0 : round_since_;
  entry.until = now_;
  std::string payload = bytes_of(entry);
  if (thread.told_chunk != here.sequence + 1 || thread.told.end != position.end ||
      thread.told.slot != position.slot || thread.told.count != position.count) {
    payload += snapshot_payload(here, position);
  }
  drain();
  write(ChunkType::kOpen, thread.number, here.sequence, payload);
  thread.told_chunk = here.sequence + 1;
  thread.told = position;
  return !announced;
}

void LiveProcess::flush() {
  for (Thread& thread : threads_) {
    while (thread.busy) {
      step(thread);
    }
  }
  EndEntry entry;
  entry.cut = now_;
  drain();
  std::string ends;
  for (Thread& thread : threads_) {
    if (!thread.begun) {
      continue;
    }
    for (size_t i = thread.contexts.size(); i != 0; --i) {
      const Context& each = *thread.contexts[i - 1];
      Position position;
      REQUIRE(snapshot(*each.encoder, &position));
      const std::string payload = snapshot_payload(each, position);
      thread.bytes += payload.size();
      write(ChunkType::kEvents, thread.number, each.sequence, payload);
    }
    // The innermost last: places before it stay right.
    for (size_t i = thread.unfinished.size(); i != 0; --i) {
      const auto [place, type] = thread.unfinished[i - 1];
      std::vector<Truth>& truth = *thread.truth;
      const Truth of = truth[place];
      const auto at = truth.erase(truth.begin() + static_cast<ptrdiff_t>(place));
      std::vector<Truth> left;
      if (type == RecordType::kAtomicReadModifyWrite || type == RecordType::kAtomicLoad) {
        left.push_back({EventKind::kRead, of.address, of.size, -1});
      }
      if (type == RecordType::kAtomicReadModifyWrite || type == RecordType::kAtomicStore) {
        left.push_back({EventKind::kWrite, of.address, of.size, -1});
      }
      truth.insert(at, left.begin(), left.end());
    }
    entry.thread = thread.number;
    entry.chunks = thread.sequence;
    entry.bytes = thread.bytes;
    entry.lost = options_.loses && below(4) == 0 ? below(10) : 0;
    lost_ += entry.lost;
    ends += bytes_of(entry);
  }
  write(ChunkType::kEnd, kNoThread, 0, ends);
}

}  // namespace tsomon::capture
