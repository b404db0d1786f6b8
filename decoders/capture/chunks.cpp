#include "decoders/capture/chunks.h"

#include <cstddef>
#include <cstring>

#include <fmt/format.h>
#include <zstd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tsomon::capture {
namespace {

template <typename Header>
Header load(std::string_view bytes) {
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  return header;
}

template <typename Header>
bool hash_holds(const Header& header) {
  return header.hash == XXH3_64bits(&header, offsetof(Header, hash));
}

std::string_view magic_bytes() {
  static const uint64_t magic = kChunkMagic;
  return {reinterpret_cast<const char*>(&magic), sizeof magic};
}

bool starts_with_file_magic(std::string_view bytes) {
  return bytes.size() >= sizeof kFileMagic &&
         std::memcmp(bytes.data(), &kFileMagic, sizeof kFileMagic) == 0;
}

// Walks the file; remembers where the last intact piece ended to report what lies between.
class Search {
 public:
  explicit Search(std::string_view bytes)
      : bytes_(bytes), may_hash_(4 * bytes.size() + kMaxChunkBytes) {}

  Result<ChunkList> run() {
    auto begin = file_header();
    if (!begin) {
      return tl::unexpected(begin.error());
    }
    intact_end_ = at_ = *begin;
    while (at_ < bytes_.size()) {
      const size_t found = bytes_.find(magic_bytes(), at_);
      if (found == std::string_view::npos) {
        break;
      }
      at_ = found;
      at_ = chunk_end().value_or(found + 1);
    }
    report_until(bytes_.size());
    return std::move(list_);
  }

 private:
  // Where chunks begin.
  Result<uint64_t> file_header() {
    if (!starts_with_file_magic(bytes_)) {
      // What follows may still be chunks.
      if (bytes_.find(magic_bytes()) == std::string_view::npos) {
        return fail(ErrorKind::kMalformed,
                    bytes_.empty()
                        ? "the file is empty; expected a capture"
                        : "expected a capture file, which begins with \"tsomon\\x1a\\n\"");
      }
      reason_ = "the file header is damaged";
      return 0;
    }
    if (bytes_.size() < sizeof(FileHeader)) {
      reason_ = "the file header is cut off";
      return 0;
    }
    const auto header = load<FileHeader>(bytes_);
    if (!hash_holds(header) || header.byte_order != kByteOrder ||
        header.header_size < sizeof(FileHeader)) {
      reason_ = "the file header is damaged";
      return 0;
    }
    if (header.major != kMajorVersion) {
      return fail(ErrorKind::kMalformed,
                  fmt::format("capture version {}.{}; this program reads version {}.x: record "
                              "again, or use the tsomon that recorded it",
                              header.major, header.minor, kMajorVersion));
    }
    list_.header = header;
    return std::min<uint64_t>(header.header_size, bytes_.size());
  }

  // With a chunk magic at at_: where to go on if that is known.
  std::optional<uint64_t> chunk_end() {
    const std::string_view rest = bytes_.substr(at_);
    if (rest.size() < sizeof(ChunkHeader)) {
      note("a chunk header is cut off by the end of the file");
      return std::nullopt;
    }
    const auto header = load<ChunkHeader>(rest);
    if (!hash_holds(header)) {
      note("a chunk header fails its checksum");
      return std::nullopt;
    }
    if (list_.header && header.tag != list_.header->tag) {
      note("a chunk of another capture");
      return std::nullopt;
    }
    const uint64_t body = at_ + sizeof header;
    const uint64_t left = bytes_.size() - body;
    if (header.stored_size > left) {
      note(fmt::format("{} is cut off by the end of the file: it has {} of {} bytes",
                       chunk_name(header), left, header.stored_size));
      return body;
    }
    if (header.stored_size > may_hash_) {  // hostile overlaps; an honest file never comes here
      note(fmt::format("{} overlaps others", chunk_name(header)));
      return body;
    }
    may_hash_ -= header.stored_size;
    const std::string_view stored = rest.substr(sizeof header, header.stored_size);
    if (XXH3_64bits(stored.data(), stored.size()) != header.payload_hash) {
      note(fmt::format("the payload of {} fails its checksum", chunk_name(header)));
      return body;
    }
    report_until(at_);
    list_.chunks.push_back({header, at_, stored});
    intact_end_ = body + header.stored_size;
    return intact_end_;
  }

  // The first reason is the cause; later ones in the same stretch are its consequences.
  void note(std::string reason) {
    if (reason_.empty()) {
      reason_ = std::move(reason);
    }
  }

  void report_until(uint64_t end) {
    if (end > intact_end_ || !reason_.empty()) {
      list_.damage.push_back(
          {intact_end_, end, reason_.empty() ? "these bytes are not a chunk" : reason_});
    }
    reason_.clear();
  }

  std::string_view bytes_;
  uint64_t may_hash_;
  uint64_t at_ = 0;
  uint64_t intact_end_ = 0;
  std::string reason_;
  ChunkList list_;
};

}  // namespace

bool looks_like_capture(std::string_view bytes) {
  return starts_with_file_magic(bytes) ||
         bytes.substr(0, 128).find(magic_bytes()) != std::string_view::npos;
}

Result<ChunkList> find_chunks(std::string_view bytes) { return Search(bytes).run(); }

bool intact(const ChunkHeader& header) { return hash_holds(header); }

Result<std::string> unpack(const Chunk& chunk) {
  const uint64_t size = chunk.header.raw_size;
  if ((chunk.header.flags & ~kFlagZstd) != 0) {
    return fail(ErrorKind::kDamaged,
                fmt::format("flags {:#x}; known: {:#x}", chunk.header.flags, kFlagZstd));
  }
  if (size > kMaxChunkBytes) {
    return fail(ErrorKind::kDamaged,
                fmt::format("unpacked size {}; the format allows {}", size, kMaxChunkBytes));
  }
  if ((chunk.header.flags & kFlagZstd) == 0) {
    if (chunk.stored.size() != size) {
      return fail(ErrorKind::kDamaged,
                  fmt::format("{} bytes stored unpacked, {} expected", chunk.stored.size(), size));
    }
    return std::string(chunk.stored);
  }
  // The frame's own statement bounds the memory that a forged header can ask for.
  if (ZSTD_getFrameContentSize(chunk.stored.data(), chunk.stored.size()) != size) {
    return fail(ErrorKind::kDamaged, "the zstd frame disagrees with the chunk about its size");
  }
  std::string raw(size, '\0');
  const size_t unpacked =
      ZSTD_decompress(raw.data(), raw.size(), chunk.stored.data(), chunk.stored.size());
  if (ZSTD_isError(unpacked) != 0 || unpacked != size) {
    return fail(ErrorKind::kDamaged,
                ZSTD_isError(unpacked) != 0
                    ? fmt::format("zstd: {}", ZSTD_getErrorName(unpacked))
                    : fmt::format("{} bytes unpacked, {} expected", unpacked, size));
  }
  return raw;
}

std::string chunk_name(const ChunkHeader& header) {
  return header.thread == kNoThread
             ? fmt::format("process chunk {}", header.sequence)
             : fmt::format("thread {}, chunk {}", header.thread, header.sequence);
}

}  // namespace tsomon::capture
