#include "monitor/live/monitor_c.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string_view>

#include "monitor/live/monitor.h"

using tsomon::Monitor;

struct tsomon_monitor {
  tsomon_monitor(tsomon_monitor_callback report, void* user, const Monitor::Options& options)
      : feed(callback(report, user), options) {}

  static Monitor::Callback callback(tsomon_monitor_callback report, void* user);

  Monitor feed;
  std::atomic<bool> lost{false};  // an event, which nobody has been told of yet
  std::mutex lock;                // of the rest
  size_t open = 0;                // threads
  std::optional<Monitor::Summary> summary;
};

struct tsomon_monitor_thread {
  tsomon_monitor* monitor;
  Monitor::Thread feed;
};

namespace {

constexpr uint32_t kNoLabel = UINT32_MAX;
constexpr size_t kMostBytes = (size_t{1} << 24) - 1;

// Of static storage: there is always room for it.
thread_local const char* last_error = "";

tsomon_monitor_status refuse(tsomon_monitor_status status, const char* what) {
  last_error = what;
  return status;
}

tsomon_monitor_status refuse_argument() {
  return refuse(TSOMON_MONITOR_BAD_ARGUMENT, "an argument is NULL, or no number of a label");
}

// What `call` throws as a status.
template <typename Call>
tsomon_monitor_status guarded(const Call& call) noexcept {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return refuse(TSOMON_MONITOR_NO_MEMORY, "out of memory");
  } catch (const std::exception&) {
    return refuse(TSOMON_MONITOR_FAILED, "the system refused a thread or a lock");
  }
}

// An event of the thread could not be taken.
void note_missing(tsomon_monitor_thread* thread) noexcept {
  try {
    thread->feed.lost(1);
  } catch (const std::exception&) {
    thread->monitor->lost = true;
  }
}

// One event of a thread.
template <typename Add>
tsomon_monitor_status add(tsomon_monitor_thread* thread, const Add& event) noexcept {
  if (thread == nullptr) {
    return refuse_argument();
  }
  const tsomon_monitor_status status = guarded([&] {
    event(thread->feed);
    return TSOMON_MONITOR_OK;
  });
  if (status != TSOMON_MONITOR_OK) {
    note_missing(thread);
  }
  return status;
}

// An event with an argument that it cannot do without.
template <typename Add>
tsomon_monitor_status add_with(tsomon_monitor_thread* thread, bool has_argument,
                               const Add& event) noexcept {
  if (thread != nullptr && !has_argument) {
    note_missing(thread);
    return refuse_argument();
  }
  return add(thread, event);
}

// An event with bytes.
template <typename Add>
tsomon_monitor_status add_bytes(tsomon_monitor_thread* thread, size_t size,
                                const Add& event) noexcept {
  if (thread != nullptr && (size == 0 || size > kMostBytes)) {
    note_missing(thread);
    return refuse(TSOMON_MONITOR_BAD_ARGUMENT, "a size is not from 1 to 16777215 bytes");
  }
  return add(thread, event);
}

tsomon_monitor_verdict c_verdict(Monitor::Verdict verdict) {
  switch (verdict) {
    case Monitor::Verdict::kClean:
      return TSOMON_MONITOR_CLEAN;
    case Monitor::Verdict::kPossible:
      return TSOMON_MONITOR_POSSIBLE;
    case Monitor::Verdict::kDefinite:
      return TSOMON_MONITOR_DEFINITE;
    case Monitor::Verdict::kInconclusive:
      break;
  }
  return TSOMON_MONITOR_INCONCLUSIVE;
}

Monitor::Options options_of(const tsomon_monitor_options* given) {
  tsomon_monitor_options known = TSOMON_MONITOR_OPTIONS;
  if (given != nullptr) {
    std::memcpy(&known, given, std::min(given->size, sizeof known));
  }
  Monitor::Options options;
  options.store_buffers = known.store_buffers != 0;
  options.store_buffer_size = known.store_buffer_size;
  options.atomic_sets = known.atomic_sets != 0;
  options.max_blocks = known.max_blocks;
  options.drop = known.drop != 0;
  options.cancels = known.cancels != 0;
  return options;
}

// Under the lock of the monitor.
tsomon_monitor_status finish(tsomon_monitor* monitor) {
  if (monitor->open != 0) {
    return refuse(TSOMON_MONITOR_BUSY, "threads are open: tsomon_monitor_close() comes first");
  }
  if (!monitor->summary) {
    if (monitor->lost) {
      monitor->feed.thread("lost").lost(0);
    }
    monitor->summary = monitor->feed.finish();
  }
  return TSOMON_MONITOR_OK;
}

}  // namespace

Monitor::Callback tsomon_monitor::callback(tsomon_monitor_callback report, void* user) {
  if (report == nullptr) {
    return nullptr;
  }
  return [report, user](const Monitor::Finding& found) {
    const tsomon_monitor_finding finding = {found.number, c_verdict(found.verdict),
                                            found.text.c_str(), found.json.c_str()};
    report(&finding, user);
  };
}

const char* tsomon_monitor_error() { return last_error; }
int64_t tsomon_monitor_now() { return Monitor::now(); }

tsomon_monitor* tsomon_monitor_new(const tsomon_monitor_options* options,
                                   tsomon_monitor_callback report, void* user) {
  tsomon_monitor* monitor = nullptr;
  guarded([&] {
    // What this library does not know it cannot do.
    if (options != nullptr &&
        (options->size < sizeof options->size || options->size > sizeof *options)) {
      return refuse(TSOMON_MONITOR_BAD_ARGUMENT,
                    "the options' size is not that of TSOMON_MONITOR_OPTIONS in this version");
    }
    monitor = std::make_unique<tsomon_monitor>(report, user, options_of(options)).release();
    return TSOMON_MONITOR_OK;
  });
  return monitor;
}

tsomon_monitor_status tsomon_monitor_finish(tsomon_monitor* monitor,
                                            tsomon_monitor_summary* summary, size_t size) {
  if (monitor == nullptr) {
    return refuse_argument();
  }
  return guarded([&] {
    const std::lock_guard guard(monitor->lock);
    if (const tsomon_monitor_status status = finish(monitor); status != TSOMON_MONITOR_OK) {
      return status;
    }
    if (summary != nullptr) {
      const Monitor::Summary& found = *monitor->summary;
      const tsomon_monitor_summary all = {
          c_verdict(found.verdict), found.complete ? 1 : 0, found.events,   found.units,
          found.findings,           found.occurrences,      found.accesses, found.larger_units,
          found.why.c_str(),        found.json.c_str()};
      std::memset(summary, 0, size);
      std::memcpy(summary, &all, std::min(size, sizeof all));
    }
    return TSOMON_MONITOR_OK;
  });
}

tsomon_monitor_status tsomon_monitor_free(tsomon_monitor* monitor) {
  if (monitor == nullptr) {
    return TSOMON_MONITOR_OK;
  }
  const tsomon_monitor_status status = guarded([&] {
    const std::lock_guard guard(monitor->lock);
    return monitor->open == 0 ? TSOMON_MONITOR_OK
                              : refuse(TSOMON_MONITOR_BUSY,
                                       "threads are open: tsomon_monitor_close() comes first");
  });
  if (status == TSOMON_MONITOR_OK) {
    delete monitor;
  }
  return status;
}

uint32_t tsomon_monitor_label(tsomon_monitor* monitor, const char* text) {
  uint32_t number = kNoLabel;
  guarded([&] {
    if (monitor == nullptr || text == nullptr) {
      return refuse_argument();
    }
    number = monitor->feed.label(text);
    return TSOMON_MONITOR_OK;
  });
  return number;
}

uint32_t tsomon_monitor_location(tsomon_monitor* monitor, const char* text) {
  uint32_t number = 0;
  guarded([&] {
    if (monitor == nullptr || text == nullptr) {
      return refuse_argument();
    }
    number = monitor->feed.location(text);
    return TSOMON_MONITOR_OK;
  });
  return number;
}

tsomon_monitor_status tsomon_monitor_atomic_set(tsomon_monitor* monitor, const char* name,
                                                const volatile void* address, size_t size) {
  if (monitor == nullptr || name == nullptr) {
    return refuse_argument();
  }
  return guarded([&] {
    monitor->feed.atomic_set(name, address, size);
    return TSOMON_MONITOR_OK;
  });
}

tsomon_monitor_thread* tsomon_monitor_open(tsomon_monitor* monitor, const char* name) {
  tsomon_monitor_thread* thread = nullptr;
  guarded([&] {
    if (monitor == nullptr || name == nullptr) {
      return refuse_argument();
    }
    const std::lock_guard guard(monitor->lock);
    if (monitor->summary) {
      return refuse(TSOMON_MONITOR_FINISHED, "the monitor is finished");
    }
    auto opened = std::make_unique<tsomon_monitor_thread>();
    opened->monitor = monitor;
    opened->feed = monitor->feed.thread(name);
    ++monitor->open;
    thread = opened.release();
    return TSOMON_MONITOR_OK;
  });
  return thread;
}

void tsomon_monitor_close(tsomon_monitor_thread* thread) {
  if (thread == nullptr) {
    return;
  }
  tsomon_monitor* const monitor = thread->monitor;
  if (guarded([&] {
        thread->feed.close();
        return TSOMON_MONITOR_OK;
      }) != TSOMON_MONITOR_OK) {
    monitor->lost = true;
  }
  delete thread;
  // Last: who waits for this may free the monitor then.
  guarded([&] {
    const std::lock_guard guard(monitor->lock);
    --monitor->open;
    return TSOMON_MONITOR_OK;
  });
}

uint32_t tsomon_monitor_id(const tsomon_monitor_thread* thread) {
  return thread == nullptr ? Monitor::Thread::kNoThread : thread->feed.id();
}

tsomon_monitor_status tsomon_monitor_begin(tsomon_monitor_thread* thread, const char* label) {
  return add_with(thread, label != nullptr,
                  [&](Monitor::Thread& feed) { feed.begin(std::string_view(label)); });
}
tsomon_monitor_status tsomon_monitor_begin_label(tsomon_monitor_thread* thread, uint32_t label) {
  return add_with(thread, label != kNoLabel, [&](Monitor::Thread& feed) { feed.begin(label); });
}
tsomon_monitor_status tsomon_monitor_end(tsomon_monitor_thread* thread) {
  return add(thread, [](Monitor::Thread& feed) { feed.end(); });
}
tsomon_monitor_status tsomon_monitor_cancel(tsomon_monitor_thread* thread) {
  return add(thread, [](Monitor::Thread& feed) { feed.cancel(); });
}
tsomon_monitor_status tsomon_monitor_read(tsomon_monitor_thread* thread,
                                          const volatile void* address, size_t size,
                                          uint32_t location) {
  return add_bytes(thread, size,
                   [&](Monitor::Thread& feed) { feed.read(address, size, location); });
}
tsomon_monitor_status tsomon_monitor_write(tsomon_monitor_thread* thread,
                                           const volatile void* address, size_t size,
                                           uint32_t location) {
  return add_bytes(thread, size,
                   [&](Monitor::Thread& feed) { feed.write(address, size, location); });
}
tsomon_monitor_status tsomon_monitor_update(tsomon_monitor_thread* thread,
                                            const volatile void* address, size_t size,
                                            uint32_t location) {
  return add_bytes(thread, size,
                   [&](Monitor::Thread& feed) { feed.update(address, size, location); });
}
tsomon_monitor_status tsomon_monitor_read_between(tsomon_monitor_thread* thread,
                                                  const volatile void* address, size_t size,
                                                  uint32_t location, int64_t from, int64_t to) {
  return add_bytes(thread, size, [&](Monitor::Thread& feed) {
    feed.read(address, size, location, {from, to});
  });
}
tsomon_monitor_status tsomon_monitor_write_between(tsomon_monitor_thread* thread,
                                                   const volatile void* address, size_t size,
                                                   uint32_t location, int64_t from, int64_t to) {
  return add_bytes(thread, size, [&](Monitor::Thread& feed) {
    feed.write(address, size, location, {from, to});
  });
}
tsomon_monitor_status tsomon_monitor_update_between(tsomon_monitor_thread* thread,
                                                    const volatile void* address, size_t size,
                                                    uint32_t location, int64_t from, int64_t to) {
  return add_bytes(thread, size, [&](Monitor::Thread& feed) {
    feed.update(address, size, location, {from, to});
  });
}
tsomon_monitor_status tsomon_monitor_fence(tsomon_monitor_thread* thread) {
  return add(thread, [](Monitor::Thread& feed) { feed.fence(); });
}
tsomon_monitor_status tsomon_monitor_acquire(tsomon_monitor_thread* thread,
                                             const volatile void* lock, uint32_t location) {
  return add(thread, [&](Monitor::Thread& feed) { feed.acquire(lock, location); });
}
tsomon_monitor_status tsomon_monitor_release(tsomon_monitor_thread* thread,
                                             const volatile void* lock, uint32_t location) {
  return add(thread, [&](Monitor::Thread& feed) { feed.release(lock, location); });
}
tsomon_monitor_status tsomon_monitor_allocated(tsomon_monitor_thread* thread,
                                               const volatile void* address, size_t size,
                                               uint32_t location) {
  return add(thread, [&](Monitor::Thread& feed) { feed.allocate(address, size, location); });
}
tsomon_monitor_status tsomon_monitor_freed(tsomon_monitor_thread* thread,
                                           const volatile void* address, uint32_t location) {
  return add(thread, [&](Monitor::Thread& feed) { feed.free(address, location); });
}
tsomon_monitor_status tsomon_monitor_fork(tsomon_monitor_thread* thread,
                                          const tsomon_monitor_thread* started) {
  return add_with(thread, started != nullptr,
                  [&](Monitor::Thread& feed) { feed.fork(started->feed); });
}
tsomon_monitor_status tsomon_monitor_join(tsomon_monitor_thread* thread, uint32_t ended) {
  return add(thread, [&](Monitor::Thread& feed) { feed.join(ended); });
}
tsomon_monitor_status tsomon_monitor_lost(tsomon_monitor_thread* thread, uint64_t events) {
  return add(thread, [&](Monitor::Thread& feed) { feed.lost(events); });
}
tsomon_monitor_status tsomon_monitor_pause(tsomon_monitor_thread* thread) {
  return add(thread, [](Monitor::Thread& feed) { feed.pause(); });
}
