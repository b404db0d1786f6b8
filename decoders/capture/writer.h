// Appends chunks to a capture file, from inside the monitored program.
//
// Contract    open() once, then two ways to append:
//             write()      packs with zstd; one thread at a time (it owns the packing memory)
//             write_raw()  async-signal-safe: no lock, no allocation, one writev(2) system call
//                          unless the kernel takes only a part; from any thread, also while
//                          another one is inside write()
//             Every chunk is whole when the call returns, so the file is readable whenever the
//             process ends.
// Errors      errno values or kNotACapture (output_file.h), 0 for success. After a failed append
//             the writer stays usable; a torn chunk in the file costs the reader that chunk alone.
//             error() keeps the first failure.
// Cost        write() on records of real programs: see docs/measurements/recording.md.
// Dependencies: libc, zstd, xxhash (inlined). No C++ library at run time: it lives in programs that
// may not link one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "decoders/capture/format.h"
#include "decoders/capture/output_file.h"

struct ZSTD_CCtx_s;

namespace tsomon::capture {

class Writer {
 public:
  struct Options {
    uint64_t tsc_hz = 0;                 // 0: unknown
    const char* command_line = nullptr;  // arguments, each ended by a zero byte
    size_t command_line_size = 0;
    int level = 1;  // of zstd; negative levels are faster
    bool keep_existing = false;
    bool live = false;              // kOpen and kRound chunks will come
    bool unordered_stamps = false;  // kFileUnordered
    uint32_t selection = 0;         // kFileOnlySets, kFileStoresOutside
    bool may_cancel = false;        // kFileCancels
    bool slice = false;             // kFileSlice
  };

  Writer() = default;
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { close(); }

  // Creates or empties the file (a capture; nothing else is overwritten) and writes its header.
  // With keep_existing EEXIST when there is one: `tsomon record` removes an old file first, so a
  // second process then knows to write FILE.PID.
  int open(const char* path, const Options& options);
  // To this regular file, which the calling thread, that alone writes, has opened and gives away.
  int open(int descriptor, const Options& options);
  // The descriptor is closed, nothing is written. Safe to call twice.
  void close();
  bool is_open() const { return file_.is_open(); }
  // Where it is written, for who knows of threads.
  OutputFile& file() { return file_; }
  int error() const { return error_.load(std::memory_order_relaxed); }

  // `sequence` of events counts from 0 in each thread, given when the thread hands its buffer
  // over, so that a chunk that never arrives shows as a gap; it holds whole records. Chunks of
  // other types belong to the process and are numbered here: `thread` and `sequence` are ignored.
  // size <= kMaxChunkBytes, else EFBIG.
  int write(ChunkType type, uint32_t thread, uint64_t sequence, const void* data, size_t size);
  int write_raw(ChunkType type, uint32_t thread, uint64_t sequence, const void* data, size_t size);

  uint64_t bytes_written() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  int begin(const Options& options);
  int append(ChunkHeader& header, const void* payload, size_t size);
  bool reserve(size_t size);

  OutputFile file_;
  int level_ = 1;
  uint32_t tag_ = 0;
  std::atomic<uint64_t> process_chunks_{0};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<int> error_{0};
  ZSTD_CCtx_s* context_ = nullptr;
  void* packed_ = nullptr;
  size_t packed_size_ = 0;
};

// Payloads of the chunks with entries of variable length. Each appends to [at, end) and returns
// the place after the entry, or nullptr when there is no room.
char* put_text(char* at, char* end, uint32_t id, const char* text, uint32_t size);
char* put_set(char* at, char* end, const SetEntry& entry, const char* name);

}  // namespace tsomon::capture
