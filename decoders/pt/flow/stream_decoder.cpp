#include "decoders/pt/flow/stream_decoder.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <intel-pt.h>

#include "decoders/pt/code/images.h"
#include "decoders/pt/flow/fast_flow.h"
#include "decoders/pt/flow/path_pieces.h"
#include "decoders/pt/packets/packets.h"
#include "decoders/pt/packets/resync.h"
#include "decoders/pt/packets/times.h"
#include "decoders/pt/packets/user_packets.h"

namespace tsomon::pt {
namespace {

using Kind = PathEntry::Kind;

using Decoder = std::unique_ptr<pt_block_decoder, Freed<pt_blk_free_decoder>>;

// Packets that libipt does not know: the whole of a PEBS block, up to its end.
int skip_pebs(pt_packet_unknown*, const pt_config* config, const uint8_t* at, void*) {
  PacketReader reader(
      std::string_view(reinterpret_cast<const char*>(at), static_cast<size_t>(config->end - at)));
  Packet packet;
  size_t size = 0;
  while (true) {
    const PacketStatus status = reader.next(packet);
    if (status == PacketStatus::kEnd) {
      return -pte_eos;
    }
    const bool item = packet.type == PacketType::kBip || packet.type == PacketType::kBbp ||
                      packet.type == PacketType::kBep;
    if (status != PacketStatus::kPacket || !item) {
      return size == 0 ? -pte_bad_opc : static_cast<int>(size);
    }
    size = reader.offset();
    if (packet.type == PacketType::kBep || size > 4096) {
      return static_cast<int>(size);
    }
  }
}

// What the processor is known to do wrong.
pt_errata errata_of(const Processor& processor) {
  pt_errata errata{};
  pt_cpu cpu{pcv_intel, processor.family, processor.model, processor.stepping};
  if (processor.family != 0) {
    pt_cpu_errata(&errata, &cpu);  // leaves what it does not know as it is
  }
  // Many models have it, and others never write what it lets through.
  errata.bdm70 = 1;
  return errata;
}

// One part of a stream, without lost bytes inside, by libipt's block decoder.
class PartDecoder {
 public:
  // `bytes`: after room for restarts.
  PartDecoder(const Input& input, const TraceStream& stream, std::string& bytes, Times& times,
              Images& images, DecodedStream& out)
      : bytes_(bytes),
        times_(times),
        errata_(errata_of(input.processor)),
        images_(images),
        pieces_(input, stream, times_, out,
                [this](int process, int64_t time) {
                  pt_blk_set_image(decoder_.get(), images_.at(process, time));
                }),
        out_(out) {}

  void run() {
    pt_config config;
    pt_config_init(&config);
    config.begin = reinterpret_cast<uint8_t*>(bytes_.data());
    config.end = config.begin + bytes_.size();
    config.decode.callback = skip_pebs;
    config.errata = errata_;
    // A block would follow direct jumps in a circle until its 65,535 instructions are full.
    config.flags.variant.block.end_on_jump = 1;
    decoder_.reset(pt_blk_alloc_decoder(&config));
    if (!decoder_) {
      ++out_.problems["the trace decoder cannot be set up"];
      return;
    }
    std::optional<uint64_t> last_sync;
    std::optional<Resync> restart;
    while (true) {
      int status = restart ? pt_blk_sync_set(decoder_.get(), restart->offset)
                           : pt_blk_sync_forward(decoder_.get());
      if (status < 0) {
        break;
      }
      uint64_t sync = 0;
      pt_blk_get_sync_offset(decoder_.get(), &sync);
      if (!restart && last_sync && sync <= *last_sync) {
        break;  // no way forward
      }
      last_sync = sync;
      read_up_to(restart ? restart->packet : offset());
      times_.restart(restart ? restart->packet : sync);
      in_kernel_ = true;  // nobody known to run
      if ((status & pts_ip_suppressed) == 0) {
        pieces_.prepare(before_);
      }
      status = follow(status);
      if (status != -pte_eos) {
        pieces_.mark(Kind::kGap);
      }
      const int process = pieces_.process();
      pieces_.leave_thread();
      if (status == -pte_eos) {
        break;
      }
      pieces_.lost();
      ++out_.problems[fmt::format("trace cannot be followed: {}", pt_errstr(pt_errcode(status)))];
      const size_t least = restart ? restart->end : 0;
      restart = write_resync(bytes_, offset(), least,
                             [&](uint64_t ip) { return images_.has_code(process, ip); });
    }
    pieces_.end_unknown(offset());
    if (pieces_.is_lost()) {  // nothing more to go on with
      enter_thread(offset(), offset());
      pieces_.leave_thread();
      if (pieces_.is_lost()) {
        pieces_.gap(offset());
      }
    }
  }

 private:
  uint64_t offset() const {
    uint64_t at = 0;
    return pt_blk_get_offset(decoder_.get(), &at) < 0 ? bytes_.size() : at;
  }
  void read_up_to(uint64_t at) {
    before_ = at;
    pieces_.read_up_to(at);
  }
  void enter_thread(uint64_t at, uint64_t until) {
    other_mode_ = false;
    pieces_.enter_thread(at, until);
  }

  int follow(int status) {
    pt_block block;
    while (true) {
      while ((status & pts_event_pending) != 0) {
        status = event();
        if (status < 0) {
          return status;
        }
      }
      if ((status & pts_eos) != 0) {
        return -pte_eos;
      }
      block.ninsn = 0;
      const uint64_t before = before_;
      status = pt_blk_next(decoder_.get(), &block, sizeof block);
      read_up_to(offset());
      if (endless(block, before_ != before)) {
        return -pte_bad_query;
      }
      if (block.ninsn != 0) {
        const int added = add(block, before);
        if (added < 0) {
          return added;
        }
      }
      if (status < 0) {
        return status;
      }
    }
  }

  // A loop without any branch that the trace decides never ends by itself. A packet decides 47 at
  // most, and nothing is executed twice between two decisions; so no block is executed more often.
  bool endless(const pt_block& block, bool packet) {
    if (packet) {
      still_ = 0;
      mark_at_ = 1;
    }
    if (++still_ == mark_at_) {
      mark_at_ *= 2;
      marked_ = block.ip;
      marked_visits_ = 0;
    }
    marked_visits_ += block.ip == marked_ ? 1 : 0;
    return marked_visits_ > kMostVisits || still_ > kMostBlocks;
  }

  int add(const pt_block& from, uint64_t before) {
    if (is_kernel(from.ip)) {
      in_kernel_ = true;
      return 0;
    }
    if (in_kernel_) {  // back from the kernel: perhaps another thread
      in_kernel_ = false;
      enter_thread(before, before);
      pieces_.enabled(from.ip);
    }
    if (!pieces_.entered()) {
      return 0;
    }
    if (from.mode != ptem_64bit) {  // the instructions are decoded as 64-bit code
      if (!other_mode_) {
        other_mode_ = true;
        ++out_.problems["32-bit code is not followed"];
        pieces_.mark(Kind::kGap);
      }
      pieces_.expect(0);
      return 0;
    }
    other_mode_ = false;
    const auto read = [&](uint64_t address, uint8_t* to, size_t size) {
      const size_t got = images_.read(from.isid, address, to, size);
      if (from.truncated != 0 && address == from.end_ip) {
        std::copy_n(from.raw, from.size, to);
        return static_cast<size_t>(from.size);
      }
      return got;
    };
    const CodeBlock* block =
        out_.code->find(static_cast<uint64_t>(from.isid), from.ip, from.ninsn, read);
    if (block == nullptr && out_.code->full()) {
      ++out_.problems["more code than can be kept was executed"];
    }
    if (block == nullptr || block->instructions.back().address != from.end_ip) {
      return -pte_bad_insn;
    }
    pieces_.block(block, times_.not_before(before), times_.not_after(before_));
    return 0;
  }

  int event() {
    pt_event event;
    const uint64_t at = offset();  // afterwards it is after the next event
    const int status = pt_blk_event(decoder_.get(), &event, sizeof event);
    if (status < 0) {
      return status;
    }
    const bool has_ip = event.ip_suppressed == 0;
    switch (event.type) {
      case ptev_enabled:
        if (event.status_update == 0) {
          read_up_to(at);
          in_kernel_ = is_kernel(event.variant.enabled.ip);
          const size_t packet = times_.next_enable();
          if (!in_kernel_) {
            enter_thread(std::min(packet, at), std::min(packet, at));
            pieces_.enabled(event.variant.enabled.ip);
          }
        }
        break;
      case ptev_disabled:
        // Into the kernel, or out of the traced part of the program.
        if (has_ip && !is_kernel(event.variant.disabled.ip)) {
          pieces_.expect(event.variant.disabled.ip);
        }
        pieces_.leave_thread();
        break;
      case ptev_async_disabled:
        pieces_.expect(event.variant.async_disabled.at);
        pieces_.leave_thread();
        break;
      case ptev_async_branch:
        pieces_.expect(event.variant.async_branch.from);
        if (has_ip && is_kernel(event.variant.async_branch.to)) {
          pieces_.leave_thread();
          in_kernel_ = true;
        }
        break;
      case ptev_overflow:
        ++out_.problems["the processor dropped packets (overflow)"];
        pieces_.mark(Kind::kGap);  // of who ran before, and of who runs then
        enter_thread(before_, at);
        pieces_.gap(before_);
        if (!has_ip) {
          pieces_.leave_thread();
        }
        break;
      case ptev_tsx:
        if (event.status_update == 0) {
          pieces_.transaction(event.variant.tsx.speculative != 0, event.variant.tsx.aborted != 0);
        }
        break;
      case ptev_ptwrite:
        pieces_.mark(Kind::kValue, event.variant.ptwrite.payload);
        break;
      default:
        break;
    }
    return status;
  }

  // Without a packet.
  static constexpr unsigned kMostVisits = 64;
  static constexpr uint64_t kMostBlocks = 1 << 16;

  std::string& bytes_;
  Times& times_;
  pt_errata errata_;
  Images& images_;
  PathPieces pieces_;
  DecodedStream& out_;
  Decoder decoder_;
  uint64_t before_ = 0;
  uint64_t still_ = 0;    // blocks since a packet was read
  uint64_t mark_at_ = 1;  // that many: the next block is the marked one
  uint64_t marked_ = 0;
  unsigned marked_visits_ = 0;
  bool in_kernel_ = false;
  bool other_mode_ = false;
};

// What a part has added to a stream can be taken back.
class Undo {
 public:
  Undo(const Images& images, const DecodedStream& out)
      : pieces_(out.pieces.size()),
        entries_(out.pieces.empty() ? 0 : out.pieces.back().entries.size()),
        expected_(out.pieces.empty() ? 0 : out.pieces.back().expected),
        gaps_(out.gaps.size()),
        problems_(out.problems),
        of_nobody_(out.of_nobody),
        instructions_(out.instructions),
        images_(images.mark()) {}

  void take_back(Images& images, DecodedStream& out) const {
    out.pieces.resize(pieces_);
    if (!out.pieces.empty()) {
      out.pieces.back().entries.resize(entries_);
      out.pieces.back().expected = expected_;
    }
    out.gaps.resize(gaps_);
    out.problems = problems_;
    out.of_nobody = of_nobody_;
    out.instructions = instructions_;
    images.rewind(images_);
  }
  uint64_t instructions() const { return instructions_; }

 private:
  size_t pieces_;
  size_t entries_;
  uint64_t expected_;
  size_t gaps_;
  std::map<std::string, uint64_t> problems_;
  uint64_t of_nobody_;
  uint64_t instructions_;
  Images::Mark images_;
};

void decode_part(const Input& input, const TraceStream& stream, std::string& bytes,
                 const FlowOptions& options, Images& images, DecodedStream& out) {
  Times times(bytes, input.clock);
  if (!options.libipt) {
    const Undo undo(images, out);
    FastFlow walk(bytes, input, stream, times, images, out);
    if (walk.run()) {
      out.instructions_walked += out.instructions - undo.instructions();
      return;
    }
    walk.leave();
    undo.take_back(images, out);
  }
  PartDecoder(input, stream, bytes, times, images, out).run();
}

// Decoding begins at a PSB packet; without one nothing is.
bool has_start(std::string_view part) {
  std::string psb;
  for (int i = 0; i < 8; ++i) {
    psb += "\x02\x82";
  }
  return part.find(psb) != std::string_view::npos;
}

}  // namespace

DecodedStream decode_stream(const Input& input, const TraceStream& stream,
                            const FlowOptions& options) {
  DecodedStream out;
  out.code = std::make_unique<CodeCache>();
  Images images(input, options.cache_bytes);
  size_t begin = 0;
  for (size_t part = 0; part <= stream.parts.size(); ++part) {
    const size_t end =
        std::min(part == stream.parts.size() ? stream.bytes.size() : stream.parts[part],
                 stream.bytes.size());
    if (part != 0) {
      ++out.problems["trace bytes were lost"];
      PathEntry gap;
      gap.kind = Kind::kGap;
      if (!out.pieces.empty()) {
        gap.lo = out.pieces.back().entries.back().lo;
        out.pieces.back().entries.push_back(gap);
      } else if (stream.cpu < 0) {
        PathPiece lost;
        lost.process = stream.process;
        lost.thread = stream.thread;
        lost.entries.push_back(gap);
        out.pieces.push_back(std::move(lost));
      }
      out.gaps.push_back({gap.lo, gap.hi});
    }
    if (end > begin) {
      const std::string_view part = stream.bytes.substr(begin, end - begin);
      if (!has_start(part)) {
        ++out.problems["trace bytes without a PSB packet: nothing of them is decoded"];
      }
      std::string bytes(kResyncRoom, '\0');
      if (input.kernel) {
        bytes += user_packets(part);
      } else {
        bytes += part;
      }
      decode_part(input, stream, bytes, options, images, out);
    }
    begin = std::max(begin, end);
  }
  for (const auto& [text, count] : images.problems()) {
    out.problems[text] += count;
  }
  return out;
}

}  // namespace tsomon::pt
