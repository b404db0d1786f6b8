// Trace data of a perf.data, put together to one stream for each AUX buffer.
//
// Losses      Bytes are missing where the offsets of the pieces leave some out, where an AUX record
//             says TRUNCATED, PARTIAL or COLLISION, and after a piece that the file cuts off.
//             Those that lie in no piece are a problem.
// Snapshots   The last one of each buffer counts.
// AUX samples Each holds the last bytes of the trace of its CPU or thread. They are joined where
// that
//             is certain (decoders/pt/packets/snapshot_join.h); elsewhere bytes are missing. What
//             is before the first one and after the last one always is.
// Memory      Views of the records' bytes; streams of several pieces, and samples, are joined.
// Complexity  O(bytes + pieces * losses).
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "decoders/perf/record.h"
#include "decoders/perf/sample.h"
#include "decoders/pt/packets/input.h"
#include "monitor/pt/pt_threads.h"

namespace tsomon {

class PtStreams {
 public:
  void take_trace_data(const perf::Record& record);  // AUXTRACE
  void take_aux(const perf::Record& record);
  // The AUX area of a sample. `per_cpu`: every CPU has a buffer, not every thread.
  void take_sample(const perf::Sample& sample, bool per_cpu);

  // Once. `joined` holds bytes that the streams refer to.
  std::vector<pt::TraceStream> finish(bool snapshots, const PtThreads& threads,
                                      std::deque<std::string>& joined,
                                      std::vector<std::string>& problems);

 private:
  struct Piece {
    uint64_t offset = 0;
    uint64_t size = 0;  // as it was recorded
    uint64_t reference = 0;
    std::string_view data;
  };
  struct Buffer {
    uint32_t cpu = UINT32_MAX;
    uint32_t tid = UINT32_MAX;
    std::vector<Piece> pieces;
  };
  struct Loss {
    uint64_t offset = 0;  // after the last byte before it
    std::optional<uint32_t> cpu;
    std::optional<uint32_t> tid;
    bool found = false;  // in a piece
  };
  struct Sampled {
    std::string last;           // the sample before, as it was
    std::string bytes;          // joined
    std::vector<size_t> parts;  // as TraceStream has them
  };
  bool may_be_in(const Loss& loss, const Buffer& buffer) const;
  pt::TraceStream stream_of(const Buffer& buffer, const PtThreads& threads,
                            std::deque<std::string>& joined);

  void finish_samples(std::vector<pt::TraceStream>& streams, const PtThreads& threads,
                      std::deque<std::string>& joined, std::vector<std::string>& problems);

  std::map<uint32_t, Buffer> buffers_;
  std::map<std::pair<bool, uint32_t>, Sampled> sampled_;  // by whether of a CPU, and its number
  uint64_t samples_ = 0;
  uint64_t of_nobody_ = 0;  // samples that do not say whose they are
  std::vector<Loss> losses_;
};

}  // namespace tsomon
