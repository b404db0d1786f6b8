// The capture file: a header, then chunks in any order. All of it: docs/formats/capture.md.
//
// Bytes       Little endian (the only byte order of x86-64; the header says so), no padding.
// Checks      XXH3-64 of every chunk's stored payload and of every chunk header, so that a reader
//             can tell damage from data and find the next chunk after damage by its magic.
// Appending   A chunk is appended with one system call. Several threads and a signal handler may
//             append at once; the order of a thread's chunks is given by their sequence numbers.
// Versions    A reader refuses another major version. A newer minor version only adds chunk types,
//             record types, tokens and words at the end.
//
// Header only, no dependencies: it is compiled into monitored programs.
#pragma once

#include <cstdint>

namespace tsomon::capture {

inline constexpr uint64_t kFileMagic = 0x0A1A6E6F6D6F7374;   // "tsomon\x1a\n"
inline constexpr uint64_t kChunkMagic = 0x4B4E554843C3A5B1;  // never inside a payload but by chance
inline constexpr uint16_t kMajorVersion = 3;
inline constexpr uint16_t kMinorVersion = 5;
inline constexpr uint32_t kByteOrder = 0x01020304;

// Time stamps of different threads must not be compared: the reader opens all intervals.
inline constexpr uint32_t kFileUnordered = 1;
inline constexpr uint32_t kFileLive = 2;  // rounds come while the process runs (ChunkType::kRound)
// What the user chose to leave out, which is no loss: accesses to memory outside of all
// declared sets (of locked ones the fence is there); plain loads outside of all units.
inline constexpr uint32_t kFileOnlySets = 4;
inline constexpr uint32_t kFileStoresOutside = 8;
// Units may be cancelled: one whose end is not there may have been about to be. Records of type
// kUnitCancel can come without it, from a library that was loaded later.
inline constexpr uint32_t kFileCancels = 16;
// A slice of a program that is watched for a while: what threads did that take no part, or before they
// did, is not there, so no value tells who stored it.
inline constexpr uint32_t kFileSlice = 32;

struct FileHeader {
  uint64_t magic = kFileMagic;
  uint16_t major = kMajorVersion;
  uint16_t minor = kMinorVersion;
  uint32_t byte_order = kByteOrder;
  uint32_t header_size = 64;  // chunks start here
  uint32_t tag = 0;           // repeated in every chunk: no chunk of another file is taken for ours
  uint32_t pid = 0;
  uint32_t flags = 0;    // kFileUnordered and so on
  uint64_t tsc_hz = 0;   // frequency of the time-stamp counter; 0: unknown
  uint64_t tsc = 0;      // read at the same moment as
  uint64_t wall_ns = 0;  // ... CLOCK_REALTIME, in nanoseconds
  uint64_t hash = 0;     // XXH3-64 of the 56 bytes before
};
static_assert(sizeof(FileHeader) == 64);

enum class ChunkType : uint32_t {
  kEvents = 1,   // packed records of one thread, see tokens.h; sequence counts from 0 per thread
  kModules = 2,  // ModuleEntry and its bytes, repeated
  kLabels = 3,   // TextEntry: label of a unit by id
  kThreadNames = 4,  // TextEntry: name of a thread by number
  kCommandLine = 5,  // arguments, each ended by a zero byte
  kEnd = 6,          // the trailer: EndEntry for every thread
  kSets = 7,         // SetEntry and its bytes: ranges that were declared part of atomic sets
  // In a live capture, again and again:
  kOpen = 8,   // OpenEntry, then the first part of the kEvents chunk of the same thread and
               // sequence, which follows when it is whole; only the entry when nothing was added
  kRound = 9,  // RoundEntry: ends a round of kOpen chunks
  // 10 is of a later version.
  kPart = 11,  // PartEntry, then more of the kEvents chunk of the same thread and sequence, which
               // follows when it is whole: until then the parts are what there is of it
  kNotInstrumented = 12,  // TextEntry by NotInstrumented: code that runs without hooks
};

inline constexpr uint32_t kNoThread = 0xFFFFFFFF;      // chunks of the whole process
inline constexpr uint32_t kFlagZstd = 1;               // payload is one zstd frame
inline constexpr uint64_t kMaxChunkBytes = 64U << 20;  // of a payload, before and after zstd

struct ChunkHeader {
  uint64_t magic = kChunkMagic;
  uint32_t type = 0;
  uint32_t flags = 0;
  uint32_t thread = kNoThread;
  uint32_t tag = 0;  // FileHeader::tag
  uint64_t sequence = 0;
  uint64_t raw_size = 0;      // bytes of the payload when unpacked
  uint64_t stored_size = 0;   // bytes of the payload in the file
  uint64_t payload_hash = 0;  // XXH3-64 of the stored payload
  uint64_t hash = 0;          // XXH3-64 of the 56 bytes before
};
static_assert(sizeof(ChunkHeader) == 64);

// One entry for each range of addresses that a module's code occupies.
struct ModuleEntry {
  uint64_t bias = 0;   // address in memory minus address in the file (dl_phdr_info::dlpi_addr)
  uint64_t begin = 0;  // first address of the range in memory
  uint64_t end = 0;    // one past the last
  uint32_t path_size = 0;
  uint32_t build_id_size = 0;  // bytes of the GNU build-id; 0: has none
  // then path_size bytes of path, then the build-id
};
static_assert(sizeof(ModuleEntry) == 32);

struct TextEntry {
  uint32_t id = 0;
  uint32_t size = 0;
  // then `size` bytes
};
static_assert(sizeof(TextEntry) == 8);

enum class NotInstrumented : uint32_t {
  kLinked = 0,         // objects of the program and their share, in words
  kModule = 1,         // path of a loaded module
  kSystemModules = 2,  // how many of the system's are loaded, in digits; a later entry replaces it
  kAssembly = 4,       // an asm statement that is not understood: its place and an instruction
  kShared = 5,         // memory that other processes may write: how the program got it
  kChildren = 3,       // how often it forked without follow_fork=1, likewise
};

struct SetEntry {
  uint64_t address = 0;
  uint64_t size = 0;
  uint32_t name_size = 0;  // 0: declarations are missing from here on
  uint32_t reserved = 0;
  // then the name
};
static_assert(sizeof(SetEntry) == 24);

// What the process knows at its end about one thread: what is missing shows by comparison.
struct EndEntry {
  uint32_t thread = 0;
  uint32_t reserved = 0;
  uint64_t chunks = 0;  // kEvents chunks handed over: sequence numbers are below this
  uint64_t bytes = 0;   // of their payloads, unpacked
  uint64_t lost = 0;    // records that were dropped, beyond those that kLost records count
  uint64_t cut = 0;     // time stamp of the end: what was recorded later does not count
};
static_assert(sizeof(EndEntry) == 40);

// What another thread observed of the one that records. What is in the chunks so far was recorded
// before `until`: all but the accesses of the last two records were also performed. What is not,
// was performed after `since` (0: nothing is known), and its stamps are later.
struct OpenEntry {
  uint64_t since = 0;
  uint64_t until = 0;
};
static_assert(sizeof(OpenEntry) == 16);

// Bytes [from, ...) of the payload follow; the last `tail` of them end it for as long as no later
// part of the same payload comes, which begins before them.
struct PartEntry {
  uint32_t from = 0;
  uint32_t tail = 0;
};
static_assert(sizeof(PartEntry) == 8);

// All that was recorded before `since` is in the chunks so far, but for the threads that follow.
struct RoundEntry {
  uint64_t since = 0;
  // then 32-bit numbers of threads
};
static_assert(sizeof(RoundEntry) == 8);

}  // namespace tsomon::capture
