// When the threads of a process may have written to its files' data: for proofs that a word is
// still what a thread has stored or loaded there.
//
// Purpose     ThreadStores listens to one thread's accesses and keeps what it may have stored to
//             writable data of mapped files, and from when to when. OtherWriters asks those of the
//             other threads.
// Time        A store takes effect between its issue and the end of the next locked operation or
//             full fence of its thread (x86-TSO: the store buffer is then empty); without one, at
//             any later time. What the kernel writes for a system call, likewise.
// Where       At the address, where that is known; else within the bounds that its computation has
//             (an index that was masked); else anywhere. Stores to the thread's own stack and
//             those through fs to its own block at a constant offset are to no file's data. The
//             loader, while it binds a symbol, writes to its own data and to words that are bound
//             late.
// Before      A thread may have stored anything before its path begins: it counts until its first
//             fence. One that was created in the trace begins where a call that creates threads
//             returns.
// After       Unless the path ends with the thread, it may store anything from its end on.
// No proofs   where a path has a gap; where more threads were perhaps created than have paths;
//             where another process may have come to share the memory, or another program began.
// Relies on   All threads of the process being traced all the time (the caller says so). No writes
//             from elsewhere: ptrace, process_vm_writev, io_uring, devices. Private mappings of
//             files' data, as loaders make them, that no stack lies in.
// Memory      One entry for each word of data and stretch between two fences that stores to it.
// Thread-safety: asking is safe to do concurrently.
#pragma once

#include <cstdint>
#include <vector>

#include <tsl/robin_map.h>

#include "decoders/pt/accesses.h"
#include "decoders/pt/path_times.h"
#include "decoders/pt/system_calls.h"

namespace tsomon::pt {

class ThreadStores : public AccessSink {
 public:
  // All must outlive the listening.
  ThreadStores(const ThreadPath& path, const PathTimes& times, const Constants& constants);

  void binds() override { binds_ = true; }
  void system_call(const SystemCall& call) override;
  void began(const x86::RegisterFile& registers) override { began_ = registers; }
  void entry(const PathEntry& entry, const std::vector<FoundAccess>& accesses) override;
  // The end of the path.
  void finish();

  // Whether a byte of it may have been written to in [from, to]. `size`: at most 8.
  bool may_write(uint64_t address, unsigned size, int64_t from, int64_t to) const;
  // It was created in the trace, not before this.
  void begins_at(int64_t time) { begin_ = time; }

  const ThreadPath& path() const { return path_; }
  bool lost() const { return lost_; }
  bool shares() const { return shares_; }
  struct Creation {
    size_t entry = 0;   // that ends with the call
    uint64_t site = 0;  // where it returns
    int64_t from = 0;   // not before this
    NewThread creates;  // nothing known: of other calls than clone and clone3
  };
  // Calls that have perhaps created a thread.
  const std::vector<Creation>& creations() const { return creations_; }
  // What is known of the registers in front of the path.
  const x86::RegisterFile& began() const { return began_; }
  int64_t first() const { return first_; }         // when the path begins at the latest
  uint64_t first_ip() const { return first_ip_; }  // 0: not with a block
  uint64_t unknown() const { return unknown_; }    // accesses

 private:
  static constexpr uint64_t kGranule = 8;
  static constexpr uint64_t kMostBytes = 1 << 16;  // of one store; more is anywhere
  static constexpr size_t kMostStretches = 256;    // of one word, before they are put together

  struct Stretch {
    int64_t from;
    size_t fence;  // that ends it, by number
  };
  using Stretches = std::vector<Stretch>;

  void access(const FoundAccess& found);
  void write(const x86::ByteRange& range);
  void write_anywhere() { add(binds_ ? by_binding_ : anywhere_); }
  void add(Stretches& to) const;
  bool meets(const Stretches& stretches, int64_t from, int64_t to) const;
  int64_t end_of(size_t fence) const { return fence < fences_.size() ? fences_[fence] : kTimeMax; }

  const ThreadPath& path_;
  const PathTimes& times_;
  const Constants& constants_;
  size_t next_ = 0;              // entry
  size_t at_ = 0;                // the last one
  std::vector<int64_t> fences_;  // when each has ended
  Stretches anywhere_;
  Stretches by_binding_;  // likewise, of the loader's while it binds symbols
  tsl::robin_map<uint64_t, Stretches> words_;
  int64_t begin_ = kTimeMin;  // what it stored before its first fence may be from here on
  int64_t end_ = kTimeMax;    // from here on it may store anything
  int64_t first_ = kTimeMax;
  uint64_t first_ip_ = 0;
  bool binds_ = false;
  bool lost_ = false;
  bool shares_ = false;
  bool ended_ = false;  // by a call
  std::vector<Creation> creations_;
  x86::RegisterFile began_;
  uint64_t unknown_ = 0;
};

class OtherWriters {
 public:
  // Of all threads of a process, which must outlive this.
  explicit OtherWriters(std::vector<ThreadStores*> threads);

  // Whether anything can be proved.
  bool complete() const { return complete_; }
  // The threads that calls of creations() have created, by position: as many as there are calls,
  // if complete().
  const std::vector<size_t>& created() const { return created_; }
  // Whether another thread than this one may have written there in [from, to].
  bool may_write(const ThreadStores* but, uint64_t address, unsigned size, int64_t from,
                 int64_t to) const;

 private:
  std::vector<ThreadStores*> threads_;
  std::vector<size_t> created_;
  bool complete_ = true;
};

}  // namespace tsomon::pt
