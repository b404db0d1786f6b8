#include "monitor/probe/buffers.h"

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "monitor/probe/record_stamps.h"
#include "tso/model/channels.h"

namespace tsomon::probe {
namespace {

// Whether anybody has begun to receive by a channel with this hash.
std::atomic<bool> received[4096];
std::atomic<bool>& received_by(uint64_t channel) {
  return received[channel * 0x9E3779B97F4A7C15 >> 52];
}

size_t reserved(size_t parts) { return 2 + std::min(parts, Transfer::kMostParts); }

}  // namespace

void may_receive(int descriptor) {
  if (descriptor >= 0 && recording) {
    received_by(known_by(descriptor)).exchange(true);
  }
}

Transfer::Transfer(int descriptor, Way way, size_t parts, uint64_t pc)
    : accesses_(pc, static_cast<uint32_t>(reserved(parts))),
      context_(accesses_.context()),
      channel_(known_by(descriptor)),
      pc_(pc),
      before_(0),
      left_(std::min(parts, kMostParts)),
      interruptions_(*const_cast<volatile uint32_t*>(&local.interruptions)),
      way_(way) {
  if (context_ != nullptr) {
    put_stamp(*context_);
    before_ = context_->encoder.stamp;
  }
}

// Whoever begins to receive behind this look receives later than the second send, whose stamp was
// taken and left before it. A sender leaves its stamp before it sends.
bool Transfer::alone() const {
  switch (way_) {
    case Way::kSends:
      return !received_by(channel_).load() && !is_watched_by_set(channel_);
    case Way::kSendsTo:
      return false;
    case Way::kReceives:
      break;
  }
  return last_stamp(channel_) < before_;
}

void Transfer::point(RecordType type, uint64_t address, uint64_t stamp) {
  capture::put_point(context_->encoder, type, address, pc_, stamp);
  context_->stamped = context_->encoder.end;
}

void Transfer::begin() {
  if (context_ == nullptr ||
      interruptions_ != *const_cast<volatile uint32_t*>(&local.interruptions)) {
    return;
  }
  // The library may have got memory meanwhile, before it looked at the buffers: that is recorded.
  context_ = capture::has_room(local.context->encoder, static_cast<uint32_t>(reserved(left_)) + 1)
                 ? local.context
                 : writable_slow();
  if (context_ == nullptr) {
    return;
  }
  if (context_->encoder.end == context_->begun) {
    look_at_clock(*context_);
  }
  open_ = true;
  const bool sends = way_ != Way::kReceives;
  if (sends) {
    behind_ = stamp_in_order(*context_);
    leave_stamp(channel_, behind_, true);
  }
  alone_ = alone();
  before_ = std::max(before_, context_->encoder.stamp);
  if (!alone_) {
    const uint64_t ignored = (local.ignored_loads != 0 || sends ? 1U : 0U) |
                             (local.ignored_stores != 0 || !sends ? 2U : 0U);
    point(RecordType::kSend, kIgnored | ignored, before_);
  } else if (!sends) {
    point(RecordType::kReceive, channel_, before_);
  }
}

void Transfer::part(const volatile void* address, size_t size) {
  if (!open_ || left_ == 0 || size == 0) {
    return;
  }
  --left_;
  if (way_ == Way::kReceives) {
    accesses_.store(address, size);
  } else {
    accesses_.load(address, size);
  }
}

void Transfer::parts(const iovec* buffers, size_t count, size_t bytes) {
  for (size_t i = 0; i < count && bytes != 0; ++i) {
    const size_t size = std::min(buffers[i].iov_len, bytes);
    part(buffers[i].iov_base, size);
    bytes -= size;
  }
}

void Transfer::messages(const mmsghdr* all, int count) {
  for (int i = 0; i < count; ++i) {
    const msghdr& one = all[i].msg_hdr;
    parts(one.msg_iov, one.msg_iovlen, all[i].msg_len);
  }
}

void Transfer::end() {
  if (!open_) {
    return;
  }
  if (!alone_) {
    put_ignored(pc_);
  } else if (way_ == Way::kSends) {
    point(RecordType::kSend, channel_, std::max(behind_, context_->encoder.stamp));
  } else {
    put_stamp(*context_);
  }
  open_ = false;
}

}  // namespace tsomon::probe
