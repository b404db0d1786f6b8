#include "tests/pt/trace_encoder.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <random>
#include <string>

#include <doctest/doctest.h>
#include <intel-pt.h>

namespace tsomon::test {
namespace {

constexpr size_t kReturns = 64;  // the processor remembers so many calls

class StreamEncoder {
 public:
  StreamEncoder(const SteppedRun& run, const EncodeOptions& options, uint64_t seed)
      : run_(run),
        options_(options),
        random_(seed),
        buffer_(run.steps.size() * (options.pebs_every == 0 && !options.kernel ? 32 : 256) +
                65536) {
    pt_config config;
    pt_config_init(&config);
    config.begin = buffer_.data();
    config.end = buffer_.data() + buffer_.size();
    encoder_ = pt_alloc_encoder(&config);
    REQUIRE(encoder_ != nullptr);
  }
  StreamEncoder(const StreamEncoder&) = delete;
  StreamEncoder& operator=(const StreamEncoder&) = delete;
  ~StreamEncoder() { pt_free_encoder(encoder_); }

  EncodedStream encode(const std::vector<size_t>& steps) {
    stream_.steps = steps;
    stream_.lost.assign(steps.size(), false);
    for (position_ = 0; position_ < steps.size(); ++position_) {
      now_ = time_of(steps[position_]);
      one(steps[position_]);
    }
    flush_tnt();
    if (enabled_) {
      disable(last_next_);
    }
    stream_.bytes.assign(buffer_.begin(), buffer_.begin() + static_cast<ptrdiff_t>(offset()));
    return std::move(stream_);
  }

 private:
  void one(size_t index) {
    const Step& step = run_.steps[index];
    const Step* before = position_ == 0 ? nullptr : &run_.steps[stream_.steps[position_ - 1]];
    const bool same_run = before != nullptr && before->quantum == step.quantum &&
                          before->thread == step.thread &&
                          stream_.steps[position_ - 1] + 1 == index;
    if (enabled_ && (!same_run || is_sampled(index, options_.sample_every))) {
      // The kernel runs something else, or samples.
      now_ = time_of(stream_.steps[position_ - 1]) + kTimePerStep / 2;
      disable(before->next);
      now_ = time_of(index);
    } else if (enabled_ && (before->next != step.ip || random_() % interrupts() == 0)) {
      disable(before->next);  // a signal, or an interrupt that comes back
    }
    timing();
    if (losing_ != 0) {
      stream_.lost[position_] = true;
      if (--losing_ == 0) {
        resume_ = true;
      }
      last_next_ = step.next;
      return;
    }
    if (resume_) {
      resume_ = false;
      packet(ppt_ovf);
      last_ip_ = 0;
      returns_.clear();
      if (enabled_) {
        address(ppt_fup, step.ip);
      }
    }
    if (offset() - last_psb_ >= options_.psb_every || offset() == 0) {
      psb(step.ip);
    }
    if (!enabled_) {
      enable(step.ip);
    }
    if (is_sampled(index, options_.pebs_every)) {
      pebs(step);
    }
    execute(step);
    last_next_ = step.next;
    if (options_.overflow_one_in != 0 && random_() % options_.overflow_one_in == 0 && enabled_) {
      losing_ = 1 + static_cast<unsigned>(random_() % 50);
      tnt_.clear();
    }
  }

  uint64_t interrupts() const {
    return options_.interrupt_one_in == 0 ? ~uint64_t{0} : options_.interrupt_one_in;
  }

  void execute(const Step& step) {
    const x86::Instruction& code = run_.at(step.ip);
    switch (code.branch) {
      case x86::Branch::kConditional:
        bit(step.next != code.next());
        return;
      case x86::Branch::kCall:
        if (code.target != code.next()) {
          call(code.next());
        }
        return;
      case x86::Branch::kIndirectCall:
        call(code.next());
        target(step.next);
        return;
      case x86::Branch::kIndirectJump:
        target(step.next);
        return;
      case x86::Branch::kReturn:
        if (options_.compress_returns && !returns_.empty() && returns_.back() == step.next) {
          returns_.pop_back();
          bit(true);
        } else {
          returns_.clear();
          target(step.next);
        }
        return;
      case x86::Branch::kFar:
        flush_tnt();
        now_ += kTimePerStep / 2;
        leave();
        return;
      case x86::Branch::kJump:
      case x86::Branch::kNone:
        break;
    }
    if (code.ptwrite) {
      ptwrite(code, step);
    }
  }

  void ptwrite(const x86::Instruction& code, const Step& step) {
    flush_tnt();
    cycles();
    pt_packet out = make(ppt_ptw);
    REQUIRE(code.source.is_register());
    out.payload.ptw.payload = step.registers.value(code.source.reg);
    out.payload.ptw.plc = code.source.size == 8 ? 1 : 0;
    if (code.source.size == 4) {
      out.payload.ptw.payload &= 0xFFFFFFFFU;
    }
    out.payload.ptw.ip = options_.ptwrite_ip ? 1 : 0;
    write(out);
    if (options_.ptwrite_ip) {
      address(ppt_fup, step.ip);
    }
  }

  // The encoder does not know these packets.
  void pebs(const Step& step) {
    flush_tnt();
    cycles();
    std::string bytes;
    const auto block = [&](char type) { bytes += {'\x02', '\x63', type}; };
    const auto item = [&](unsigned number, uint64_t value) {
      bytes += static_cast<char>(number << 3 | 4);
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    };
    block(4);
    item(2, now_ - kSampleTime);
    block(1);
    item(1, step.ip);
    for (unsigned i = 0; i < 16; ++i) {
      item(2 + i, step.registers.values[i]);
    }
    bytes += {'\x02', '\x33'};
    const size_t at = offset();
    std::copy(bytes.begin(), bytes.end(), buffer_.begin() + static_cast<ptrdiff_t>(at));
    REQUIRE(pt_enc_sync_set(encoder_, at + bytes.size()) == 0);
  }

  void call(uint64_t back) {
    returns_.push_back(back);
    if (returns_.size() > kReturns) {
      returns_.pop_front();
    }
  }

  void target(uint64_t ip) {
    flush_tnt();
    cycles();
    address(ppt_tip, ip);
  }

  void disable(uint64_t at) {
    if (losing_ == 0 && !resume_) {
      flush_tnt();
      cycles();
      address(ppt_fup, at);
      leave();
    } else {
      packet(ppt_ovf);  // resolved while tracing was off
      last_ip_ = 0;
      returns_.clear();
      losing_ = 0;
      resume_ = false;
      if (options_.kernel) {
        address(ppt_fup, kernel_ip());
        in_kernel_ = true;
      }
    }
    enabled_ = false;
  }

  void leave() {
    cycles();
    if (options_.kernel) {
      kernel_mode();
      address(ppt_tip, kernel_ip());
      in_kernel_ = true;
      kernel_code();
    } else {
      suppressed(ppt_tip_pgd);
    }
    enabled_ = false;
  }

  void enable(uint64_t ip) {
    if (offset() != group_end_) {
      cycles();
      time_stamp();
    }
    if (in_kernel_) {
      kernel_code();
      kernel_mode();
      address(ppt_tip, ip);
    } else {
      address(ppt_tip_pge, ip);
      returns_.clear();
    }
    in_kernel_ = false;
    enabled_ = true;
  }

  uint64_t kernel_ip() { return 0xFFFFFFFF81000000ULL + random_() % 0x100000; }

  // Of no matter for what user code does; sometimes the return addresses of the program go, too.
  void kernel_code() {
    for (uint64_t left = random_() % 8; left != 0; --left) {
      switch (random_() % 6) {
        case 0:
          address(ppt_tip, kernel_ip());
          break;
        case 1:  // an interrupt
          address(ppt_fup, kernel_ip());
          address(ppt_tip, kernel_ip());
          break;
        case 2: {
          pt_packet pip = make(ppt_pip);
          pip.payload.pip.cr3 = random_() % 4 << 12;
          write(pip);
          break;
        }
        case 3:
          returns_.clear();
          break;
        case 4:  // tracing is switched off and on
          suppressed(ppt_tip_pgd);
          time_stamp();
          address(ppt_tip_pge, kernel_ip());
          break;
        default: {
          pt_packet tnt = make(ppt_tnt_8);
          tnt.payload.tnt.bit_size = 3;
          tnt.payload.tnt.payload = random_() % 8;
          write(tnt);
        }
      }
    }
  }

  void kernel_mode() {
    if (random_() % 4 == 0) {
      pt_packet mode = make(ppt_mode);
      mode.payload.mode.leaf = pt_mol_exec;
      mode.payload.mode.bits.exec = pt_set_exec_mode(ptem_64bit);
      write(mode);
    }
  }

  void bit(bool taken) {
    tnt_.push_back(taken);
    const size_t most = options_.long_tnt && random_() % 2 == 0 ? 47 : 6;
    if (tnt_.size() >= most) {
      flush_tnt();
    }
  }

  void flush_tnt() {
    while (!tnt_.empty()) {
      const size_t bits = std::min<size_t>(tnt_.size(), tnt_.size() > 6 ? 47 : 6);
      cycles();
      pt_packet out = make(bits > 6 ? ppt_tnt_64 : ppt_tnt_8);
      out.payload.tnt.bit_size = static_cast<uint8_t>(bits);
      for (size_t i = 0; i < bits; ++i) {
        out.payload.tnt.payload = out.payload.tnt.payload << 1 | (tnt_[i] ? 1U : 0U);
      }
      tnt_.erase(tnt_.begin(), tnt_.begin() + static_cast<ptrdiff_t>(bits));
      write(out);
    }
  }

  void psb(uint64_t ip) {
    flush_tnt();
    cycles();
    last_psb_ = offset();
    stream_.psb_offsets.push_back(last_psb_);
    packet(ppt_psb);
    last_ip_ = 0;
    returns_.clear();
    time_stamp();
    pt_packet cbr = make(ppt_cbr);
    cbr.payload.cbr.ratio = kNominalRatio;
    write(cbr);
    pt_packet mode = make(ppt_mode);
    mode.payload.mode.leaf = pt_mol_exec;
    mode.payload.mode.bits.exec = pt_set_exec_mode(options_.bits == 64 ? ptem_64bit : ptem_32bit);
    write(mode);
    pt_packet pip = make(ppt_pip);
    pip.payload.pip.cr3 = 0x123000;
    write(pip);
    if (enabled_ || in_kernel_) {
      address(ppt_fup, enabled_ ? ip : kernel_ip());
    } else if (options_.early_fup) {
      address(ppt_fup, ip);
      last_ip_ = 0;  // the PGE behind it has the whole address
    }
    packet(ppt_psbend);
    group_end_ = offset();
  }

  void time_stamp() {
    pt_packet tsc = make(ppt_tsc);
    tsc.payload.tsc.tsc = now_;
    write(tsc);
    if (options_.mtc) {
      pt_packet tma = make(ppt_tma);
      tma.payload.tma.ctc = static_cast<uint16_t>(now_ / kTscRatioNumerator);
      tma.payload.tma.fc = static_cast<uint16_t>(now_ % kTscRatioNumerator);
      write(tma);
      last_mtc_ = now_ / kTscRatioNumerator >> kMtcFrequency;
    }
    last_cycle_ = now_;
  }

  void timing() {
    const uint64_t tick = now_ / kTscRatioNumerator >> kMtcFrequency;
    if (options_.mtc && offset() != 0 && tick != last_mtc_ && enabled_ && losing_ == 0 &&
        !resume_) {
      last_mtc_ = tick;
      cycles();
      pt_packet mtc = make(ppt_mtc);
      mtc.payload.mtc.ctc = static_cast<uint8_t>(tick);
      write(mtc);
    }
  }

  void cycles() {
    if (options_.cyc && now_ != last_cycle_) {
      pt_packet cyc = make(ppt_cyc);
      cyc.payload.cyc.value = now_ - last_cycle_;
      write(cyc);
      last_cycle_ = now_;
    }
  }

  // In as few bytes as the address before allows.
  void address(pt_packet_type type, uint64_t ip) {
    pt_packet out = make(type);
    out.payload.ip.ip = ip;
    if (ip >> 16 == last_ip_ >> 16) {
      out.payload.ip.ipc = pt_ipc_update_16;
      out.payload.ip.ip = ip & 0xFFFF;
    } else if (ip >> 32 == last_ip_ >> 32) {
      out.payload.ip.ipc = pt_ipc_update_32;
      out.payload.ip.ip = ip & 0xFFFFFFFF;
    } else if (random_() % 3 == 0) {
      out.payload.ip.ipc = pt_ipc_full;
    } else if (ip >> 48 == last_ip_ >> 48 && random_() % 2 == 0) {
      out.payload.ip.ipc = pt_ipc_update_48;
      out.payload.ip.ip = ip & 0xFFFFFFFFFFFFULL;
    } else {
      out.payload.ip.ipc = pt_ipc_sext_48;
      out.payload.ip.ip = ip & 0xFFFFFFFFFFFFULL;
    }
    last_ip_ = ip;
    write(out);
  }

  void suppressed(pt_packet_type type) {
    pt_packet out = make(type);
    out.payload.ip.ipc = pt_ipc_suppressed;
    write(out);
  }

  static pt_packet make(pt_packet_type type) {
    pt_packet out;
    std::memset(&out, 0, sizeof out);
    out.type = type;
    return out;
  }
  void packet(pt_packet_type type) { write(make(type)); }
  void write(const pt_packet& out) {
    const int status = pt_enc_next(encoder_, &out);
    REQUIRE(status > 0);
  }
  size_t offset() const {
    uint64_t at = 0;
    pt_enc_get_offset(encoder_, &at);
    return at;
  }

  const SteppedRun& run_;
  const EncodeOptions& options_;
  std::mt19937_64 random_;
  std::vector<uint8_t> buffer_;
  pt_encoder* encoder_ = nullptr;
  EncodedStream stream_;
  std::deque<uint64_t> returns_;
  std::vector<bool> tnt_;
  size_t position_ = 0;
  uint64_t now_ = 0;
  uint64_t last_ip_ = 0;
  uint64_t last_next_ = 0;
  uint64_t last_cycle_ = 0;
  uint64_t last_mtc_ = 0;
  size_t last_psb_ = 0;
  size_t group_end_ = 0;  // of the last PSB group
  unsigned losing_ = 0;
  bool resume_ = false;
  bool enabled_ = false;  // user code is traced
  bool in_kernel_ = false;
};

}  // namespace

EncodedRun encode(const SteppedRun& run, const EncodeOptions& options) {
  EncodedRun encoded;
  const size_t count = options.cpus == 0 ? run.threads.size() : options.cpus;
  std::vector<std::vector<size_t>> steps(count);
  std::mt19937_64 random(options.seed);
  uint64_t cpu = 0;
  for (size_t i = 0; i < run.steps.size(); ++i) {
    const Step& step = run.steps[i];
    if (options.cpus == 0) {
      steps[step.thread].push_back(i);
      continue;
    }
    if (i == 0 || run.steps[i - 1].quantum != step.quantum) {
      cpu = random() % options.cpus;
      encoded.switches.push_back(
          {static_cast<int64_t>(time_of(i)) - 3, static_cast<int>(cpu), step.thread});
    }
    steps[cpu].push_back(i);
  }
  for (size_t i = 0; i < count; ++i) {
    StreamEncoder encoder(run, options, options.seed + i);
    encoded.streams.push_back(encoder.encode(steps[i]));
    encoded.streams.back().cpu = options.cpus == 0 ? -1 : static_cast<int>(i);
    encoded.streams.back().thread = static_cast<uint32_t>(i);
  }
  return encoded;
}

}  // namespace tsomon::test
