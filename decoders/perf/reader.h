// perf.data, record by record in the order of the file: what `perf record` wrote into a file or
// into a pipe.
//
// Contract    next() gives every record that is whole, those out of compressed records, too. What
//             is missing or damaged is in problems(), with the byte offset: a record whose
//             size cannot be ends the reading, since nothing marks where the next one begins. Kinds
//             of records that are not known are skipped by their size and counted.
// Files       "PERFILE2" of either mode, little-endian. A recording that was not ended properly is
//             read to the end of the file.
// Errors      open() fails with kMalformed on what is no perf.data, on one written on a big-endian
//             machine, and on the format before Linux 2.6.39.
// Bombs       Of compressed records so much is read as kUnfolded times the file and kUnfoldedBase bytes hold; what follows
//             is missing. (perf's own unfold to 4 to 20 times.)
// Memory      The attributes with their ids, the features, one block of decompressed records (more
//             only while a caller keeps records of it). Whatever counts and sizes the file claims,
//             no more is allocated than its bytes can hold. Trace data (kAuxtrace) are views.
// Complexity  Linear, but for compressed data linear in what they hold.
// Thread-safety: none. `bytes` must stay alive and unchanged.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "decoders/perf/info.h"
#include "decoders/perf/record.h"
#include "tso/support/result.h"

namespace tsomon::perf {

// True for what begins like a perf.data, also of a version or byte order that cannot be read.
// The first 8 bytes are enough.
bool looks_like_perf_data(std::string_view bytes);

class Reader {
 public:
  static constexpr uint64_t kUnfolded = 32;
  static constexpr uint64_t kUnfoldedBase = uint64_t{64} << 20;

  static Result<Reader> open(std::string_view bytes);
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;
  ~Reader();

  // Replaces `record`; false at the end.
  bool next(Record& record);

  const FileInfo& info() const;  // of a pipe: as far as it was read
  const std::vector<std::string>& problems() const;
  // Kinds that are not known, with the number of their records.
  const std::map<uint32_t, uint64_t>& unknown() const;

 private:
  class Impl;
  explicit Reader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tsomon::perf
