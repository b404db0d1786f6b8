// Packs: whatever the bytes, unpacking ends, and fails with a message or gives a recording. Every input is read twice: as it is, and as
// the archive inside of zstd with its checksums set right, so that the search gets behind them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "decoders/pack/archive.h"
#include "decoders/pack/ustar.h"
#include "monitor/process/packed_files.h"
#include "tso/support/result.h"

namespace {

using tsomon::pack::kBlock;
using tsomon::pack::UstarHeader;

void read(std::string_view bytes) {
  const auto unpacked = tsomon::unpack(bytes);
  if (!unpacked) {
    TSOMON_CHECK(!unpacked.error().message.empty(), "an error without a message");
    return;
  }
  TSOMON_CHECK(unpacked->recording.is_open() && unpacked->files != nullptr, "no recording");
  TSOMON_CHECK(unpacked->files->source("/etc/passwd") != nullptr, "no text for a source file");
}

void set_checksums(std::string& archive) {
  for (size_t at = 0; at + kBlock <= archive.size(); at += kBlock) {
    UstarHeader header{};
    std::memcpy(&header, archive.data() + at, kBlock);
    if (std::memcmp(header.magic.data(), "ustar", 5) == 0) {
      const std::string sum = fmt::format("{:06o}", tsomon::pack::checksum_of(header));
      std::copy(sum.begin(), sum.end(), header.checksum.begin());
      header.checksum[6] = '\0';
      std::memcpy(archive.data() + at, &header, kBlock);
    }
  }
}

// One frame of blocks that are stored as they are.
std::string frame_of(std::string_view bytes) {
  constexpr size_t kMostOfBlock = size_t{1} << 16;
  std::string frame(reinterpret_cast<const char*>(&tsomon::pack::kMagic), 4);
  frame += std::string("\0\x38", 2);  // no size, a window of 128 KiB
  do {
    const std::string_view block = bytes.substr(0, kMostOfBlock);
    bytes.remove_prefix(block.size());
    const auto header = static_cast<uint32_t>(block.size() << 3) | (bytes.empty() ? 1U : 0U);
    frame.append(reinterpret_cast<const char*>(&header), 3);
    frame += block;
  } while (!bytes.empty());
  return frame;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  read(bytes);
  set_checksums(bytes);
  read(frame_of(bytes));
  return 0;
}
