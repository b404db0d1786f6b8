#include "monitor/record/capture_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "decoders/capture/chunks.h"

namespace tsomon {
namespace {

namespace fs = std::filesystem;

const char* kind_of(fs::file_type type) {
  switch (type) {
    case fs::file_type::directory:
      return "a folder";
    case fs::file_type::character:
    case fs::file_type::block:
      return "a device";
    case fs::file_type::fifo:
      return "a FIFO";
    case fs::file_type::socket:
      return "a socket";
    default:
      return "something special";
  }
}

}  // namespace

bool is_capture(const fs::path& path) {
  std::array<char, 128> head{};
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), head.size());
  return capture::looks_like_capture({head.data(), static_cast<size_t>(file.gcount())});
}

std::string missing_part(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code error;
  const uint64_t size = fs::file_size(path, error);
  uint64_t at = sizeof(capture::FileHeader);
  std::map<uint32_t, uint64_t> chunks;  // of each thread: 1 + the last one's number
  std::map<uint32_t, capture::EndEntry> ends;
  bool ended = false;
  while (at < size) {
    capture::ChunkHeader header;
    file.seekg(static_cast<std::streamoff>(at));
    file.read(reinterpret_cast<char*>(&header), sizeof header);
    at += sizeof header;
    if (!file || header.magic != capture::kChunkMagic || !capture::intact(header) ||
        header.stored_size > size - at) {
      return fmt::format("what was recorded last is missing or damaged, from byte {} on",
                         at - sizeof header);
    }
    if (header.type == static_cast<uint32_t>(capture::ChunkType::kEvents)) {
      chunks[header.thread] = std::max(chunks[header.thread], header.sequence + 1);
    }
    if (header.type == static_cast<uint32_t>(capture::ChunkType::kEnd) && header.flags == 0) {
      ended = true;
      for (uint64_t i = 0; i != header.stored_size / sizeof(capture::EndEntry); ++i) {
        capture::EndEntry entry;
        file.read(reinterpret_cast<char*>(&entry), sizeof entry);
        ends[entry.thread] = entry;
      }
    }
    at += header.stored_size;
  }
  if (!ended) {
    return "the process did not tell its end: what it did last is missing";
  }
  for (const auto& [thread, end] : ends) {
    if (chunks[thread] < end.chunks) {
      return fmt::format("the last {} chunks of thread {} are missing", end.chunks - chunks[thread],
                         thread);
    }
  }
  return {};
}

Result<CapturePlace> CapturePlace::make(const fs::path& path, bool pipe) {
  const auto problem = [&](ErrorKind kind, std::string message) {
    return tl::unexpected<Error>(Error{kind, path.string(), {}, std::move(message)});
  };
  CapturePlace place;
  place.path_ = path;
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  const bool existed = fs::exists(fs::file_status(type));
  if (path.empty() || (pipe && type == fs::file_type::fifo)) {
    return place;
  }
  if (existed && type != fs::file_type::regular) {
    return problem(
        ErrorKind::kUsage,
        fmt::format("is {}; a capture needs a file: choose another name", kind_of(type)));
  }
  if (existed && fs::is_symlink(path, error)) {
    place.path_ = fs::canonical(path, error);
    if (error) {
      return problem(ErrorKind::kEnvironment,
                     fmt::format("cannot be replaced: {}", error.message()));
    }
  }
  if (existed) {
    if (fs::file_size(place.path_, error) != 0 && !is_capture(place.path_)) {
      return problem(ErrorKind::kEnvironment,
                     "exists and is not a capture; it is not overwritten. Remove it or choose "
                     "another file");
    }
    const fs::path aside = fmt::format("{}.old.{}", place.path_.string(), ::getpid());
    fs::rename(place.path_, aside, error);
    if (error) {
      return problem(ErrorKind::kEnvironment,
                     fmt::format("cannot be replaced: {}", error.message()));
    }
    place.old_ = aside;
  }
  const int fd = ::open(place.path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) {
    const int failed = errno;
    fs::rename(place.old_, place.path_, error);  // fails where there is none
    return problem(ErrorKind::kEnvironment,
                   fmt::format("cannot be written: {}", std::strerror(failed)));
  }
  ::close(fd);
  fs::remove(place.path_, error);
  place.made_ = true;
  return place;
}

CapturePlace::CapturePlace(CapturePlace&& other) noexcept
    : path_(std::move(other.path_)),
      old_(std::exchange(other.old_, fs::path())),
      made_(std::exchange(other.made_, false)) {}

CapturePlace::~CapturePlace() {
  std::error_code error;
  if (!made_) {
    return;
  }
  if (!old_.empty() && is_capture(path_)) {
    fs::remove(old_, error);
  } else if (!old_.empty()) {
    fs::rename(old_, path_, error);
  } else if (fs::is_regular_file(path_, error) && fs::is_empty(path_, error)) {
    fs::remove(path_, error);
  }
}

}  // namespace tsomon
