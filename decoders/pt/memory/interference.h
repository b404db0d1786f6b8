// When the threads of a process may have written to its files' data: for proofs that a word is
// still what a thread has stored or loaded there.
//
// Purpose     ThreadStores listens to one thread's accesses and keeps what it may have stored to
//             writable data of mapped files, and from when to when. Interference asks those of the
//             other threads.
// Time        A store takes effect between its issue and the end of the next locked operation or
//             full fence of its thread (x86-TSO: the store buffer is then empty); without one, at
//             any later time. What the kernel writes for a system call, likewise.
// Where       At the address, where that is known; else within the bounds that its computation has
//             (an index that was masked); else anywhere. Where it is not known, stores to the
//             thread's own stack, also through an index of at most 32 bits, and those through fs to
//             its own block at a constant offset are to no file's data. The loader, while it binds
//             a symbol, writes to its own data and to words that are bound late. Where a path goes
//             on elsewhere the kernel may have written anywhere, and so may an instruction that was
//             interrupted half done.
// Before      A thread may have stored anything before its path begins: it counts until its first
//             fence. One that was created in the trace begins where a call that creates threads
//             returns.
// After       Unless the path ends with the thread, it may store anything from its end on.
// No proofs   where a path has a gap; where more threads were perhaps created than have paths;
//             where another process may have come to share the memory, or another program began;
//             where other memory may have come in the place of a file's data (munmap, mremap, fixed
//             mappings but private ones of files); where the kernel was called in ways that are not
//             known. What the C library's loader maps, and unmaps before the program begins, is
//             taken to be where no data is.
// Relies on   All threads of the process being traced all the time (the caller says so). No writes
//             from elsewhere: ptrace, process_vm_writev, /proc/self/mem, io_uring, devices. Private
//             mappings of files' data, as loaders make them, that neither a stack nor a thread's
//             block lies in.
// Memory      One entry for each word of data and span between two fences that stores to it; a
//             store of more than 64 bytes is one to each page. A thread that stores to more than a
//             million words stores anywhere. Asking: O(log entries), however many threads there
//             are.
// Thread-safety: asking is safe to do concurrently.
#pragma once

#include <cstdint>
#include <vector>

#include <tsl/robin_map.h>

#include "decoders/pt/flow/path_times.h"
#include "decoders/pt/memory/accesses.h"
#include "decoders/pt/values/system_calls.h"

namespace tsomon::pt {

// When threads may have written to one place.
class WriteTimes {
 public:
  void add(size_t thread, int64_t from, int64_t until) { all_.push_back({from, until, thread}); }
  // After the last one.
  void finish();
  // Whether another thread than `but` may have written in [from, to].
  bool meets(size_t but, int64_t from, int64_t to) const;

 private:
  struct Time {
    int64_t from;
    int64_t until;  // of this one and those before it, the last; finish() makes it so
    size_t thread;  // whose that is
    int64_t others_until = kTimeMin;  // likewise, of the other threads
  };
  std::vector<Time> all_;
};

// Of all threads together.
struct StoreTimes {
  struct Wide {
    x86::ByteRange range;  // in one page
    WriteTimes times;
  };
  WriteTimes anywhere;
  WriteTimes by_binding;
  tsl::robin_map<uint64_t, WriteTimes> words;
  tsl::robin_map<uint64_t, std::vector<Wide>> pages;
};

class ThreadStores : public AccessSink {
 public:
  // All must outlive the listening.
  ThreadStores(const ThreadPath& path, const PathTimes& times, const ReadOnlyData& constants);

  void binds() override { binds_ = true; }
  void system_call(const SystemCall& call) override;
  void began(const x86::RegisterFile& registers) override { began_ = registers; }
  void entry(const PathEntry& entry, const std::vector<FoundAccess>& accesses) override;
  // The end of the path.
  void finish();

  // When it may have written and where, for those who ask for other threads.
  void add_times(StoreTimes& to) const;
  bool may_change_by_binding(uint64_t address, unsigned size) const {
    return constants_.may_change_by_binding(path_.process, address, size);
  }
  // It was created in the trace, not before this.
  void begins_at(int64_t time) { begin_ = time; }
  // Its position among those that are asked together.
  void number(size_t number) { number_ = number; }
  size_t number() const { return number_; }

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
  // What is known of the registers before the path.
  const x86::RegisterFile& began() const { return began_; }
  int64_t first() const { return first_; }         // when the path begins at the latest
  uint64_t first_ip() const { return first_ip_; }  // 0: not with a block
  uint64_t unknown() const { return unknown_; }    // accesses

 private:
  static constexpr uint64_t kMostBytes = 1 << 16;  // of one store; more is anywhere
  static constexpr size_t kMostSpans = 256;        // of one word, before they are put together
  static constexpr size_t kMostWords = size_t{1} << 20;

  struct StoreSpan {
    int64_t from;
    size_t fence;  // that ends it, by number
  };
  using StoreSpans = std::vector<StoreSpan>;
  struct Wide {
    x86::ByteRange range;  // in one page
    StoreSpans spans;
  };

  bool remaps_data(const SystemCall& call);
  bool maps_as_loader(const SystemCall& call);
  void access(const FoundAccess& found);
  void write(const x86::ByteRange& range);
  void write_wide(const x86::ByteRange& range);
  void write_anywhere() { add(binds_ ? by_binding_ : anywhere_); }
  void add(StoreSpans& to) const;
  void add_times(const StoreSpans& spans, WriteTimes& to) const;
  int64_t end_of(size_t fence) const { return fence < fences_.size() ? fences_[fence] : kTimeMax; }

  const ThreadPath& path_;
  const PathTimes& times_;
  const ReadOnlyData& constants_;
  size_t next_ = 0;              // entry
  size_t at_ = 0;                // the last one
  size_t starting_ = 0;          // up to this one, all are the C library's as far as was looked
  std::vector<int64_t> fences_;  // when each has ended
  StoreSpans anywhere_;
  StoreSpans by_binding_;  // likewise, of the loader's while it binds symbols
  tsl::robin_map<uint64_t, StoreSpans> words_;
  tsl::robin_map<uint64_t, std::vector<Wide>> pages_;  // what is wider than some words
  uint64_t no_data_ = 0;                               // a page where there is none
  size_t number_ = 0;
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

class Interference {
 public:
  // Of all threads of a process, which must outlive this.
  explicit Interference(std::vector<ThreadStores*> threads);

  // Whether anything can be proved.
  bool complete() const { return complete_; }
  // The threads that calls of creations() have created, by position: as many as there are calls,
  // if complete().
  const std::vector<size_t>& created() const { return created_; }
  // Whether another thread than this one may have written there in [from, to].
  // `size`: at most 8.
  bool may_write(const ThreadStores* but, uint64_t address, unsigned size, int64_t from,
                 int64_t to) const;

 private:
  std::vector<ThreadStores*> threads_;
  std::vector<size_t> created_;
  StoreTimes times_;
  bool complete_ = true;
};

}  // namespace tsomon::pt
