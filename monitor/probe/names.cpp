// Names of threads and fibers, on their way to the capture.
#include <cstring>

#include "decoders/capture/writer.h"
#include "monitor/probe/chunk_writer.h"
#include "monitor/probe/copy.h"

namespace tsomon::probe {
namespace {

constexpr size_t kMaxName = 255;

struct Name {
  Name* next;
  uint32_t number;
  uint32_t size;
  char text[kMaxName + 1];
};
std::atomic<Name*> given{nullptr};
Name* taken = nullptr;  // of who writes

}  // namespace

void name_thread(const Thread* thread, const char* name) {
  const size_t size = strnlen(name, kMaxName);
  auto* const entry = static_cast<Name*>(take_memory(offsetof(Name, text) + size));
  if (entry == nullptr) {
    return;
  }
  entry->number = thread->number;
  entry->size = static_cast<uint32_t>(size);
  copy(entry->text, name, size);  // not memcpy, which is recorded
  entry->next = given.load(std::memory_order_relaxed);
  while (!given.compare_exchange_weak(entry->next, entry, std::memory_order_release,
                                      std::memory_order_relaxed)) {
  }
}

void forget_thread_names() {
  given.store(nullptr, std::memory_order_relaxed);
  taken = nullptr;
}

char* copy_thread_names(char* at, char* end) {
  for (;;) {
    if (taken == nullptr) {
      // The newest first: it is to be read last.
      for (Name* each = given.exchange(nullptr, std::memory_order_acquire); each != nullptr;) {
        Name* const next = each->next;
        each->next = taken;
        taken = each;
        each = next;
      }
    }
    if (taken == nullptr) {
      return at;
    }
    char* const next = capture::put_text(at, end, taken->number, taken->text, taken->size);
    if (next == nullptr) {
      return at;
    }
    at = next;
    taken = taken->next;
  }
}

}  // namespace tsomon::probe
