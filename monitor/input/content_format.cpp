#include "monitor/input/content_format.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoders/axe/reader.h"
#include "decoders/capture/chunks.h"
#include "decoders/capture/format.h"
#include "decoders/pack/archive.h"
#include "decoders/perf/format.h"
#include "decoders/perf/raw_trace.h"
#include "decoders/perf/reader.h"
#include "tso/support/stoppable_read.h"

namespace tsomon {
namespace {

constexpr int kPause = 20;  // milliseconds between two looks
constexpr int kMaxPauses = 50;
constexpr size_t kMaxBytes = size_t{64} << 10;

// Copies at most `size` of the bytes that come next, without taking them out of the input.
ssize_t peek(int fd, char* bytes, size_t size) {
  const off_t at = ::lseek(fd, 0, SEEK_CUR);
  if (at >= 0) {
    return ::pread(fd, bytes, size, at);
  }
  std::array<int, 2> copy{};
  if (::pipe2(copy.data(), O_CLOEXEC) != 0) {
    return -1;
  }
  wait_unless_stopped(fd);
  ssize_t copied = 0;
  do {
    copied = ::tee(fd, copy[1], size, 0);  // waits for the first bytes
  } while (copied < 0 && errno == EINTR);
  const ssize_t got = copied > 0 ? ::read(copy[0], bytes, size) : copied;
  ::close(copy[0]);
  ::close(copy[1]);
  return got >= 0 ? got : ::recv(fd, bytes, size, MSG_PEEK);
}

// Nothing when more bytes are needed.
std::optional<InputFormat> format_of(std::string_view first) {
  const auto may_become = [&](uint64_t magic) {
    return std::memcmp(first.data(), &magic, std::min(first.size(), sizeof magic)) == 0;
  };
  if (first.size() < sizeof capture::kFileMagic &&
      (may_become(capture::kFileMagic) || may_become(perf::kMagic))) {
    return std::nullopt;
  }
  if (pack::looks_like_pack(first)) {
    return InputFormat::kPack;
  }
  if (first.size() < sizeof pack::kMagic &&
      std::memcmp(first.data(), &pack::kMagic, first.size()) == 0) {
    return std::nullopt;
  }
  if (capture::looks_like_capture(first)) {
    return InputFormat::kCapture;
  }
  if (perf::looks_like_perf_data(first) || perf::looks_like_trace_list(first)) {
    return InputFormat::kPerf;
  }
  const auto axe = looks_like_axe(first);
  return axe ? std::optional(*axe ? InputFormat::kAxe : InputFormat::kStd) : std::nullopt;
}

// What is there is all that will come.
bool at_end(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
    return true;
  }
  pollfd state{fd, POLLIN | POLLRDHUP, 0};
  return ::poll(&state, 1, 0) == 1 && (state.revents & (POLLHUP | POLLRDHUP)) != 0;
}

}  // namespace

InputFormat content_format(int fd) {
  std::string bytes(kMaxBytes, '\0');
  size_t before = 0;
  for (int pauses = 0; pauses < kMaxPauses; ++pauses) {
    // Asked first: what was written before the end is then among the bytes.
    const bool end = at_end(fd);
    const auto got =
        static_cast<size_t>(std::max<ssize_t>(peek(fd, bytes.data(), bytes.size()), 0));
    const std::string first = bytes.substr(0, got) + (end ? "\n" : "");
    if (const auto format = format_of(first)) {
      return *format;
    }
    if (end || got == 0 || got == kMaxBytes) {
      break;
    }
    pauses = got == before ? pauses : 0;
    before = got;
    ::poll(nullptr, 0, kPause);
  }
  return InputFormat::kStd;
}

}  // namespace tsomon
