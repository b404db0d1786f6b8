#include "monitor/pt/pt_streams.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "decoders/pt/packets/snapshot_join.h"

namespace tsomon {

using perf::Record;

void PtStreams::take_trace_data(const Record& record) {
  const auto piece = parse_auxtrace(record);
  if (!piece) {
    return;
  }
  Buffer& buffer = buffers_[piece->buffer];
  buffer.cpu = piece->cpu;
  buffer.tid = piece->tid;
  buffer.pieces.push_back({piece->offset, piece->size, piece->reference, piece->data});
}

void PtStreams::take_aux(const Record& record) {
  const auto aux = parse_aux(record);
  constexpr uint64_t kLoses = perf::Aux::kTruncated | perf::Aux::kPartial | perf::Aux::kCollision;
  if (!aux || (aux->flags & kLoses) == 0) {
    return;
  }
  Loss loss;
  loss.offset = aux->offset + aux->size;
  if (record.has_cpu()) {
    loss.cpu = record.sample_id.cpu;
  }
  if ((record.sample_fields & perf::sample_type::kTid) != 0) {
    loss.tid = record.sample_id.tid;
  }
  losses_.push_back(loss);
}

void PtStreams::take_sample(const perf::Sample& sample, bool per_cpu) {
  if (sample.aux.empty()) {
    return;
  }
  const bool of_cpu = per_cpu && (sample.fields & perf::sample_type::kCpu) != 0;
  if (!of_cpu && (sample.fields & perf::sample_type::kTid) == 0) {
    ++of_nobody_;
    return;
  }
  ++samples_;
  const auto [found, is_first] = sampled_.try_emplace({of_cpu, of_cpu ? sample.cpu : sample.tid});
  Sampled& stream = found->second;
  pt::SnapshotJoin join;
  if (!is_first) {
    join = pt::join_snapshots(stream.last, sample.aux);
    if (join.certain) {
      stream.bytes.resize(stream.bytes.size() - std::min(stream.bytes.size(), join.padding));
    } else {
      stream.parts.push_back(stream.bytes.size());
    }
  }
  stream.bytes += sample.aux.substr(join.from);
  stream.last = sample.aux;
}

void PtStreams::finish_samples(std::vector<pt::TraceStream>& streams, const PtThreads& threads,
                               std::deque<std::string>& joined,
                               std::vector<std::string>& problems) {
  size_t breaks = 0;
  for (auto& [key, sampled] : sampled_) {
    const auto [of_cpu, number] = key;
    pt::TraceStream stream;
    breaks += sampled.parts.size();
    stream.parts = std::move(sampled.parts);
    joined.push_back(std::move(sampled.bytes));
    stream.bytes = joined.back();
    if (of_cpu) {
      stream.cpu = static_cast<int>(number & INT32_MAX);
    } else {
      stream.thread = static_cast<int>(number & INT32_MAX);
      stream.process = static_cast<int>(threads.process_of(number) & INT32_MAX);
    }
    streams.push_back(std::move(stream));
  }
  if (samples_ != 0) {
    problems.push_back(
        fmt::format("the trace was sampled: of {} samples {} do not certainly continue the one "
                    "before; what is in front of these, and in front of and behind all, is missing",
                    samples_, breaks));
  }
  if (of_nobody_ != 0) {
    problems.push_back(fmt::format(
        "{} samples with trace data do not say of which CPU or thread they are", of_nobody_));
  }
}

std::vector<pt::TraceStream> PtStreams::finish(bool snapshots, const PtThreads& threads,
                                               std::deque<std::string>& joined,
                                               std::vector<std::string>& problems) {
  std::vector<pt::TraceStream> streams;
  for (auto& [number, buffer] : buffers_) {
    if (snapshots) {
      const uint64_t last = buffer.pieces.back().reference;
      const auto is_older = [last](const Piece& piece) { return piece.reference != last; };
      auto& pieces = buffer.pieces;
      pieces.erase(std::remove_if(pieces.begin(), pieces.end(), is_older), pieces.end());
    }
    streams.push_back(stream_of(buffer, threads, joined));
  }
  finish_samples(streams, threads, joined, problems);
  const auto nowhere =
      std::count_if(losses_.begin(), losses_.end(), [](const Loss& loss) { return !loss.found; });
  if (nowhere != 0 && !snapshots) {  // of these, what is older is missing in any case
    problems.push_back(fmt::format(
        "{} times trace data was lost in front of what there is, or where there is none", nowhere));
  }
  return streams;
}

bool PtStreams::may_be_in(const Loss& loss, const Buffer& buffer) const {
  if (buffer.cpu != UINT32_MAX) {
    return !loss.cpu || *loss.cpu == buffer.cpu;
  }
  return !loss.tid || *loss.tid == buffer.tid;
}

pt::TraceStream PtStreams::stream_of(const Buffer& buffer, const PtThreads& threads,
                                     std::deque<std::string>& joined_streams) {
  pt::TraceStream stream;
  std::string joined;
  uint64_t end = buffer.pieces.front().offset;
  for (const Piece& piece : buffer.pieces) {
    if (piece.offset != end) {
      stream.parts.push_back(joined.size());
    }
    for (Loss& loss : losses_) {
      if (may_be_in(loss, buffer) && loss.offset > piece.offset &&
          loss.offset <= piece.offset + piece.size) {
        loss.found = true;
        stream.parts.push_back(joined.size() + (loss.offset - piece.offset));
      }
    }
    joined += piece.data;
    end = piece.offset + piece.size;
    if (piece.data.size() < piece.size) {
      stream.parts.push_back(joined.size());
    }
  }
  std::sort(stream.parts.begin(), stream.parts.end());
  if (buffer.pieces.size() == 1) {
    stream.bytes = buffer.pieces.front().data;
  } else {
    joined_streams.push_back(std::move(joined));
    stream.bytes = joined_streams.back();
  }
  if (buffer.cpu != UINT32_MAX) {
    stream.cpu = static_cast<int>(buffer.cpu & INT32_MAX);
  } else {
    stream.thread = static_cast<int>(buffer.tid & INT32_MAX);
    stream.process = static_cast<int>(threads.process_of(buffer.tid) & INT32_MAX);
  }
  return stream;
}

}  // namespace tsomon
