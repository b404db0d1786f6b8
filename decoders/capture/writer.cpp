#include "decoders/capture/writer.h"

#include <cerrno>
#include <cstring>

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>
#include <zstd.h>

#include "decoders/capture/clock_entry.h"
#include "decoders/capture/kernel_calls.h"

// Inlined: hashing then needs no library and no allocation, also in a signal handler.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tsomon::capture {

int Writer::open(const char* path, const Options& options) {
  close();
  if (const int failed = file_.open(path, options.keep_existing && !options.live); failed != 0) {
    return failed;
  }
  return begin(options);
}

int Writer::open(int descriptor, const Options& options) {
  close();
  if (const int failed = file_.take(descriptor); failed != 0) {
    return failed;
  }
  return begin(options);
}

int Writer::begin(const Options& options) {
  level_ = options.level;
  process_chunks_.store(0, std::memory_order_relaxed);
  bytes_.store(0, std::memory_order_relaxed);
  error_.store(0, std::memory_order_relaxed);

  FileHeader header;
  header.pid = static_cast<uint32_t>(getpid());
  header.flags = (options.unordered_stamps ? kFileUnordered : 0) | (options.live ? kFileLive : 0) |
                 options.selection | (options.may_cancel ? kFileCancels : 0) |
                 (options.slice ? kFileSlice : 0);
  header.tsc_hz = options.tsc_hz;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  header.tsc = __rdtsc();
  header.wall_ns =
      static_cast<uint64_t>(now.tv_sec) * 1000000000U + static_cast<uint64_t>(now.tv_nsec);
  const uint64_t mixed =
      (header.tsc ^ (static_cast<uint64_t>(header.pid) << 32)) * 0x9E3779B97F4A7C15U;
  header.tag = tag_ = static_cast<uint32_t>(mixed >> 32);
  header.hash = XXH3_64bits(&header, offsetof(FileHeader, hash));
  iovec part = {&header, sizeof header};
  if (const int failed = file_.append(&part, 1, &bytes_); failed != 0) {
    close();
    return failed;
  }
  if (options.command_line_size != 0) {
    return write_raw(ChunkType::kCommandLine, kNoThread, 0, options.command_line,
                     options.command_line_size);
  }
  return 0;
}

void Writer::close() {
  file_.close();
  ZSTD_freeCCtx(context_);  // accepts nullptr
  context_ = nullptr;
  if (packed_ != nullptr) {
    kernel::munmap(packed_, packed_size_);
    packed_ = nullptr;
    packed_size_ = 0;
  }
}

bool Writer::reserve(size_t size) {
  if (context_ == nullptr) {
    context_ = ZSTD_createCCtx();
    if (context_ == nullptr) {
      return false;
    }
    ZSTD_CCtx_setParameter(context_, ZSTD_c_compressionLevel, level_);
  }
  if (size <= packed_size_) {
    return true;
  }
  if (packed_ != nullptr) {
    kernel::munmap(packed_, packed_size_);
    packed_size_ = 0;
  }
  packed_ = kernel::mmap(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (packed_ == MAP_FAILED) {
    packed_ = nullptr;
    return false;
  }
  packed_size_ = size;
  return true;
}

int Writer::write(ChunkType type, uint32_t thread, uint64_t sequence, const void* data,
                  size_t size) {
  if (size > kMaxChunkBytes) {
    return EFBIG;
  }
  if (!reserve(ZSTD_compressBound(size))) {
    return write_raw(type, thread, sequence, data, size);  // no memory to pack: still recorded
  }
  const size_t packed = ZSTD_compress2(context_, packed_, packed_size_, data, size);
  if (ZSTD_isError(packed) != 0 || packed >= size) {
    return write_raw(type, thread, sequence, data, size);
  }
  ChunkHeader header;
  header.type = static_cast<uint32_t>(type);
  header.flags = kFlagZstd;
  header.thread = thread;
  header.sequence = sequence;
  header.raw_size = size;
  return append(header, packed_, packed);
}

int Writer::write_raw(ChunkType type, uint32_t thread, uint64_t sequence, const void* data,
                      size_t size) {
  if (size > kMaxChunkBytes) {
    return EFBIG;
  }
  ChunkHeader header;
  header.type = static_cast<uint32_t>(type);
  header.thread = thread;
  header.sequence = sequence;
  header.raw_size = size;
  return append(header, data, size);
}

int Writer::append(ChunkHeader& header, const void* payload, size_t size) {
  if (!file_.is_open()) {
    return EBADF;
  }
  if (header.type != static_cast<uint32_t>(ChunkType::kEvents) &&
      header.type != static_cast<uint32_t>(ChunkType::kOpen) &&
      header.type != static_cast<uint32_t>(ChunkType::kPart)) {
    header.thread = kNoThread;
    header.sequence = process_chunks_.fetch_add(1, std::memory_order_relaxed);
  }
  header.tag = tag_;
  header.stored_size = size;
  header.payload_hash = XXH3_64bits(payload, size);
  header.hash = XXH3_64bits(&header, offsetof(ChunkHeader, hash));

  iovec parts[2] = {{&header, sizeof header}, {const_cast<void*>(payload), size}};
  const int saved_errno = errno;
  const int failed = file_.append(parts, 2, &bytes_);
  if (failed != 0) {
    int none = 0;
    error_.compare_exchange_strong(none, failed, std::memory_order_relaxed);
  }
  errno = saved_errno;
  return failed;
}

char* put_set(char* at, char* end, const SetEntry& entry, const char* name) {
  if (static_cast<size_t>(end - at) < sizeof entry + entry.name_size) {
    return nullptr;
  }
  std::memcpy(at, &entry, sizeof entry);
  std::memcpy(at + sizeof entry, name, entry.name_size);
  return at + sizeof entry + entry.name_size;
}

char* put_text(char* at, char* end, uint32_t id, const char* text, uint32_t size) {
  const TextEntry entry{id, size};
  if (static_cast<size_t>(end - at) < sizeof entry + size) {
    return nullptr;
  }
  std::memcpy(at, &entry, sizeof entry);
  std::memcpy(at + sizeof entry, text, size);
  return at + sizeof entry + size;
}

}  // namespace tsomon::capture
