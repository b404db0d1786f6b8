#include "monitor/fleet/contents.h"

#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>
#include <zstd.h>

#include "decoders/pack/archive.h"
#include "monitor/fleet/digest.h"
#include "monitor/process/descriptor.h"

namespace tsomon::fleet {
namespace {

constexpr size_t kTogether = 64;  // chunks that are asked for in one question
constexpr int kLevel = 3;

std::string compressed(std::string_view bytes) {
  std::string packed(ZSTD_compressBound(bytes.size()), '\0');
  const size_t size =
      ZSTD_compress(packed.data(), packed.size(), bytes.data(), bytes.size(), kLevel);
  TSOMON_CHECK(ZSTD_isError(size) == 0, "zstd");
  packed.resize(size);
  return packed;
}

// Empty: it is not what its name says.
std::string unpacked(std::string_view packed, const std::string& digest) {
  std::string bytes(kChunkBytes, '\0');
  const size_t size = ZSTD_decompress(bytes.data(), bytes.size(), packed.data(), packed.size());
  if (ZSTD_isError(size) != 0) {
    return {};
  }
  bytes.resize(size);
  return digest_of(bytes) == digest ? bytes : std::string();
}

Result<void> fetch_chunks(Fleet& fleet, const Part& part,
                          const std::function<Result<void>(std::string_view)>& each) {
  uint64_t left = part.bytes;
  for (const std::string& name : part.chunks) {
    const auto packed = fleet.chunk(name);
    if (!packed) {
      return error_of(packed);
    }
    if (!*packed) {
      return fail(ErrorKind::kDamaged, fmt::format("the chunk {} is not there", name));
    }
    const std::string bytes = unpacked(**packed, name);
    const uint64_t expected = std::min<uint64_t>(left, kChunkBytes);
    if (bytes.size() != expected) {
      if (const auto gone = fleet.forget_chunk(name); !gone) {
        return gone;
      }
      return fail(ErrorKind::kDamaged, fmt::format("the chunk {} is damaged", name));
    }
    left -= expected;
    if (auto done = each(bytes); !done) {
      return done;
    }
  }
  return {};
}

// One piece behind the other.
class FileEnd {
 public:
  explicit FileEnd(const Descriptor& file) : file_(file) {}
  Result<void> operator()(std::string_view bytes) {
    const auto done = write_at(file_, bytes.data(), bytes.size(), at_);
    at_ += bytes.size();
    return done ? Result<void>() : error_of(done);
  }

 private:
  const Descriptor& file_;
  uint64_t at_ = 0;
};

}  // namespace

Result<Part> ContentSender::send(const std::string& name, std::string_view bytes,
                                 int64_t modified) {
  Part part;
  part.name = name;
  part.bytes = bytes.size();
  part.modified = std::max<int64_t>(modified, 0);
  while (!bytes.empty()) {
    const std::string_view chunk = bytes.substr(0, kChunkBytes);
    bytes.remove_prefix(chunk.size());
    part.chunks.push_back(digest_of(chunk));
    waiting_.emplace_back(part.chunks.back(), chunk);
    if (waiting_.size() == kTogether) {
      if (auto done = flush(); !done) {
        return error_of(done);
      }
    }
  }
  return part;
}

Result<void> ContentSender::flush() {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : waiting_) {
    names.push_back(name);
  }
  const auto missing = fleet_.missing(names);
  if (!missing) {
    return error_of(missing);
  }
  std::set<std::string> wanted(missing->begin(), missing->end());
  for (const auto& [name, bytes] : waiting_) {
    if (wanted.erase(name) == 0) {
      continue;
    }
    const std::string packed = compressed(bytes);
    if (auto done = fleet_.put_chunk(name, packed); !done) {
      return done;
    }
    ++chunks_;
    sent_ += packed.size();
  }
  waiting_.clear();
  return {};
}

Result<void> ContentSender::finish() { return waiting_.empty() ? Result<void>() : flush(); }

Result<std::shared_ptr<const MappedInput>> ContentFetcher::part(const Part& part) {
  const auto known = std::find_if(kept_.begin(), kept_.end(),
                                  [&](const Kept& one) { return one.chunks == part.chunks; });
  if (known != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, known);
    return known->bytes;
  }
  auto whole = temporary_file();
  if (!whole) {
    return error_of(whole);
  }
  if (auto done = fetch_chunks(fleet_, part, FileEnd(*whole)); !done) {
    return error_of(done);
  }
  auto mapped = MappedInput::of(std::move(*whole), true);
  if (!mapped) {
    return error_of(mapped);
  }
  const auto bytes = std::make_shared<const MappedInput>(std::move(*mapped));
  kept_.push_front({part.chunks, bytes});
  for (size_ += part.bytes; size_ > kMostKept && !kept_.empty(); kept_.pop_back()) {
    size_ -= kept_.back().bytes->view().size();
  }
  return bytes;
}

Result<void> ContentFetcher::fetch(const Content& content, const Descriptor& file) {
  FileEnd write(file);
  if (!content.packed) {
    return fetch_chunks(fleet_, content.parts.front(), std::ref(write));
  }
  pack::ArchiveWriter archive(std::ref(write), pack::ArchiveWriter::Effort::kReadOnce);
  for (const Part& each : content.parts) {
    const auto bytes = part(each);
    if (!bytes) {
      return error_of(bytes);
    }
    if (auto done = archive.add(each.name, (*bytes)->view(), each.modified); !done) {
      return done;
    }
  }
  return archive.finish();
}

Result<std::string> fetch_part(Fleet& fleet, const Part& part) {
  std::string whole;
  auto done = fetch_chunks(fleet, part, [&](std::string_view bytes) {
    whole += bytes;
    return Result<void>();
  });
  if (!done) {
    return error_of(done);
  }
  return whole;
}

}  // namespace tsomon::fleet
