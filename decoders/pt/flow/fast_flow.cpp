#include "decoders/pt/flow/fast_flow.h"

#include <algorithm>
#include <utility>

#include "decoders/pt/packets/user_packets.h"
#include "decoders/x86/decode.h"

namespace tsomon::pt {
namespace {

using x86::Branch;
using x86::Instruction;

constexpr unsigned kMostInstructions = 1024;  // of a block
constexpr unsigned kMostWithoutPacket = 64;   // blocks

}  // namespace

FastFlow::FastFlow(std::string_view bytes, const Input& input, const TraceStream& stream,
                   Times& times, Images& images, DecodedStream& out)
    : bytes_(bytes),
      times_(times),
      images_(images),
      out_(out),
      pieces_(input, stream, times, out,
              [this](int process, int64_t time) {
                images_.at(process, time);
                process_ = process;
                code_ = &codes_[process];
                if (const uint64_t version = images_.version(process); code_->version != version) {
                  code_->version = version;
                  code_->nodes.clear();
                }
                at_ = nullptr;
              }),
      reader_(bytes) {}

bool FastFlow::run() {
  const auto first = find_psb(bytes_, 0);
  if (!first) {
    return false;
  }
  offset_ = *first;
  while (true) {
    if (enabled_) {
      if (!follow()) {
        return false;
      }
      continue;
    }
    const Next next = peek();
    if (next == Next::kEnd && !cut_branch_) {  // where nothing is traced no branch is decided
      break;
    }
    if (!enable(next)) {
      return false;
    }
  }
  pieces_.leave_thread();
  pieces_.read_up_to(offset_);
  pieces_.end_unknown(offset_);
  return true;
}

bool FastFlow::enable(Next next) {
  if (next != Next::kEnabled || !wide_ || is_kernel(ip_)) {
    return false;
  }
  next_ = Next::kNone;
  pieces_.read_up_to(offset_);
  pieces_.enter_thread(packet_, packet_);
  pieces_.enabled(ip_);
  lo_ = times_.not_before(offset_);
  enabled_ = true;
  without_packet_ = 0;
  return code_ != nullptr && go_to(ip_);
}

// One block, and what the trace says after it.
bool FastFlow::follow() {
  const Node& node = *at_;
  switch (node.ends) {
    case Branch::kConditional: {
      const int64_t lo = lo_;
      if (bits_left_ == 0) {
        if (ahead() != Next::kBranches) {
          return stop(next_);
        }
        take();
      }
      without_packet_ = 0;
      pieces_.block(node.block, lo, hi_);
      executed(node);
      const bool taken = (bits_ >> --bits_left_ & 1U) != 0;
      Node*& next = taken ? at_->taken : at_->not_taken;
      if (next == nullptr) {
        next = find(taken ? node.target : node.next);
      }
      return go_to(next);
    }
    case Branch::kReturn: {
      if (bits_left_ == 0) {
        const int64_t lo = lo_;
        const Next next = ahead();
        if (next == Next::kTarget) {
          take();
          pieces_.block(node.block, lo, hi_);
          executed(node);
          without_packet_ = 0;
          return go_to(ip_);
        }
        if (next != Next::kBranches) {
          return stop(next);
        }
        take();
        pieces_.block(node.block, lo, hi_);
      } else {
        pieces_.block(node.block, lo_, hi_);
      }
      executed(node);
      without_packet_ = 0;
      // A return that goes where its call came from.
      const bool taken = (bits_ >> --bits_left_ & 1U) != 0;
      const auto ip = returns_.pop();
      return taken && ip && go_to(*ip);
    }
    case Branch::kIndirectJump:
    case Branch::kIndirectCall:
    case Branch::kFar: {
      if (bits_left_ != 0) {
        return false;
      }
      const int64_t lo = lo_;
      if (ahead() != Next::kTarget) {
        return stop(next_);
      }
      take();
      pieces_.block(node.block, lo, hi_);
      executed(node);
      without_packet_ = 0;
      return go_to(ip_);
    }
    default:
      return go_on_without_packet();
  }
}

bool FastFlow::go_on_without_packet() {
  const Node& node = *at_;
  if (++without_packet_ > kMostWithoutPacket) {
    return false;
  }
  const uint64_t next = node.ends == Branch::kNone ? node.next : node.target;
  if (bits_left_ != 0) {
    pieces_.block(node.block, lo_, hi_);
    executed(node);
    return go_to(next);
  }
  const Next packet = ahead();
  if (packet == Next::kDisabled || packet == Next::kInterrupt ||
      (packet == Next::kEnd && !cut_branch_)) {
    return stop(packet);
  }
  if (packet == Next::kBranches) {  // not yet
    offset_ = packet_;
    bits_left_ = 0;
    next_ = Next::kNone;
  }
  const bool value = packet == Next::kValue && node.ptwrite &&
                     (!has_ip_ || ip_ == node.block->instructions.back().address);
  const int64_t hi = times_.not_after(packet == Next::kEnd ? offset_ : packet_);
  pieces_.block(node.block, lo_, hi);
  executed(node);
  if (value) {
    next_ = Next::kNone;
    pieces_.read_up_to(offset_);
    pieces_.mark(PathEntry::Kind::kValue, value_);
  }
  return go_to(next);
}

// The trace is switched off, or ends, in this block.
bool FastFlow::stop(Next next) {
  const Node& node = *at_;
  if (next == Next::kEnd) {
    if (psb_seen_) {  // executed up to there
      return false;
    }
    if (cut_branch_) {
      pieces_.block(node.block, lo_, times_.not_after(offset_));
    }  // else nothing says that the rest was executed
    enabled_ = false;
    return true;
  }
  if (next != Next::kDisabled && next != Next::kInterrupt) {
    return false;
  }
  const bool interrupt = next == Next::kInterrupt;
  size_t count = node.block->instructions.size();
  bool found = false;
  if (interrupt || has_ip_) {
    const uint64_t ip = interrupt ? from_ : ip_;
    const auto at =
        std::find_if(node.block->instructions.begin(), node.block->instructions.end(),
                     [&](const Instruction& instruction) { return instruction.address == ip; });
    found = at != node.block->instructions.end();
    count = static_cast<size_t>(at - node.block->instructions.begin());
  }
  if (!found && !needs_packet(node)) {  // not yet
    pieces_.block(node.block, lo_, times_.not_after(packet_));
    executed(node);
    return go_to(node.ends == Branch::kNone ? node.next : node.target);
  }
  if (!found && interrupt) {
    return false;
  }
  const CodeBlock* part = node.block;
  if (found && count != 0) {
    part = out_.code->find(static_cast<uint64_t>(node.isid), node.block->ip(),
                           static_cast<uint32_t>(count),
                           [&](uint64_t address, uint8_t* to, size_t size) {
                             return images_.read(node.isid, address, to, size);
                           });
    if (part == nullptr) {
      return false;
    }
  }
  if (count != 0) {
    pieces_.block(part, lo_, times_.not_after(packet_));
    for (const uint64_t ip : calls_of(*part)) {
      returns_.push(ip);
    }
  }
  if (interrupt) {
    pieces_.expect(from_);
  } else if (has_ip_ && !is_kernel(ip_)) {
    pieces_.expect(ip_);
  }
  pieces_.read_up_to(offset_);
  pieces_.leave_thread();
  enabled_ = false;
  psb_seen_ = false;
  next_ = Next::kNone;
  return true;
}

bool FastFlow::go_to(Node* node) {
  at_ = node;
  return node != nullptr;
}

bool FastFlow::go_to(uint64_t ip) {
  if (at_ == nullptr) {
    return go_to(find(ip));
  }
  Node* recent = at_->recent;
  if (recent == nullptr || recent->block->ip() != ip) {
    at_->recent = recent = find(ip);
  }
  return go_to(recent);
}

void FastFlow::executed(const Node& node) {
  for (const uint64_t ip : node.calls) {
    returns_.push(ip);
  }
}

FastFlow::Next FastFlow::behind_psb() {
  const auto& instructions = at_->block->instructions;
  if (std::any_of(instructions.begin(), instructions.end(),
                  [this](const Instruction& each) { return each.address == *psb_ip_; })) {
    psb_ip_.reset();
  } else if (next_ == Next::kDisabled || next_ == Next::kInterrupt || needs_packet(*at_)) {
    next_ = Next::kUnknown;  // the stream is damaged
  }
  return next_;
}

FastFlow::Next FastFlow::read() {
  while (offset_ < bytes_.size()) {
    const auto first = static_cast<uint8_t>(bytes_[offset_]);
    if ((first & 1U) != 0 || first < 4) {
      const Next next = read_slowly();
      if (next != Next::kNone) {
        return next;
      }
      continue;
    }
    // Up to six branches.
    if (!enabled_ || in_psb_ || bits_left_ != 0) {
      return Next::kUnknown;
    }
    packet_ = offset_++;
    bits_left_ = 30U - static_cast<unsigned>(__builtin_clz(first));
    bits_ = first >> 1;
    return Next::kBranches;
  }
  return Next::kEnd;
}

PacketStatus FastFlow::read_packet(Packet& packet) {
  reader_.set_offset(offset_);
  const PacketStatus status = reader_.next(packet);
  offset_ = reader_.offset();
  return status;
}

// The next packet that does not pass; false: there is none, or it is damaged.
bool FastFlow::read_after_passing(Packet& packet) {
  do {
    if (read_packet(packet) != PacketStatus::kPacket) {
      return false;
    }
  } while (passes(packet));
  return true;
}

// kNone: nothing that matters here.
FastFlow::Next FastFlow::read_slowly() {
  const size_t begin = offset_;
  Packet packet;
  const PacketStatus status = read_packet(packet);
  if (status == PacketStatus::kEnd) {
    // A branch was decided even if the packet that says how is cut off.
    const std::string_view rest = bytes_.substr(begin);
    cut_branch_ = !in_psb_ && (rest.substr(0, 2) == "\x02\xA3" || (rest[0] & 0x1F) == 0x0D);
    return Next::kEnd;
  }
  if (status != PacketStatus::kPacket) {
    return Next::kUnknown;
  }
  if (passes(packet)) {
    return Next::kNone;
  }
  if (const auto state = read_state(packet)) {
    return *state;
  }
  if (in_psb_ || !synced_) {
    return Next::kUnknown;
  }
  packet_ = begin;
  return read_flow(packet);
}

// What says in which state the processor is, at any time or in a PSB+ (an FUP there too).
std::optional<FastFlow::Next> FastFlow::read_state(const Packet& packet) {
  switch (packet.type) {
    case PacketType::kPsb:
      if (in_psb_) {
        return Next::kUnknown;
      }
      in_psb_ = true;
      psb_has_ip_ = false;
      last_address_.reset();
      return Next::kNone;
    case PacketType::kPsbEnd: {
      if (!in_psb_ || psb_has_ip_ != (enabled_ || (!synced_ && psb_has_ip_))) {
        return Next::kUnknown;
      }
      in_psb_ = false;
      const bool begins = !synced_ && psb_has_ip_;
      synced_ = true;
      if (enabled_) {
        if (psb_ip_) {
          return Next::kUnknown;
        }
        psb_seen_ = true;
        psb_ip_ = ip_;
      }
      packet_ = offset_;
      return begins ? Next::kEnabled : Next::kNone;
    }
    case PacketType::kMode:
      if (packet.payload >> 5 == 0) {  // MODE.Exec
        wide_ = (packet.payload & 3U) == 1;
        return wide_ ? Next::kNone : Next::kUnknown;
      }
      return in_psb_ && (packet.payload & 3U) == 0 ? Next::kNone : Next::kUnknown;
    case PacketType::kPip:
    case PacketType::kVmcs:
      return in_psb_ || !enabled_ ? Next::kNone : Next::kUnknown;
    case PacketType::kFup:
      if (!in_psb_) {
        return std::nullopt;
      }
      psb_has_ip_ = address(packet, ip_);
      return psb_has_ip_ ? Next::kNone : Next::kUnknown;
    default:
      return std::nullopt;
  }
}

// What says where the program went.
FastFlow::Next FastFlow::read_flow(const Packet& packet) {
  switch (packet.type) {
    case PacketType::kTnt:
      if (!enabled_) {
        return Next::kUnknown;
      }
      bits_ = packet.payload;
      bits_left_ = packet.detail;
      return Next::kBranches;
    case PacketType::kTip:
      return enabled_ && address(packet, ip_) && !is_kernel(ip_) ? Next::kTarget : Next::kUnknown;
    case PacketType::kTipPge:
      return !enabled_ && address(packet, ip_) ? Next::kEnabled : Next::kUnknown;
    case PacketType::kTipPgd:
      has_ip_ = address(packet, ip_);
      return enabled_ ? Next::kDisabled : Next::kUnknown;
    case PacketType::kFup: {
      // Before the packet that switches the trace off.
      Packet off;
      if (!enabled_ || !address(packet, from_) || !read_after_passing(off) ||
          off.type != PacketType::kTipPgd) {
        return Next::kUnknown;
      }
      has_ip_ = address(off, ip_);
      return Next::kInterrupt;
    }
    case PacketType::kPtw: {
      value_ = packet.payload;
      has_ip_ = packet.detail != 0;
      if (!enabled_) {
        return Next::kUnknown;
      }
      if (!has_ip_) {
        return Next::kValue;
      }
      Packet where;
      const bool found = read_after_passing(where) && where.type == PacketType::kFup;
      return found && address(where, ip_) ? Next::kValue : Next::kUnknown;
    }
    default:
      return Next::kUnknown;
  }
}

bool FastFlow::passes(const Packet& packet) {
  switch (packet.type) {
    case PacketType::kPad:
    case PacketType::kMtc:
    case PacketType::kCyc:
      return true;
    case PacketType::kTsc:
      tma_may_follow_ = true;
      return true;
    case PacketType::kTma:
      return std::exchange(tma_may_follow_, false);
    case PacketType::kCbr:
      return packet.payload != 0;
    default:
      return false;
  }
}

bool FastFlow::address(const Packet& packet, uint64_t& ip) {
  const auto found = last_address_.update(packet);
  ip = found.value_or(0);
  return found.has_value();
}

FastFlow::Node* FastFlow::find(uint64_t ip) {
  const auto known = code_->nodes.find(ip);
  if (known != code_->nodes.end()) {
    return known->second;
  }
  Node* made = make(ip);
  if (made != nullptr) {
    code_->nodes.emplace(ip, made);
  }
  return made;
}

// Up to the next place where something has to tell how it goes on, or where another file begins.
FastFlow::Node* FastFlow::make(uint64_t ip) {
  const Images::Mapped mapped = images_.find(process_, ip);
  const auto read = [&](uint64_t address, uint8_t* to, size_t size) {
    return address < mapped.begin || address >= mapped.end
               ? 0
               : images_.read(mapped.isid, address, to,
                              std::min<uint64_t>(size, mapped.end - address));
  };
  uint32_t count = 0;
  for (uint64_t at = ip; count < kMostInstructions; ++count) {
    if (count != 0 && (at < mapped.begin || at >= mapped.end)) {
      break;
    }
    std::array<uint8_t, x86::kMaxInstruction> bytes{};
    const size_t got = read(at, bytes.data(), bytes.size());
    const auto instruction = x86::decode(bytes.data(), got, at);
    if (!instruction) {
      return nullptr;
    }
    if (instruction->branch == Branch::kJump || instruction->branch == Branch::kCall) {
      at = instruction->target;
      continue;
    }
    if (instruction->branch != Branch::kNone || instruction->ptwrite) {
      ++count;
      break;
    }
    at = instruction->next();
  }
  const CodeBlock* block = out_.code->find(static_cast<uint64_t>(mapped.isid), ip, count, read);
  if (block == nullptr) {
    return nullptr;
  }
  const Instruction& last = block->instructions.back();
  Node& node = nodes_.emplace_back();
  node.block = block;
  node.ends = last.branch;
  node.ptwrite = last.ptwrite;
  node.isid = mapped.isid;
  node.next = last.next();
  node.target = last.target;
  node.calls = calls_of(*block);
  return &node;
}

// A call to what follows it only tells the program where it is.
std::vector<uint64_t> FastFlow::calls_of(const CodeBlock& block) {
  std::vector<uint64_t> calls;
  for (const Instruction& instruction : block.instructions) {
    if (instruction.branch == Branch::kIndirectCall ||
        (instruction.branch == Branch::kCall && instruction.target != instruction.next())) {
      calls.push_back(instruction.next());
    }
  }
  return calls;
}

}  // namespace tsomon::pt
