// What the kernel loads from a program's buffers, and stores there, in calls that send and receive.
//
// Records     Plain accesses between a stamp before the call and one behind it.
// Orders      The kernel loads what is sent before anyone receives it, and stores what is received
//             when it has been sent. Where somebody may have received, or has sent, while the call
//             was under way, no place in the order of the thread says so: then the accesses are among
//             those that are not to be reported (tso/model/channels.h). Elsewhere a second send
//             follows the loads, a receive precedes the stores.
// Misses      What a call stored that a signal handler interrupted; parts of a message beyond 60;
//             addresses of sockets, sets of poll and select.
// Thread-safety: each thread for itself. Async-signal-safe; errno is kept.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include <sys/socket.h>
#include <sys/uio.h>

#include "monitor/probe/descriptors.h"
#include "monitor/probe/library_calls.h"
#include "monitor/probe/records.h"

namespace tsomon::probe {

// Around a call by a thread that is recorded: made when nothing is left to do but the call.
class Transfer {
 public:
  // `parts`: of its buffers.
  static constexpr size_t kMostParts = 60;
  enum class Way : uint8_t {
    kSends,
    kSendsTo,  // an address
    kReceives,
  };
  Transfer(int descriptor, Way way, size_t parts, uint64_t pc);
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // It has been made: what it accessed, then end().
  void begin();
  void part(const volatile void* address, size_t size);
  void parts(const iovec* buffers, size_t count, size_t bytes);
  void messages(const mmsghdr* all, int count);
  // For more accesses than those; nullptr: they are not to be recorded.
  Accesses* accesses() { return open_ ? &accesses_ : nullptr; }
  void end();

 private:
  void point(RecordType type, uint64_t address, uint64_t stamp);
  bool alone() const;

  Accesses accesses_;
  Context* context_;
  uint64_t channel_;
  uint64_t pc_;
  uint64_t before_;
  uint64_t behind_ = 0;
  size_t left_;
  uint32_t interruptions_;
  Way way_;
  bool alone_ = false;
  bool open_ = false;
};

// Before a call by which what others send may be received there.
void may_receive(int descriptor);

// Whether a call did what it was to do.
template <typename Number>
bool was_done(Number result) {
  return result >= 0;
}
template <typename Object>
bool was_done(Object* result) {
  return result != nullptr;
}

// A call that sends through a descriptor, with what the kernel loads: `note(transfer, result)` says
// it, of a call that did it.
template <typename Call, typename Note>
auto sending(int descriptor, Transfer::Way way, size_t parts, uint64_t pc, Call call, Note note) {
  if (local.thread == nullptr) {
    return call();
  }
  sends_through(descriptor, pc);
  Transfer transfer(descriptor, way, parts, pc);
  const auto result = call();
  const int error = errno;
  if (was_done(result)) {
    transfer.begin();
    note(transfer, result);
    transfer.end();
  }
  errno = error;
  return result;
}

// One that receives, and may wait for it, with what the kernel stores.
template <typename Call, typename Note>
auto filling(int descriptor, size_t parts, uint64_t pc, Call call, Note note) {
  if (local.thread == nullptr) {
    return call();
  }
  may_receive(descriptor);
  uses_descriptor(descriptor, pc);
  drain_before_sleeping(pc);
  Transfer transfer(descriptor, Transfer::Way::kReceives, parts, pc);
  const auto result = call();
  const int error = errno;
  if (was_done(result)) {
    transfer.begin();
    note(transfer, result);
    transfer.end();
  }
  put_stamp_now();
  if (was_done(result)) {
    receives_through(descriptor, pc);
  }
  errno = error;
  return result;
}

}  // namespace tsomon::probe
