// Streams of the C library: what is written to one is sent through its descriptor at some time until it is
// flushed, and what is read from one was received through it.
//
// Purpose     Functions that are seen for what they access (other_calls.cpp, format_calls.cpp) order
//             like the system calls that they make (descriptors.h); streams.cpp has the others.
// Records     A send before each call that writes, a receive after each that reads, whether or not
//             the stream's buffer made a system call needless: whoever empties or filled it may be
//             another thread.
// Misses      Streams without a descriptor. Functions with names that end in _unlocked: orders only by
//             the call that flushes. fflush(nullptr), what is flushed at the end of the program.
// Thread-safety: each thread for itself. errno is kept.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdio>

#include "monitor/probe/buffers.h"

namespace tsomon::probe {

// Negative: it has none.
inline int descriptor_of(FILE* stream) {
  const int error = errno;
  const int descriptor = stream == nullptr ? -1 : fileno_unlocked(stream);
  errno = error;
  return descriptor;
}

// The call, and what it accessed: note(accesses, result).
template <typename Call, typename Note>
auto seen_call(uint64_t pc, Call call, Note note) {
  Accesses accesses(pc);
  const auto result = call();
  const int error = errno;
  note(accesses, result);
  errno = error;
  return result;
}

template <typename Call, typename Note>
auto writes_stream(FILE* stream, uint64_t pc, Call call, Note note) {
  const int descriptor = local.thread == nullptr ? -1 : descriptor_of(stream);
  if (descriptor < 0) {
    return seen_call(pc, call, note);
  }
  return sending(descriptor, Transfer::Way::kSends, Accesses::kMost, pc, call,
                 [&](Transfer& transfer, auto result) {
                   if (Accesses* const accesses = transfer.accesses()) {
                     note(*accesses, result);
                   }
                 });
}

template <typename Call, typename Note>
auto reads_stream(FILE* stream, uint64_t pc, Call call, Note note) {
  const int descriptor = local.thread == nullptr ? -1 : descriptor_of(stream);
  if (descriptor < 0) {
    return seen_call(pc, call, note);
  }
  return filling(descriptor, Accesses::kMost, pc, call, [&](Transfer& transfer, auto result) {
    if (Accesses* const accesses = transfer.accesses()) {
      note(*accesses, result);
    }
  });
}

}  // namespace tsomon::probe
