#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>
#include <zstd.h>

#include "decoders/pack/archive.h"
#include "decoders/pack/ustar.h"
#include "tso/support/work.h"

namespace tsomon::pack {
namespace {

constexpr int kLevel = 6;
constexpr size_t kAtOnce = size_t{1} << 20;  // bytes between two looks whether to stop

// Octal digits and a zero byte.
template <size_t Size>
void put_number(uint64_t number, std::array<char, Size>& field) {
  const std::string text = fmt::format("{:0{}o}", number, Size - 1);
  std::copy(text.begin(), text.end(), field.begin());
}

UstarHeader header_of(const std::string& name, uint64_t size, int64_t modified) {
  UstarHeader header{};
  std::copy(name.begin(), name.end(), header.name.begin());
  put_number(0644, header.mode);
  put_number(0, header.owner);
  put_number(0, header.group);
  put_number(size, header.size);
  constexpr int64_t kLatest = (int64_t{1} << 33) - 1;
  put_number(static_cast<uint64_t>(std::clamp<int64_t>(modified, 0, kLatest)), header.modified);
  header.type = '0';
  std::memcpy(header.magic.data(), "ustar", 6);
  std::memcpy(header.version.data(), "00", 2);
  const std::string sum = fmt::format("{:06o}", checksum_of(header));
  std::copy(sum.begin(), sum.end(), header.checksum.begin());
  header.checksum.back() = ' ';
  return header;
}

}  // namespace

ArchiveWriter::ArchiveWriter(Sink sink, Effort effort)
    : sink_(std::move(sink)), context_(ZSTD_createCCtx()), packed_(ZSTD_CStreamOutSize(), '\0') {
  if (context_ == nullptr) {
    throw std::bad_alloc();
  }
  ZSTD_CCtx_setParameter(context_, ZSTD_c_compressionLevel,
                         effort == Effort::kKept ? kLevel : ZSTD_minCLevel());
  ZSTD_CCtx_setParameter(context_, ZSTD_c_checksumFlag, 1);
}

ArchiveWriter::~ArchiveWriter() { ZSTD_freeCCtx(context_); }

Result<void> ArchiveWriter::write(std::string_view bytes, bool last) {
  unpacked_ += bytes.size();
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  size_t left = 1;
  while (in.pos < in.size || (last && left != 0)) {
    ZSTD_outBuffer out{packed_.data(), packed_.size(), 0};
    left = ZSTD_compressStream2(context_, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
    if (ZSTD_isError(left) != 0) {
      return fail(ErrorKind::kEnvironment, fmt::format("zstd says: {}", ZSTD_getErrorName(left)));
    }
    written_ += out.pos;
    if (out.pos != 0) {
      if (auto taken = sink_({packed_.data(), out.pos}); !taken) {
        return taken;
      }
    }
  }
  return {};
}

Result<void> ArchiveWriter::add(const std::string& name, std::string_view bytes, int64_t modified) {
  const auto refused = [&](const std::string& why) {
    return fail(ErrorKind::kUsage, fmt::format("member '{}': {}", name, why));
  };
  if (!is_member_name(name) || name.size() > sizeof UstarHeader::name) {
    return refused("no name that a pack may have");
  }
  if (bytes.size() > kMostMemberBytes) {
    return refused(fmt::format("{} bytes: at most {} fit", bytes.size(), kMostMemberBytes));
  }
  if (++members_ > kMostMembers) {
    return refused(fmt::format("a pack has at most {} members", kMostMembers));
  }
  const UstarHeader header = header_of(name, bytes.size(), modified);
  const std::string padding((kBlock - bytes.size() % kBlock) % kBlock, '\0');
  auto done = write({reinterpret_cast<const char*>(&header), sizeof header}, false);
  while (done && !bytes.empty()) {
    spend(kAtOnce);
    done = write(bytes.substr(0, kAtOnce), false);
    bytes.remove_prefix(std::min(bytes.size(), kAtOnce));
  }
  return done ? write(padding, false) : done;
}

Result<void> ArchiveWriter::finish() {
  if (auto done = write(std::string(2 * kBlock, '\0'), true); !done) {
    return done;
  }
  if (unpacked_ > kUnpackedAtFirst &&
      (unpacked_ - kUnpackedAtFirst) / kUnpackedPerByte > written_) {
    return fail(
        ErrorKind::kUsage,
        fmt::format("{} bytes pack into {}: no pack may unpack to so much", unpacked_, written_));
  }
  return {};
}

}  // namespace tsomon::pack
