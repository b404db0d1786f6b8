// The control flow of a stream straight from its packets, block by block.
//
// Purpose     The quick way through the streams that user code writes: branches, the trace being
//             switched on and off (system calls, interrupts, context switches), PTWRITE, time. A
//             block of code is looked up once and knows the ones that followed it.
// Contract    Either what libipt's block decoder gives on the same bytes, or nothing: anything
//             else (overflows, transactions, 32-bit code, code that is not mapped, packets that do
//             not fit the code) makes run() give up, and the stream is libipt's.
// Source      Intel SDM volume 3, "Intel Processor Trace"; where a packet leaves a choice of the
//             instruction it belongs to, libipt's choice.
// Complexity  O(1) a block and a packet.
// Thread-safety: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include <tsl/robin_map.h>

#include "decoders/pt/code/images.h"
#include "decoders/pt/flow/path_pieces.h"
#include "decoders/pt/packets/packets.h"
#include "decoders/pt/packets/times.h"

namespace tsomon::pt {

class FastFlow {
 public:
  FastFlow(std::string_view bytes, const Input& input, const TraceStream& stream, Times& times,
           Images& images, DecodedStream& out);

  // False: given up. What it has put out until then is to be forgotten.
  bool run();
  // Puts out what it still holds.
  void leave() { pieces_.leave_thread(); }

 private:
  // What the next packet is that says where the path goes.
  enum class Next : uint8_t {
    kNone,
    kBranches,   // bits_
    kTarget,     // ip_
    kEnabled,    // at ip_, which began at packet_
    kDisabled,   // after a branch, or before ip_
    kInterrupt,  // disabled, before from_
    kValue,      // value_ was written, by the instruction at ip_ if that is known
    kEnd,
    kUnknown,
  };
  struct Node {
    const CodeBlock* block = nullptr;
    x86::Branch ends = x86::Branch::kNone;  // kNone: what follows needs no packet
    bool ptwrite = false;
    int isid = 0;
    uint64_t next = 0;            // before what follows, in memory
    uint64_t target = 0;          // of a direct branch
    std::vector<uint64_t> calls;  // the return addresses that it leaves on the stack
    Node* taken = nullptr;
    Node* not_taken = nullptr;
    Node* recent = nullptr;  // the last one that a packet led to
  };
  struct Code {
    uint64_t version = 0;
    tsl::robin_map<uint64_t, Node*> nodes;
  };
  // Where calls return to: the processor remembers 64.
  class Returns {
   public:
    void push(uint64_t ip) {
      top_ = (top_ + 1) % kMost;
      ips_[top_] = ip;
      count_ = count_ < kMost ? count_ + 1 : kMost;
    }
    std::optional<uint64_t> pop() {
      if (count_ == 0) {
        return std::nullopt;
      }
      const uint64_t ip = ips_[top_];
      top_ = (top_ + kMost - 1) % kMost;
      --count_;
      return ip;
    }

   private:
    static constexpr size_t kMost = 64;
    std::array<uint64_t, kMost> ips_{};
    size_t top_ = 0;
    size_t count_ = 0;
  };

  static bool needs_packet(const Node& node) {
    return node.ends != x86::Branch::kNone && node.ends != x86::Branch::kJump &&
           node.ends != x86::Branch::kCall;
  }

  bool enable(Next next);
  bool follow();
  bool go_on_without_packet();
  bool stop(Next next);
  bool go_to(Node* node);
  bool go_to(uint64_t ip);
  void executed(const Node& node);
  // What was read now counts. What ends with one of its branches came before it was written.
  void take() {
    next_ = Next::kNone;
    psb_seen_ = false;
    hi_ = times_.not_after(packet_);
    lo_ = times_.not_before(offset_);
  }

  Next peek() {
    if (next_ == Next::kNone) {
      next_ = read();
    }
    return next_;
  }
  // The same for the current block, which a PSB that came before must lie in, or before it.
  Next ahead() {
    peek();
    return psb_ip_ ? behind_psb() : next_;
  }
  Next behind_psb();
  Next read();
  PacketStatus read_packet(Packet& packet);
  bool read_after_passing(Packet& packet);
  Next read_slowly();
  std::optional<Next> read_state(const Packet& packet);
  Next read_flow(const Packet& packet);
  // Says nothing of the path: padding and time. Not what shows that packets are missing or
  // damaged, where libipt stops: a TMA that is not its TSC's first, a CBR of nothing.
  bool passes(const Packet& packet);
  bool address(const Packet& packet, uint64_t& ip);

  Node* find(uint64_t ip);
  Node* make(uint64_t ip);
  static std::vector<uint64_t> calls_of(const CodeBlock& block);

  std::string_view bytes_;
  Times& times_;
  Images& images_;
  DecodedStream& out_;
  PathPieces pieces_;

  // Packets.
  size_t offset_ = 0;
  size_t packet_ = 0;
  PacketReader reader_;
  LastAddress last_address_;
  Next next_ = Next::kNone;  // read, but not taken yet
  uint64_t bits_ = 0;
  unsigned bits_left_ = 0;
  uint64_t ip_ = 0;
  uint64_t from_ = 0;
  uint64_t value_ = 0;
  bool has_ip_ = false;
  bool cut_branch_ = false;  // at the end
  bool tma_may_follow_ = false;
  bool in_psb_ = false;
  bool synced_ = false;
  bool psb_has_ip_ = false;
  bool psb_seen_ = false;           // since the last packet that was taken, while enabled
  std::optional<uint64_t> psb_ip_;  // where it says that the path is; not come by yet
  bool wide_ = false;               // 64-bit code: the trace has said so

  // Code.
  int process_ = 0;
  std::map<int, Code> codes_;
  Code* code_ = nullptr;
  std::deque<Node> nodes_;

  // The path.
  bool enabled_ = false;
  Node* at_ = nullptr;
  unsigned without_packet_ = 0;  // nodes, one after another
  int64_t lo_ = kTimeMin;        // of what follows
  int64_t hi_ = kTimeMax;        // of what comes before
  Returns returns_;
};

}  // namespace tsomon::pt
