#include "monitor/perf_events/perf_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>

namespace tsomon::pt_live {

Result<PerfFile> PerfFile::create(const std::string& path,
                                  std::vector<perf::WrittenAttribute> attributes) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file.is_open()) {
    return fail(ErrorKind::kEnvironment,
                fmt::format("{}: cannot be written: {}", path, std::strerror(errno)));
  }
  PerfFile out(std::move(file), std::move(attributes));
  const std::string header = perf::file_of(out.attributes_, {});
  out.begin_ = out.end_ = header.size();
  if (auto written = write_at(out.file_, header.data(), header.size(), 0); !written) {
    return tl::unexpected<Error>(written.error());
  }
  return out;
}

Result<bool> PerfFile::add(std::string_view records) {
  auto written = write_at(file_, records.data(), records.size(), end_);
  end_ += records.size();
  return written;
}

Result<bool> PerfFile::add_trace(const AuxRing::Piece& piece, uint32_t buffer, int cpu, int thread,
                                 uint64_t reference) {
  if (piece.size() == 0) {
    return true;
  }
  const std::string padding((8 - piece.size() % 8) % 8, '\0');  // packets of their own
  perf::Fields payload;
  payload.put(uint64_t{piece.size() + padding.size()}).put(piece.offset).put(reference);
  payload.put(buffer).put(static_cast<uint32_t>(thread)).put(static_cast<uint32_t>(cpu));
  payload.put(uint32_t{0});
  const std::string record = record_bytes(perf::RecordType::kAuxtrace, 0, payload.bytes());
  for (const std::string_view part :
       {std::string_view(record), piece.bytes[0], piece.bytes[1], std::string_view(padding)}) {
    if (auto written = add(part); !written) {
      return written;
    }
  }
  trace_bytes_ += piece.size();
  return true;
}

Result<bool> PerfFile::finish() {
  // Where the size of the records stands in the header.
  constexpr uint64_t kRecordBytes = 48;
  const uint64_t size = end_ - begin_;
  return write_at(file_, &size, sizeof size, kRecordBytes);
}

}  // namespace tsomon::pt_live
