#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <zstd.h>

#include "decoders/pack/archive.h"
#include "decoders/pack/ustar.h"
#include "tso/support/work.h"

namespace tsomon::pack {
namespace {

// Octal digits, perhaps between blanks, up to a zero byte.
template <size_t Size>
std::optional<uint64_t> number_in(const std::array<char, Size>& field) {
  std::string_view text(field.data(), field.size());
  text = text.substr(0, text.find('\0'));
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  text = text.substr(0, text.find(' '));
  uint64_t number = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '7') {
      return std::nullopt;
    }
    number = 8 * number + static_cast<uint64_t>(digit - '0');
  }
  return text.empty() ? std::nullopt : std::optional(number);
}

template <size_t Size>
std::string text_in(const std::array<char, Size>& field) {
  return {field.begin(), std::find(field.begin(), field.end(), '\0')};
}

const char* name_of_type(char type) {
  switch (type) {
    case '1':
      return "a hard link";
    case '2':
      return "a symbolic link";
    case '3':
    case '4':
      return "a device";
    case '5':
      return "a folder";
    case '6':
      return "a named pipe";
    default:
      return "of an unknown kind";
  }
}

}  // namespace

bool looks_like_pack(std::string_view first) {
  return first.size() >= sizeof kMagic && std::memcmp(first.data(), &kMagic, sizeof kMagic) == 0;
}

bool is_member_name(std::string_view name) {
  const bool plain =
      std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  if (!plain || name.empty()) {
    return false;
  }
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") {
      return false;
    }
    begin = end + 1;
  }
  return true;
}

std::string Member::place() const {
  return name.empty() ? fmt::format("byte {} of the archive", offset)
                      : fmt::format("member '{}' at byte {} of the archive", name, offset);
}

struct ArchiveReader::Stream {
  explicit Stream(std::string_view bytes)
      : bytes(bytes), context(ZSTD_createDCtx()), unpacked(ZSTD_DStreamOutSize(), '\0') {
    if (context == nullptr) {
      throw std::bad_alloc();
    }
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { ZSTD_freeDCtx(context); }

  // More of what is unpacked; false: there is no more. "": nothing is wrong.
  bool fill(std::string& problem) {
    at = end = 0;
    ZSTD_inBuffer in{bytes.data(), bytes.size(), consumed};
    ZSTD_outBuffer out{unpacked.data(), unpacked.size(), 0};
    while (out.pos == 0 && (in.pos < in.size || !flushed)) {
      const size_t result = ZSTD_decompressStream(context, &out, &in);
      if (ZSTD_isError(result) != 0) {
        problem =
            fmt::format("byte {} of the file: zstd says: {}", in.pos, ZSTD_getErrorName(result));
        return false;
      }
      // Asked once more behind its end it would begin another frame.
      frame_ended = result == 0;
      flushed = frame_ended || out.pos < out.size;
    }
    consumed = in.pos;
    end = out.pos;
    total += end;
    spend(end);
    if (end == 0 && !frame_ended) {
      problem = fmt::format("byte {} of the file: it is cut off", bytes.size());
    }
    return end != 0;
  }

  std::string_view bytes;
  ZSTD_DCtx* context;
  size_t consumed = 0;
  std::string unpacked;
  size_t at = 0;  // what is left of `unpacked`
  size_t end = 0;
  uint64_t total = 0;  // unpacked so far
  bool flushed = true;
  bool frame_ended = false;
  uint64_t offset() const { return total - (end - at); }
  bool too_much() const {
    return total > kUnpackedAtFirst && (total - kUnpackedAtFirst) / kUnpackedPerByte > bytes.size();
  }
};

ArchiveReader::ArchiveReader(std::string_view bytes) : stream_(std::make_unique<Stream>(bytes)) {}
ArchiveReader::~ArchiveReader() = default;

tl::unexpected<Error> ArchiveReader::malformed(const std::string& what) const {
  return tl::unexpected<Error>(Error{ErrorKind::kMalformed, {}, member_.place(), what});
}

Result<std::string_view> ArchiveReader::take(size_t most) {
  if (stream_->at == stream_->end) {
    std::string problem;
    if (!stream_->fill(problem)) {
      return problem.empty()
                 ? Result<std::string_view>(std::string_view())
                 : malformed("expected a tar archive, compressed with zstd: " + problem);
    }
    if (stream_->too_much()) {
      return malformed(fmt::format("unpacks to more than {} bytes and {} for each of its {}",
                                   kUnpackedAtFirst, kUnpackedPerByte, stream_->bytes.size()));
    }
  }
  const size_t size = std::min(most, stream_->end - stream_->at);
  const std::string_view taken(stream_->unpacked.data() + stream_->at, size);
  stream_->at += size;
  return taken;
}

Result<bool> ArchiveReader::take_header(std::string_view bytes, Member& member) {
  UstarHeader header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto sum = number_in(header.checksum);
  if (!sum || *sum != checksum_of(header)) {
    return malformed("expected the header of a member, found a wrong checksum");
  }
  std::string name = text_in(header.name);
  if (text_in(header.magic).substr(0, 5) == "ustar" && header.prefix[0] != '\0') {
    name = text_in(header.prefix) + "/" + name;
  }
  member_.name = name;
  if (!is_member_name(name)) {
    return malformed("expected a path within the archive, without blanks and '..'");
  }
  if (header.type != '0' && header.type != '\0') {
    return malformed(
        fmt::format("is {}: a pack has regular files alone", name_of_type(header.type)));
  }
  const auto size = number_in(header.size);
  if (!size || *size > kMostMemberBytes) {
    return malformed("expected its size in octal digits");
  }
  if (++members_ > kMostMembers) {
    return malformed(fmt::format("more than {} members", kMostMembers));
  }
  member_.size = left_ = *size;
  member_.modified = static_cast<int64_t>(number_in(header.modified).value_or(0));
  padding_ = (kBlock - left_ % kBlock) % kBlock;
  in_member_ = true;
  member = member_;
  return true;
}

// Behind the last member: zeros, and zstd's checksum of all.
Result<void> ArchiveReader::finish() {
  ended_ = true;
  for (;;) {
    const auto rest = take(SIZE_MAX);
    if (!rest) {
      return tl::unexpected<Error>(rest.error());
    }
    if (rest->empty()) {
      return {};
    }
    if (rest->find_first_not_of('\0') != std::string_view::npos) {
      return malformed("something follows the end of the archive");
    }
  }
}

Result<bool> ArchiveReader::next(Member& member) {
  if (ended_) {
    return false;
  }
  for (uint64_t* const rest : {&left_, &padding_}) {
    while (*rest != 0) {
      const auto skipped = take(static_cast<size_t>(std::min<uint64_t>(*rest, SIZE_MAX)));
      if (!skipped) {
        return tl::unexpected<Error>(skipped.error());
      }
      if (skipped->empty()) {
        return malformed("the archive ends within it");
      }
      *rest -= skipped->size();
    }
  }
  member_ = {};
  in_member_ = false;
  member_.offset = stream_->offset();
  std::string header;
  while (header.size() < kBlock) {
    const auto more = take(kBlock - header.size());
    if (!more) {
      return tl::unexpected<Error>(more.error());
    }
    if (more->empty()) {
      return malformed("expected the header of a member, found the end");
    }
    header += *more;
  }
  if (header.find_first_not_of('\0') == std::string::npos) {
    if (auto done = finish(); !done) {
      return tl::unexpected<Error>(done.error());
    }
    return false;
  }
  return take_header(header, member);
}

Result<std::string_view> ArchiveReader::read() {
  if (!in_member_ || left_ == 0) {
    return std::string_view();
  }
  auto bytes = take(static_cast<size_t>(std::min<uint64_t>(left_, SIZE_MAX)));
  if (bytes && bytes->empty()) {
    return malformed("the archive ends within it");
  }
  left_ -= bytes ? bytes->size() : 0;
  return bytes;
}

}  // namespace tsomon::pack
