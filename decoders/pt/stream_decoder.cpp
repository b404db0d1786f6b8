#include "decoders/pt/stream_decoder.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <intel-pt.h>

#include "decoders/pt/packets.h"
#include "decoders/pt/restart.h"
#include "decoders/pt/times.h"
#include "decoders/pt/user_packets.h"

namespace tsomon::pt {
namespace {

using Kind = PathEntry::Kind;

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using Sections = std::unique_ptr<pt_image_section_cache, Freed<pt_iscache_free>>;
using Image = std::unique_ptr<pt_image, Freed<pt_image_free>>;
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

// The images of the processes, with what is mapped up to a time.
class Images {
 public:
  Images(const Input& input, uint64_t cache_bytes, std::map<std::string, uint64_t>& problems)
      : sections_(pt_iscache_alloc(nullptr)), problems_(problems) {
    pt_iscache_set_limit(sections_.get(), cache_bytes);
    for (const CodeSection& section : input.code) {
      processes_[section.process].code.push_back(&section);
    }
    for (auto& [id, process] : processes_) {
      std::stable_sort(
          process.code.begin(), process.code.end(),
          [](const CodeSection* a, const CodeSection* b) { return a->from < b->from; });
    }
  }

  pt_image* at(int id, int64_t time) {
    Process& process = processes_[id];
    if (!process.image) {
      process.image.reset(pt_image_alloc(nullptr));
    }
    for (; process.mapped < process.code.size() && process.code[process.mapped]->from <= time;
         ++process.mapped) {
      add(*process.code[process.mapped], *process.image);
    }
    return process.image.get();
  }

  // At any time.
  bool has_code(int id, uint64_t ip) {
    Process& process = processes_[id];
    if (process.covered.empty()) {
      for (const CodeSection* section : process.code) {
        process.covered.emplace_back(section->address, section->address + section->size);
      }
      std::sort(process.covered.begin(), process.covered.end());
      uint64_t end = 0;
      for (auto& range : process.covered) {  // of all up to it
        end = range.second = std::max(range.second, end);
      }
    }
    const auto next =
        std::upper_bound(process.covered.begin(), process.covered.end(), ip,
                         [](uint64_t at, const auto& range) { return at < range.first; });
    return next != process.covered.begin() && ip < (next - 1)->second;
  }

  size_t read(int isid, uint64_t address, uint8_t* to, size_t size) const {
    const int got = pt_iscache_read(sections_.get(), to, size, isid, address);
    return got < 0 ? 0 : static_cast<size_t>(got);
  }

 private:
  struct Process {
    Image image;
    std::vector<const CodeSection*> code;
    size_t mapped = 0;
    std::vector<std::pair<uint64_t, uint64_t>> covered;  // begin, end of this and of those before
  };

  void add(const CodeSection& section, pt_image& image) {
    const int isid = pt_iscache_add_file(sections_.get(), section.file.c_str(), section.offset,
                                         section.size, section.address);
    const int status =
        isid < 0 ? isid : pt_image_add_cached(&image, sections_.get(), isid, nullptr);
    if (status < 0) {
      ++problems_[fmt::format("code of {} is missing: {}", section.file,
                              pt_errstr(pt_errcode(status)))];
    }
  }

  Sections sections_;
  std::map<std::string, uint64_t>& problems_;
  std::map<int, Process> processes_;
};

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

// One part of a stream, without lost bytes inside.
class PartDecoder {
 public:
  // `bytes`: behind room for restarts.
  PartDecoder(const Input& input, const TraceStream& stream, std::string bytes, Images& images,
              DecodedStream& out)
      : stream_(stream),
        bytes_(std::move(bytes)),
        times_(bytes_, input.clock),
        errata_(errata_of(input.processor)),
        images_(images),
        out_(out) {
    for (const Switch& item : input.switches) {
      if (item.cpu == stream.cpu && stream.cpu >= 0) {
        switches_.push_back(item);
      }
    }
  }

  void run() {
    pt_config config;
    pt_config_init(&config);
    config.begin = reinterpret_cast<uint8_t*>(bytes_.data());
    config.end = config.begin + bytes_.size();
    config.decode.callback = skip_pebs;
    config.errata = errata_;
    decoder_.reset(pt_blk_alloc_decoder(&config));
    if (!decoder_) {
      ++out_.problems["the trace decoder cannot be set up"];
      return;
    }
    std::optional<uint64_t> last_sync;
    std::optional<Restart> restart;
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
      before_ = restart ? restart->packet : offset();
      times_.restart(restart ? restart->packet : sync);
      in_kernel_ = true;  // nobody known to run
      status = follow(status);
      if (status != -pte_eos) {
        mark(Kind::kGap);
      }
      const int process = piece_ == nullptr ? stream_.process : piece_->process;
      leave_thread();
      if (status == -pte_eos) {
        break;
      }
      lost_ = true;
      ++out_.problems[fmt::format("trace cannot be followed: {}", pt_errstr(pt_errcode(status)))];
      const size_t least = restart ? restart->end : 0;
      restart = write_restart(bytes_, offset(), least,
                              [&](uint64_t ip) { return images_.has_code(process, ip); });
    }
    end_unknown(offset());
    if (lost_) {  // nothing more to go on with
      enter_thread(offset(), offset());
      leave_thread();
      if (lost_) {
        gap(offset());
      }
    }
  }

 private:
  uint64_t offset() const {
    uint64_t at = 0;
    return pt_blk_get_offset(decoder_.get(), &at) < 0 ? bytes_.size() : at;
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
      before_ = offset();
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
      enabled(from.ip);
    }
    if (piece_ == nullptr) {
      return 0;
    }
    if (from.mode != ptem_64bit) {  // the instructions are decoded as 64-bit code
      if (!other_mode_) {
        other_mode_ = true;
        ++out_.problems["32-bit code is not followed"];
        mark(Kind::kGap);
      }
      expected_ = 0;
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
    out_.instructions += from.ninsn;
    PathEntry entry;
    entry.block = block;
    entry.resumed = std::exchange(resumed_, false);
    entry.lo = times_.not_before(before);
    entry.hi = times_.not_after(before_);
    last_lo_ = entry.lo;
    push(entry);
    const x86::Instruction& last = block->instructions.back();
    // Of branches that the trace decides the next block tells.
    expected_ =
        last.branch == x86::Branch::kNone || last.branch == x86::Branch::kFar ? last.next() : 0;
    if (last.branch == x86::Branch::kJump || last.branch == x86::Branch::kCall) {
      expected_ = last.target;
    }
    return 0;
  }

  void push(PathEntry entry) {
    if (piece_ == nullptr) {
      return;
    }
    if (entry.kind == Kind::kBlock && continues_) {
      enabled(entry.block->ip());
    }
    if (entry.kind == Kind::kBlock && piece_->entered == 0 && piece_->entries.empty()) {
      piece_->entered = entry.block->ip();
    }
    piece_->entries.push_back(entry);
  }

  void mark(Kind kind, uint64_t value = 0) {
    PathEntry entry;
    entry.kind = kind;
    entry.value = value;
    entry.lo = times_.not_before(before_);
    entry.hi = times_.not_after(before_);
    push(entry);
  }

  int event() {
    pt_event event;
    const uint64_t at = offset();  // afterwards it is behind the next event
    const int status = pt_blk_event(decoder_.get(), &event, sizeof event);
    if (status < 0) {
      return status;
    }
    const bool has_ip = event.ip_suppressed == 0;
    switch (event.type) {
      case ptev_enabled:
        if (event.status_update == 0) {
          before_ = at;
          in_kernel_ = is_kernel(event.variant.enabled.ip);
          const size_t packet = times_.next_enable();
          if (!in_kernel_) {
            enter_thread(std::min(packet, at), std::min(packet, at));
            enabled(event.variant.enabled.ip);
          }
        }
        break;
      case ptev_disabled:
        // Into the kernel, or out of the traced part of the program.
        if (has_ip && !is_kernel(event.variant.disabled.ip)) {
          expected_ = event.variant.disabled.ip;
        }
        leave_thread();
        break;
      case ptev_async_disabled:
        expected_ = event.variant.async_disabled.at;
        leave_thread();
        break;
      case ptev_async_branch:
        expected_ = event.variant.async_branch.from;
        if (has_ip && is_kernel(event.variant.async_branch.to)) {
          leave_thread();
          in_kernel_ = true;
        }
        break;
      case ptev_overflow:
        ++out_.problems["the processor dropped packets (overflow)"];
        mark(Kind::kGap);  // of who ran before, and of who runs then
        enter_thread(before_, at);
        gap(before_);
        if (!has_ip) {
          leave_thread();
        }
        break;
      case ptev_tsx:
        if (event.status_update == 0) {
          transaction(event.variant.tsx.speculative != 0, event.variant.tsx.aborted != 0);
        }
        break;
      case ptev_ptwrite:
        mark(Kind::kValue, event.variant.ptwrite.payload);
        break;
      default:
        break;
    }
    return status;
  }

  // Goes on with the thread that runs at this place; none when that is not certain.
  // It does so somewhere between what was read at `at` and at `until`.
  void enter_thread(uint64_t at, uint64_t until) {
    leave_thread();
    other_mode_ = false;
    int process = stream_.process;
    int thread = stream_.thread;
    int64_t earliest = times_.written_before(at);
    int64_t run = 0;  // of this thread on this CPU
    if (stream_.cpu >= 0) {
      const int64_t latest = times_.written_after(until);
      const auto running = [&](int64_t time) {
        const auto next =
            std::upper_bound(switches_.begin(), switches_.end(), time,
                             [](int64_t value, const Switch& item) { return value < item.time; });
        return next == switches_.begin() ? Switch{} : *(next - 1);
      };
      // Nothing later than the switch that follows the one before.
      const Switch first = running(earliest);
      const Switch last = running(latest == kTimeMax ? earliest : latest);
      if (first.thread != last.thread || first.time != last.time || first.thread == 0) {
        if (first.thread != last.thread || first.time != last.time) {
          ++out_.problems["which thread ran cannot be told"];
          unknown_from_ = unknown_from_.value_or(earliest);
        } else if (!lost_) {
          ++out_.of_nobody;
        }
        return;
      }
      earliest = std::max(earliest, first.time);
      run = first.time;
      process = first.process;
      thread = first.thread;
    }
    const bool apart = unknown_from_.has_value();
    end_unknown(at);
    pt_blk_set_image(decoder_.get(), images_.at(process, earliest));
    if (!apart && !out_.pieces.empty() && out_.pieces.back().thread == thread &&
        out_.pieces.back().process == process && out_.pieces.back().run == run) {
      // The same thread goes on.
      current_ = std::move(out_.pieces.back());
      out_.pieces.pop_back();
      continues_ = true;
    } else {
      current_ = {};
      current_.process = process;
      current_.thread = thread;
      current_.run = run;
      current_.lo = earliest;
      if (stream_.cpu < 0) {  // all of it will be here
        current_.entries.reserve(bytes_.size());
      }
      continues_ = false;
    }
    piece_ = &current_;
    transaction_.reset();
    expected_ = 0;
    if (lost_) {
      lost_ = false;
      gap(at);
    }
  }

  void enabled(uint64_t ip) {
    if (piece_ == nullptr) {
      return;
    }
    if (!continues_) {
      piece_->entered = ip;
    } else if (ip != piece_->expected && piece_->entries.back().kind != Kind::kGap) {
      mark(Kind::kElsewhere);
    }
    continues_ = false;
  }

  void leave_thread() {
    resumed_ = true;
    if (piece_ == nullptr) {
      return;
    }
    piece_->expected = expected_;
    if (!piece_->entries.empty()) {
      out_.pieces.push_back(std::move(*piece_));
    }
    piece_ = nullptr;
    expected_ = 0;
  }

  void gap(uint64_t at) {
    mark(Kind::kGap);
    out_.gaps.push_back({last_lo_, times_.not_after(at)});
  }

  // A time in which it was not certain who ran is a gap of everybody who may have.
  void end_unknown(uint64_t at) {
    if (unknown_from_) {
      out_.gaps.push_back({*unknown_from_, times_.written_after(at)});
      unknown_from_.reset();
    }
  }

  void transaction(bool speculative, bool aborted) {
    if (piece_ == nullptr) {
      return;
    }
    if (aborted && transaction_) {
      piece_->entries.resize(*transaction_);
      mark(Kind::kElsewhere);
    }
    transaction_.reset();
    if (speculative) {
      transaction_ = piece_->entries.size();
    }
  }

  // Without a packet.
  static constexpr unsigned kMostVisits = 64;
  static constexpr uint64_t kMostBlocks = 1 << 16;

  const TraceStream& stream_;
  std::string bytes_;
  Times times_;
  pt_errata errata_;
  Images& images_;
  DecodedStream& out_;
  Decoder decoder_;
  std::vector<Switch> switches_;
  PathPiece current_;
  PathPiece* piece_ = nullptr;
  std::optional<size_t> transaction_;  // entries of the piece before it began
  uint64_t before_ = 0;
  uint64_t still_ = 0;    // blocks since a packet was read
  uint64_t mark_at_ = 1;  // that many: the next block is the marked one
  uint64_t marked_ = 0;
  unsigned marked_visits_ = 0;
  uint64_t expected_ = 0;
  int64_t last_lo_ = kTimeMin;  // of the last block
  std::optional<int64_t> unknown_from_;
  bool continues_ = false;  // the piece, at a place that is not known yet
  bool resumed_ = true;     // nothing was executed since the thread was entered
  bool in_kernel_ = false;
  bool other_mode_ = false;
  bool lost_ = false;  // something is missing before what comes next
};

}  // namespace

DecodedStream decode_stream(const Input& input, const TraceStream& stream,
                            const FlowOptions& options) {
  DecodedStream out;
  out.code = std::make_unique<CodeCache>();
  Images images(input, options.cache_bytes, out.problems);
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
      std::string bytes(kRestartRoom, '\0');
      if (input.kernel) {
        bytes += user_packets(part);
      } else {
        bytes += part;
      }
      PartDecoder(input, stream, std::move(bytes), images, out).run();
    }
    begin = std::max(begin, end);
  }
  return out;
}

}  // namespace tsomon::pt
