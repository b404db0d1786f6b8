// What the threads of a live process do: accesses, locks, units.
#include "tests/decoders/live_process.h"

namespace tsomon::capture {

void LiveProcess::operation(Thread& thread) {
  switch (below(12)) {
    case 0:
      return put(thread, announce(thread));
    case 1:
      return boundary(thread);
    case 2:
      return open_access(thread, below(2) == 0);
    case 3: {
      const RecordType types[] = {RecordType::kAtomicReadModifyWrite, RecordType::kAtomicStore,
                                  RecordType::kAtomicLoad, RecordType::kFence};
      return locked(thread, types[below(4)]);
    }
    case 4:
      return point(thread, RecordType::kAcquire, EventKind::kAcquire, 0x9000 + 64 * below(3));
    case 5:
      return unlock(thread);
    case 6:
      return range(thread);
    case 7:
      // The next thread starts.
      for (Thread& other : threads_) {
        if (!other.begun && thread.contexts.size() == 1) {
          point(thread, RecordType::kFork, EventKind::kFork, other.number);
          thread.steps.push_back([this, &other] {
            if (!other.begun) {
              begin(other);
            }
          });
          return;
        }
      }
      [[fallthrough]];
    default:
      // Loops over a few instructions, which become cached.
      sites_ = 1 + below(3);
      for (uint64_t i = below(20) == 0 ? 300 : below(6); i != 0; --i) {
        plain(thread, below(10) == 0 ? 2 : 1);
      }
  }
}

// The hook of one access, or of a copy, which records two before it performs them.
void LiveProcess::plain(Thread& thread, uint32_t accesses) {
  room(thread);
  thread.steps.push_back([this, &thread] {
    Context& here = context(thread);
    if (stamp_every_ != 0 && here.since >= stamp_every_) {
      here.announced = here.encoder->end + 1;
      here.since = 0;
      const uint64_t stamp = now_;
      thread.steps.push_front([&here, stamp] { put_stamp(*here.encoder, stamp); });
    }
  });
  auto places = std::make_shared<std::vector<size_t>>();
  const uint64_t pc = 0x400000 + 8 * below(sites_) + (accesses == 1 ? 0 : 0x80000);
  for (uint32_t i = 0; i < accesses; ++i) {
    const RecordType type = i + 1 == accesses && (accesses == 2 || below(2) == 0)
                                ? RecordType::kWrite
                                : RecordType::kRead;
    const uint64_t where = address();
    thread.steps.push_back([this, &thread, type, pc, where, places, accesses] {
      Context& here = context(thread);
      Encoder& encoder = *here.encoder;
      const uint64_t key = make_key(type, 8, pc);
      // What is cached is often what happens.
      const uint64_t successor = encoding::entry(encoder, encoder.last).next;
      const uint64_t cached =
          successor == key
              ? cached_address(encoding::entry(encoder, 8 * key_slot(key)), encoder.bases)
              : where;
      const uint64_t address =
          below(8) != 0 && cached >= 0x7000 && cached < 0x100000 ? cached : where;
      ++here.since;
      const SiteCache result = look_up_site(encoder, address, key, 8 * key_slot(key));
      if (result == SiteCache::kMiss) {
        put_access(encoder, address, key);
      }
      places->push_back(add_truth(thread,
                                  type == RecordType::kRead ? EventKind::kRead : EventKind::kWrite,
                                  address, 8, -1));
      if (result != SiteCache::kExpired) {
        return;
      }
      if (has_room(encoder) && accesses == 1 && below(2) == 0) {
        const uint64_t stamp = now_;
        here.announced = encoder.end + 1;
        thread.steps.push_front([&here, stamp] {
          put_stamp_before(*here.encoder, stamp);
          here.since = 0;
        });
      } else {
        thread.steps.push_front([&here] { put_nothing(*here.encoder); });
      }
    });
  }
  for (uint32_t i = 0; i < accesses; ++i) {
    thread.steps.push_back([this, &thread, places, i] {
      (*thread.truth)[(*places)[i]].at = static_cast<int64_t>(now_);
    });
  }
}

void LiveProcess::point(Thread& thread, RecordType type, EventKind kind, uint64_t address) {
  const Stamp stamp = announce(thread);
  thread.steps.push_back([this, &thread, type, kind, address, stamp] {
    add_truth(thread, kind, address, 0, static_cast<int64_t>(*stamp));
    put_point(*context(thread).encoder, type, address, 0x600000, *stamp);
  });
}

void LiveProcess::boundary(Thread& thread) {
  const bool begins = thread.open_units == 0 || below(2) == 0;
  const bool waits = !begins && below(4) == 0;
  const uint64_t address = begins ? below(3) : waits ? 0xA000 : 0;
  Stamp stamp;
  if (recently_stamped(thread)) {
    room(thread);
  } else {
    stamp = announce(thread);
  }
  thread.steps.push_back([this, &thread, begins, waits, address, stamp] {
    Encoder& encoder = *context(thread).encoder;
    const bool ends_none = !begins && !waits && thread.open_units == 0;  // a handler ended it
    const RecordType type = begins               ? RecordType::kUnitBegin
                            : waits || ends_none ? RecordType::kWait
                                                 : RecordType::kUnitEnd;
    const EventKind kind = begins               ? EventKind::kUnitBegin
                           : waits || ends_none ? EventKind::kWait
                                                : EventKind::kUnitEnd;
    thread.open_units += begins ? 1 : 0;
    thread.open_units -= kind == EventKind::kUnitEnd ? 1 : 0;
    if (stamp) {
      put_point(encoder, type, address, 0x610000, *stamp);
    } else {
      put_bare(encoder, type, address, 0x610000);
    }
    add_truth(thread, kind, address, 0, static_cast<int64_t>(stamp ? *stamp : now_));
  });
}

// A load or store that is a mov: a load is performed before it is recorded.
void LiveProcess::open_access(Thread& thread, bool load) {
  if (recently_stamped(thread)) {
    room(thread);
  } else {
    put(thread, announce(thread));
    room(thread);
  }
  const uint64_t where = address();
  const auto at = std::make_shared<uint64_t>(0);
  if (load) {
    thread.steps.push_back([this, &thread] {
      Context& here = context(thread);
      here.announced = here.encoder->end + 1;
    });
    thread.steps.push_back([this, at] { *at = now_; });
  }
  const auto place = std::make_shared<size_t>(0);
  thread.steps.push_back([this, &thread, load, where, at, place] {
    const RecordType type = load ? RecordType::kAtomicLoad : RecordType::kAtomicStore;
    put_open(*context(thread).encoder, other_key(type, 8, 0x620000), where, below(3));
    *place = add_truth(thread, load ? EventKind::kRead : EventKind::kWrite, where, 8,
                       load ? static_cast<int64_t>(*at) : -1);
  });
  if (!load) {
    thread.steps.push_back(
        [this, &thread, place] { (*thread.truth)[*place].at = static_cast<int64_t>(now_); });
  }
}

// An operation with a record around it.
void LiveProcess::locked(Thread& thread, RecordType type) {
  Stamp stamp;
  if (recently_stamped(thread)) {
    room(thread);
  } else {
    stamp = announce(thread);
  }
  const uint64_t where = type == RecordType::kFence ? 0 : address();
  const uint32_t size = type == RecordType::kFence ? 0 : 8;
  const auto interruptions = std::make_shared<uint32_t>(0);
  thread.steps.push_back([this, &thread, type, where, size, stamp, interruptions] {
    Encoder& encoder = *context(thread).encoder;
    *interruptions = thread.interruptions;
    begin_record(encoder, type, where, size, 0x630000, stamp ? *stamp : encoder.stamp);
    const EventKind kind = type == RecordType::kAtomicReadModifyWrite ? EventKind::kReadModifyWrite
                           : type == RecordType::kAtomicStore         ? EventKind::kWrite
                           : type == RecordType::kAtomicLoad          ? EventKind::kRead
                                                                      : EventKind::kFence;
    thread.unfinished.emplace_back(add_truth(thread, kind, where, size, -1), type);
  });
  const auto at = std::make_shared<uint64_t>(0);
  const auto end = std::make_shared<uint64_t>(0);
  thread.steps.push_back([this, at] { *at = now_; });
  thread.steps.push_back([this, end] { *end = now_; });
  thread.steps.push_back([this, &thread, type, where, at, end, interruptions] {
    const auto [place, unused] = thread.unfinished.back();
    thread.unfinished.pop_back();
    std::vector<Truth>& truth = *thread.truth;
    truth[place].at = static_cast<int64_t>(*at);
    const bool separates = thread.interruptions == *interruptions;
    const uint64_t hi = *end;
    Encoder& encoder = *context(thread).encoder;
    if (type == RecordType::kAtomicReadModifyWrite && below(3) == 0) {
      end_record(encoder, Ending::kFailed, separates, hi, 1, below(3), 0);
      truth[place] = {EventKind::kFence, 0, 0, static_cast<int64_t>(*at)};
      truth.insert(truth.begin() + static_cast<ptrdiff_t>(place) + 1,
                   {EventKind::kRead, where, 8, static_cast<int64_t>(*at)});
    } else if (type == RecordType::kAtomicReadModifyWrite) {
      end_record(encoder, Ending::kDone, separates, hi, 2, below(3), below(3));
    } else if (type == RecordType::kAtomicStore && separates && below(2) == 0) {
      end_record(encoder, Ending::kOpen, true, 0, 1, below(3), 0);
    } else {
      const uint32_t values = type == RecordType::kFence ? 0 : 1;
      end_record(encoder, Ending::kDone, separates, hi, values, below(3), 0);
    }
  });
}

// A release, and the drain of the locked instruction that gives the lock back.
void LiveProcess::unlock(Thread& thread) {
  const uint64_t lock = 0x9000 + 64 * below(3);
  const Stamp released = announce(thread);
  thread.steps.push_back([this, &thread, lock, released] {
    add_truth(thread, EventKind::kRelease, lock, 0, static_cast<int64_t>(*released));
    put_point(*context(thread).encoder, RecordType::kRelease, lock, 0x640000, *released);
  });
  const auto drained = std::make_shared<uint64_t>(0);
  thread.steps.push_back([this, drained] { *drained = now_; });
  room(thread);
  const bool apart = below(2) == 0;
  thread.steps.push_back([this, &thread, released, drained, apart] {
    Encoder& encoder = *context(thread).encoder;
    // In the chunk of the release, and nothing was recorded since.
    if (!apart && encoder.stamp == *released && !has_run(encoder)) {
      put_drain(encoder);
    } else {
      put_record(encoder,
                 {RecordType::kFence, 0, kSeparates | kOpenEnd, 2, 0, 0x650000, {*released, 0}});
    }
    // Only its end counts for a fence: it lies before the next stamp.
    add_truth(thread, EventKind::kFence, 0, 0, static_cast<int64_t>(*drained));
  });
}

void LiveProcess::range(Thread& thread) {
  room(thread);
  const uint64_t where = address();
  const auto place = std::make_shared<size_t>(0);
  thread.steps.push_back([this, &thread, where, place] {
    put_record(*context(thread).encoder,
               {RecordType::kRangeWrite, 0, 0, 1, where, 0x660000, {2000}});
    *place = add_truth(thread, EventKind::kWrite, where, 2000, -1);
  });
  thread.steps.push_back(
      [this, &thread, place] { (*thread.truth)[*place].at = static_cast<int64_t>(now_); });
}

}  // namespace tsomon::capture
