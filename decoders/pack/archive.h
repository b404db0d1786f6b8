// The container of a pack: an archive in POSIX's ustar form, compressed with zstd, which `tar --zstd` reads and writes.
//
// Purpose     One file that holds a recording and what reports on it need (docs/formats/pack.md). This room knows members
//             with names; what they are is known to monitor/process/packed_files.h.
// Members     Regular files alone. A name is a path within the archive: of ASCII without blanks, not absolute, without ".." and
//             empty parts. It is never the name of a file that is opened.
// Thread-safety: none; distinct objects are independent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tso/support/result.h"

struct ZSTD_CCtx_s;

namespace tsomon::pack {

// The beginning of a zstd frame.
constexpr uint32_t kMagic = 0xFD2FB528;
bool looks_like_pack(std::string_view first);

// What an archive unpacks to: at most so many bytes, and so many more for each byte of the file.
constexpr uint64_t kUnpackedAtFirst = uint64_t{64} << 20;
constexpr uint64_t kUnpackedPerByte = 64;
constexpr size_t kMostMembers = 4096;
constexpr uint64_t kMostMemberBytes = (uint64_t{1} << 33) - 1;  // eleven octal digits

// Whether a member may be called so.
bool is_member_name(std::string_view name);

struct Member {
  std::string name;
  uint64_t size = 0;
  int64_t modified = 0;  // seconds since 1970
  uint64_t offset = 0;   // of its header, in the unpacked archive

  std::string place() const;  // as errors have it
};

// Takes what an archive consists of, piece by piece.
using Sink = std::function<Result<void>(std::string_view bytes)>;

// Errors: of the sink; kUsage: a member has no valid name, is too large, or there are too many; the archive would unpack to more
// than its reader takes.
class ArchiveWriter {
 public:
  enum class Effort : uint8_t {
    kKept,     // for a file that is kept or sent
    kReadOnce  // as little as there is
  };
  explicit ArchiveWriter(Sink sink, Effort effort = Effort::kKept);
  ArchiveWriter(const ArchiveWriter&) = delete;
  ArchiveWriter& operator=(const ArchiveWriter&) = delete;
  ~ArchiveWriter();

  Result<void> add(const std::string& name, std::string_view bytes, int64_t modified);
  // Nothing may be added afterwards.
  Result<void> finish();
  uint64_t written() const { return written_; }  // bytes, packed

 private:
  Result<void> write(std::string_view bytes, bool last);

  Sink sink_;
  ZSTD_CCtx_s* context_;
  std::string packed_;
  uint64_t written_ = 0;
  uint64_t unpacked_ = 0;
  size_t members_ = 0;
};

// Errors: kMalformed with the member and where its header is in the unpacked archive: what is no archive, is damaged (zstd's
// checksum) or cut off, has other members than regular files, or unpacks to too much.
// Memory: 8 MiB at most for what the writer makes, zstd's window (128 MiB) at most.
class ArchiveReader {
 public:
  // `bytes` must stay.
  explicit ArchiveReader(std::string_view bytes);
  ArchiveReader(const ArchiveReader&) = delete;
  ArchiveReader& operator=(const ArchiveReader&) = delete;
  ~ArchiveReader();

  // The next member; false at the end of the archive. What was not read of the one before is left out.
  Result<bool> next(Member& member);
  // The bytes of the member that come next, until the next call; empty at its end.
  Result<std::string_view> read();

 private:
  struct Stream;
  Result<bool> take_header(std::string_view header, Member& member);
  Result<std::string_view> take(size_t most);
  Result<void> finish();
  tl::unexpected<Error> malformed(const std::string& what) const;

  std::unique_ptr<Stream> stream_;
  Member member_;
  uint64_t left_ = 0;     // of the member
  uint64_t padding_ = 0;  // after it
  size_t members_ = 0;
  bool in_member_ = false;
  bool ended_ = false;
};

}  // namespace tsomon::pack
