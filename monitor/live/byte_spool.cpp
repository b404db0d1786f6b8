#include "monitor/live/byte_spool.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <unistd.h>

namespace tsomon {
namespace {

// Of the file, at a time.
constexpr size_t kPiece = size_t{1} << 20;

}  // namespace

void ByteSpool::push(std::string_view bytes, bool saved) {
  std::unique_lock lock(mutex_);
  const uint64_t offset = pushed_;
  pushed_ += bytes.size();
  const bool in_file = saved && file_.get() >= 0;
  if (in_file && in_memory_ >= kMost) {
    // One range with what waits before it; they are one in the file.
    if (!pieces_.empty() && pieces_.back().bytes.empty()) {
      pieces_.back().size += bytes.size();
    } else {
      pieces_.push_back({{}, offset, bytes.size()});
    }
  } else {
    has_room_.wait(lock, [this] { return in_memory_ < kMost; });
    in_memory_ += bytes.size();
    pieces_.push_back({std::string(bytes), offset, bytes.size()});
  }
  lock.unlock();
  has_pieces_.notify_one();
}

void ByteSpool::end() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  has_pieces_.notify_one();
}

bool ByteSpool::pop(std::string& bytes) {
  Piece piece;
  {
    std::unique_lock lock(mutex_);
    has_pieces_.wait(lock, [this] { return ended_ || !pieces_.empty(); });
    if (pieces_.empty()) {
      return false;
    }
    Piece& first = pieces_.front();
    if (!first.bytes.empty() || first.size <= kPiece) {
      piece = std::move(first);
      pieces_.pop_front();
    } else {
      piece = {{}, first.offset, kPiece};
      first.offset += kPiece;
      first.size -= kPiece;
    }
  }
  if (!piece.bytes.empty()) {
    bytes = std::move(piece.bytes);
    {
      const std::lock_guard lock(mutex_);
      in_memory_ -= piece.size;
    }
    has_room_.notify_one();
    return true;
  }
  bytes.resize(piece.size);
  for (size_t at = 0; at != bytes.size();) {
    const ssize_t got = ::pread(file_.get(), bytes.data() + at, bytes.size() - at,
                                static_cast<off_t>(piece.offset + at));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      failed_ = true;
      return false;
    }
    at += static_cast<size_t>(got);
  }
  return true;
}

}  // namespace tsomon
