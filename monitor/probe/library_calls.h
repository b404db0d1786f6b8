// What functions of the C library read and write for the program.
//
// Purpose     The wrappers link with --wrap for the names in tools/tsomon-wrapped: calls by the program's own
//             objects come to __wrap_NAME in the files *_calls.cpp, which record what the function accesses
//             and call it. Calls by libraries do not. Where the program defines such a name itself,
//             the wrapper leaves that name alone.
// Own calls   In the runtime's archive calls of these names are renamed to __real_NAME
//             (monitor/probe/CMakeLists.txt), which the linker makes the library's own.
// Order       How far a function reads a string is known when it has read it. So a place for the
//             records is reserved first, with the stamp that is due: the access lies between
//             it and the stamp behind the records.
// Exploring   A program under control gets its own copy of what the function reads, loaded step by
//             step, and what the function wrote is stored step by step.
// Misses      What other threads change between two looks of a function and its record. Parts that vector
//             instructions read behind the end of a string: nothing depends on them.
// Thread-safety: as the functions. Async-signal-safe where they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "monitor/explore/runtime/runtime.h"
#include "monitor/probe/record_stamps.h"
#include "monitor/probe/runtime.h"

namespace tsomon::probe {

// Whether anybody wants to know what the calling thread accesses.
inline bool is_seen() { return TSOMON_UNLIKELY(local.thread != nullptr || explore::active); }

inline constexpr size_t kNoBound = ~size_t{0};

// Accesses that were made since this began.
class Accesses {
 public:
  // Room for so many records, unless another number of them is asked for.
  static constexpr uint32_t kMost = 8;

  explicit Accesses(uint64_t pc, uint32_t most = kMost) : pc_(pc) {
    if (explore::active) {
      return;
    }
    context_ =
        capture::has_room(local.context->encoder, most + 1) ? local.context : writable_slow();
    if (context_ == nullptr) {
      return;
    }
    if (context_->encoder.end == context_->begun) {
      look_at_clock(*context_);
    } else if (stamp_due(*context_)) {
      put_stamp(*context_);
    }
    since_ = context_->since;
    context_->since = 0;
  }
  ~Accesses() {
    if (context_ != nullptr) {
      context_->since += since_;
    }
  }
  Accesses(const Accesses&) = delete;
  Accesses& operator=(const Accesses&) = delete;

  // Where they are recorded; nullptr: nowhere.
  Context* context() const { return context_; }
  void load(const volatile void* from, size_t size) { put(RecordType::kRead, from, size); }
  void store(const volatile void* to, size_t size) { put(RecordType::kWrite, to, size); }
  // A string with its end, or with `most` characters.
  template <typename Character>
  void load_text(const Character* text, size_t most = kNoBound) {
    size_t size = 0;
    while (size < most && text[size] != 0) {
      ++size;
    }
    load(text, (size + (size < most ? 1 : 0)) * sizeof(Character));
  }
  void load_text(const char* text, size_t most = kNoBound) {
    const size_t size = most == kNoBound ? std::strlen(text) : strnlen(text, most);
    load(text, size + (size < most ? 1 : 0));
  }

 private:
  void put(RecordType type, const volatile void* address, size_t size) {
    if (size == 0) {
      return;
    }
    if (explore::active) {
      explore::range(type == RecordType::kWrite, address, size, pc_);
    } else if (context_ != nullptr) {
      put_range(type, address, size, pc_);
    }
  }

  const Unrecorded unrecorded_;
  Context* context_ = nullptr;
  uint64_t pc_;
  uint64_t since_ = 0;
};

// What a function reads, in a program under control: a copy of its own. Elsewhere, and where there
// is one thread, it is what it is a copy of.
template <typename Character>
class Explored {
 public:
  // `size` characters; with `text` up to the first that is 0.
  Explored(const Character* from, size_t size, bool text, uint64_t pc) : at_(from), from_(from) {
    if (!explore::is_concurrent()) {
      return;
    }
    const size_t room = text ? length(from, size) + 64 : size;
    auto* to = room <= kSmall
                   ? small_
                   : static_cast<Character*>(explore::allocate(room * sizeof(Character), 16));
    if (to == nullptr) {
      return;
    }
    size_t have = 0;
    for (bool ended = false; have < (text && size > room ? room : size) && !ended; ++have) {
      explore::load_copy(to + have, from + have, sizeof(Character), pc);
      ended = text && to[have] == 0;
    }
    if (text && have == room) {
      to[room - 1] = 0;
    }
    at_ = to;
  }
  const Character* at() const { return at_; }
  // Where that is in the program's memory.
  Character* original(const Character* place) const {
    return place == nullptr ? nullptr : const_cast<Character*>(from_ + (place - at_));
  }

 private:
  static constexpr size_t kSmall = 512;
  static size_t length(const Character* text, size_t most) {
    size_t size = 0;
    while (size < most && text[size] != 0) {
      ++size;
    }
    return size;
  }
  const Character* at_;
  const Character* from_;
  Character small_[kSmall];
};

// To the program's memory, from one that is nobody else's.
inline void explored_store(void* to, const void* from, size_t size, uint64_t pc) {
  if (!explore::copy(to, from, size, pc)) {
    std::memmove(to, from, size);
  }
}

}  // namespace tsomon::probe

#define TSOMON_WRAP(RESULT, NAME, PARAMETERS) TSOMON_HOOK RESULT __wrap_##NAME PARAMETERS
