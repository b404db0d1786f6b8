#include "decoders/perf/directory.h"

#include <algorithm>
#include <bitset>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "decoders/perf/format.h"
#include "decoders/perf/reader.h"

namespace tsomon::perf {
namespace {

// Places in the header of a file: three sections of offset and size, then the bits of the features.
constexpr size_t kDataOffset = 40;
constexpr size_t kDataSize = 48;
constexpr size_t kFeatures = 72;

uint64_t number_at(std::string_view bytes, size_t at) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

void put_number(std::string& bytes, size_t at, uint64_t value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

struct Placed {
  uint64_t time = 0;
  Record record;
};

void append(const Record& record, std::string& to) {
  const auto type = static_cast<uint32_t>(record.type);
  const auto size = static_cast<uint16_t>(record.size);
  to.append(reinterpret_cast<const char*>(&type), sizeof type);
  to.append(reinterpret_cast<const char*>(&record.misc), sizeof record.misc);
  to.append(reinterpret_cast<const char*>(&size), sizeof size);
  to += record.payload;
  to += record.follows;
}

}  // namespace

Result<JoinedDirectory> join_directory(std::string_view data,
                                       const std::vector<std::string_view>& parts) {
  auto opened = Reader::open(data);
  if (!opened) {
    return tl::unexpected<Error>(opened.error());
  }
  JoinedDirectory joined;
  joined.bytes = data;
  const bool whole = !opened->info().pipe && data.size() >= kFileHeaderSize;
  const uint64_t begin = whole ? number_at(data, kDataOffset) : 0;
  const uint64_t size = whole ? number_at(data, kDataSize) : 0;
  if (size == 0 || begin < kFileHeaderSize || begin > data.size() || size > data.size() - begin) {
    return fail(ErrorKind::kMalformed,
                "the recording was not ended: data has no size of its records");
  }
  // Every part as a file of its own, with the attributes of `data`.
  std::vector<std::unique_ptr<std::string>> files;
  std::vector<Placed> records;
  uint64_t input = data.size();
  for (const std::string_view part : parts) {
    input += part.size();
  }
  const uint64_t allowed = JoinedDirectory::kMemory * input + JoinedDirectory::kMemoryBase;
  uint64_t needed = 0;
  for (size_t i = 0; i < parts.size() && needed <= allowed; ++i) {
    auto& file = *files.emplace_back(std::make_unique<std::string>(data.substr(0, begin)));
    if (parts[i].empty()) {
      continue;
    }
    file += parts[i];
    put_number(file, kDataSize, parts[i].size());
    for (size_t word = 0; word < kFeatureBits / 64; ++word) {
      put_number(file, kFeatures + 8 * word, 0);
    }
    auto reader = Reader::open(file);
    if (!reader) {
      return tl::unexpected<Error>(reader.error());
    }
    uint64_t time = 0;
    for (Record record; needed <= allowed && reader->next(record);) {
      needed += sizeof(Placed) + 2 * (record.size + record.follows.size());
      const bool timed =
          record.has_time() && !record.of_tool() && record.sample_id.time != UINT64_MAX;
      time = timed ? record.sample_id.time : time;
      records.push_back({time, std::move(record)});
    }
    for (const std::string& problem : reader->problems()) {
      joined.problems.push_back(fmt::format("data.{}: {}", i, problem));
    }
    if (needed > allowed) {
      joined.problems.push_back(fmt::format(
          "data.{}: its records need more than {} times the memory of the files: what follows is "
          "not read",
          i, JoinedDirectory::kMemory));
    }
  }
  std::stable_sort(records.begin(), records.end(),
                   [](const Placed& a, const Placed& b) { return a.time < b.time; });
  const uint64_t end = begin + size;
  joined.bytes.resize(end);
  for (const Placed& placed : records) {
    append(placed.record, joined.bytes);
  }
  const uint64_t more = joined.bytes.size() - end;
  joined.bytes += data.substr(end);
  put_number(joined.bytes, kDataSize, size + more);
  // What comes after the records has moved.
  size_t features = 0;
  for (size_t word = 0; word < kFeatureBits / 64; ++word) {
    features += std::bitset<64>(number_at(data, kFeatures + 8 * word)).count();
  }
  const size_t listed = std::min<size_t>(features, (data.size() - end) / 16);
  for (size_t i = 0; i < listed; ++i) {
    const size_t at = end + more + 16 * i;
    const uint64_t place = number_at(joined.bytes, at);
    put_number(joined.bytes, at, place >= end ? place + more : place);
  }
  return joined;
}

}  // namespace tsomon::perf
