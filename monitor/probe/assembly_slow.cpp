// What asm statements access: records, and what `tsomon explore` controls.
#include <cpuid.h>

#include "monitor/explore/runtime/runtime.h"
#include "monitor/probe/assembly_frame.h"
#include "monitor/probe/atomic_operations.h"
#include "monitor/probe/copy.h"
#include "monitor/probe/not_instrumented.h"

// Of xsave, for what the kernel has enabled; 0: fxsave.
extern "C" {
uint32_t tsomon_vector_state_size = 0;
}

namespace tsomon::probe::assembly {
namespace {

using explore::Op;

__attribute__((constructor(101))) void find_vector_state_size() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_OSXSAVE) == 0) {
    return;
  }
  uint32_t size = 576;
  for (const unsigned part : {2U, 5U, 6U, 7U}) {  // AVX, AVX-512: its size, and where it lies
    if (__get_cpuid_count(0xD, part, &a, &b, &c, &d) != 0 && a != 0 && a + b > size) {
      size = a + b;
    }
  }
  tsomon_vector_state_size = (size + 63) & ~63U;
}

template <typename T>
void record_load(AssemblyFrame& frame) {
  const auto* const address = at<const volatile Unaligned<T>>(frame);
  if ((frame.number & kLoaded) != 0) {
    const uint64_t key = capture::other_key(RecordType::kAtomicLoad, sizeof(T), frame.pc);
    put_load(local.context, key, address, temporary_of(frame, sizeof(T)));
    return;
  }
  set_temporary(frame, load_slow(at<const volatile T>(frame), frame.pc));
}

template <typename T>
void record_store(AssemblyFrame& frame, const SiteWord& site) {
  if (options.stamp_max_age != 0 || site.stays) {
    noise();
    auto* const address = at<volatile T>(frame);
    if (Context* const context = is_chosen_atomic(address) ? begin_open(false) : nullptr) {
      put_open(context, capture::other_key(RecordType::kAtomicStore, sizeof(T), frame.pc), address,
               temporary_of(frame, sizeof(T)));
    }
    return;
  }
  store_slow(at<volatile T>(frame), static_cast<T>(temporary_of(frame, sizeof(T))), kRelaxed,
             frame.pc);
}

template <typename T>
T record_change(AssemblyFrame& frame, const SiteWord& site, const LockedEffect& effect) {
  auto* const address = at<volatile T>(frame);
  const auto operand = static_cast<T>(effect.operand);
  switch (site.change) {
    case Change::kExchange:
      return exchange(address, operand, frame.pc);
    case Change::kAdd:
      return fetch_add(address, operand, frame.pc);
    case Change::kAnd:
      return modify(address, frame.pc, [operand](T old) { return static_cast<T>(old & operand); });
    case Change::kOr:
      return modify(address, frame.pc, [operand](T old) { return static_cast<T>(old | operand); });
    case Change::kXor:
      return modify(address, frame.pc, [operand](T old) { return static_cast<T>(old ^ operand); });
    default:
      auto expected = static_cast<T>(effect.expected);
      compare_exchange_recorded(address, &expected, operand, frame.pc);
      return expected;
  }
}

template <typename T>
void record_locked(AssemblyFrame& frame, const SiteWord& site) {
  run_again(frame, record_change<T>(frame, site, locked_effect(frame, site)));
}

#define TSOMON_BY_SIZE(FUNCTION, ...)         \
  switch (site.size) {                        \
    case 1:                                   \
      return FUNCTION<uint8_t>(__VA_ARGS__);  \
    case 2:                                   \
      return FUNCTION<uint16_t>(__VA_ARGS__); \
    case 4:                                   \
      return FUNCTION<uint32_t>(__VA_ARGS__); \
    default:                                  \
      return FUNCTION<uint64_t>(__VA_ARGS__); \
  }

void load_of(AssemblyFrame& frame, const SiteWord& site) { TSOMON_BY_SIZE(record_load, frame) }
void store_of(AssemblyFrame& frame, const SiteWord& site) {
  TSOMON_BY_SIZE(record_store, frame, site)
}
void locked_of(AssemblyFrame& frame, const SiteWord& site) {
  TSOMON_BY_SIZE(record_locked, frame, site)
}
#undef TSOMON_BY_SIZE

void record_fence(const AssemblyFrame& frame) {
  Operation operation(RecordType::kFence, nullptr, 0, 0, frame.pc);
  __builtin_ia32_mfence();
  operation.done_locked();
}

Wide pair(uint64_t low, uint64_t high) { return static_cast<Wide>(high) << 64 | low; }

void record_compare_exchange16(AssemblyFrame& frame) {
  Wide expected = pair(frame.registers[kRax], frame.registers[kRdx]);
  const Wide desired = pair(frame.registers[kRbx], frame.registers[kRcx]);
  const bool equal =
      compare_exchange_recorded(at<volatile Wide>(frame), &expected, desired, frame.pc);
  set_compared16(frame, equal, static_cast<uint64_t>(expected),
                 static_cast<uint64_t>(expected >> 64));
}

// What a program that is explored does.
class Explored {
 public:
  Explored(AssemblyFrame& frame, const SiteWord& site, const void* vectors)
      : frame_(frame), site_(site) {
    const uint64_t* const r = frame.registers;
    state_ = {{r[kRbx], r[kRbp], r[12], r[13], r[14], r[15]}, frame.stack(), 0};
    // The others may be in use as well.
    for (const int i : {0, 1, 2, 6, 7, 8, 9, 10, 11}) {
      add(r[i]);
    }
    const auto* const words = static_cast<const uint64_t*>(vectors);
    for (int i = 0; i < 32; ++i) {
      add(words[i]);
    }
  }

  void load() { set_temporary(frame_, static_cast<uint64_t>(step(Op::kLoad, 0, 0))); }
  void store() { step(Op::kStore, temporary_of(frame_, site_.size), 0); }
  void fence() { step(Op::kFence, 0, 0); }
  void locked() {
    const LockedEffect effect = locked_effect(frame_, site_);
    run_again(frame_, static_cast<uint64_t>(change(effect)));
  }
  void compare_exchange16() {
    const Wide expected = pair(frame_.registers[kRax], frame_.registers[kRdx]);
    const Wide desired = pair(frame_.registers[kRbx], frame_.registers[kRcx]);
    const Wide seen = step(Op::kCompareExchange, expected, desired);
    set_compared16(frame_, seen == expected, static_cast<uint64_t>(seen),
                   static_cast<uint64_t>(seen >> 64));
  }
  void copy_or_fill() {
    const Elements elements = elements_of(frame_, site_);
    string_instruction(frame_, site_, !perform(elements));
  }
  void not_understood() {
    step(Op::kFence, 0, 0);  // it may be anything, also locked
    explore::not_understood(reinterpret_cast<const char*>(frame_.address));
  }

 private:
  void add(uint64_t word) {
    state_.others = (state_.others ^ word) * 0x9E3779B97F4A7C15ULL;
    state_.others ^= state_.others >> 32;
  }
  explore::Value change(const LockedEffect& effect) {
    switch (site_.change) {
      case Change::kExchange:
        return step(Op::kExchange, effect.operand, 0);
      case Change::kAdd:
        return step(Op::kAdd, effect.operand, 0);
      case Change::kAnd:
        return step(Op::kAnd, effect.operand, 0);
      case Change::kOr:
        return step(Op::kOr, effect.operand, 0);
      case Change::kXor:
        return step(Op::kXor, effect.operand, 0);
      default:
        return step(Op::kCompareExchange, effect.expected, effect.operand);
    }
  }
  explore::Value step(Op op, explore::Value a, explore::Value b) {
    explore::Operation operation;
    operation.op = op;
    operation.address = op == Op::kFence ? 0 : frame_.address;
    operation.size = static_cast<uint8_t>(op == Op::kFence ? 0 : site_.size);
    operation.a = a;
    operation.b = b;
    operation.pc = frame_.pc;
    operation.state = op == Op::kStore ? nullptr : &state_;
    return explore::assembly(operation, state_.stack);
  }
  bool perform(const Elements& elements) const {
    auto* const to = reinterpret_cast<char*>(elements.to);
    if (site_.kind == SiteKind::kCopy) {
      return explore::copy(to, reinterpret_cast<const char*>(elements.from), elements.bytes,
                           frame_.pc);
    }
    char pattern[256];
    for (size_t i = 0; i < sizeof pattern; i += site_.size) {
      probe::copy(pattern + i, &frame_.registers[kRax], site_.size);
    }
    for (size_t done = 0; done < elements.bytes; done += sizeof pattern) {
      const size_t left = elements.bytes - done;
      if (!explore::copy(to + done, pattern, left < sizeof pattern ? left : sizeof pattern,
                         frame_.pc)) {
        return false;
      }
    }
    return true;
  }

  AssemblyFrame& frame_;
  const SiteWord& site_;
  explore::State state_;
};

void in_order_of_schedule(AssemblyFrame& frame, const SiteWord& site, const void* vectors) {
  Explored explored(frame, site, vectors);
  switch (site.kind) {
    case SiteKind::kLoad:
      return explored.load();
    case SiteKind::kStore:
      return explored.store();
    case SiteKind::kLockedEnd:
      return explored.locked();
    case SiteKind::kFence:
      return explored.fence();
    case SiteKind::kCompareExchange16:
      return explored.compare_exchange16();
    case SiteKind::kCopy:
    case SiteKind::kFill:
      return explored.copy_or_fill();
    case SiteKind::kUnknown:
      return explored.not_understood();
    default:
      return;
  }
}

void record(AssemblyFrame& frame, const SiteWord& site) {
  switch (site.kind) {
    case SiteKind::kLoad:
      return load_of(frame, site);
    case SiteKind::kStore:
      return store_of(frame, site);
    case SiteKind::kLockedEnd:
      return locked_of(frame, site);
    case SiteKind::kFence:
      return record_fence(frame);
    case SiteKind::kCompareExchange16:
      return record_compare_exchange16(frame);
    case SiteKind::kCopy:
    case SiteKind::kFill: {
      const Elements elements = elements_of(frame, site);
      auto* const to = reinterpret_cast<void*>(elements.to);
      if (site.kind == SiteKind::kCopy) {
        put_copy(to, reinterpret_cast<const void*>(elements.from), elements.bytes, frame.pc);
      } else {
        put_range(RecordType::kWrite, to, elements.bytes, frame.pc);
      }
      return string_instruction(frame, site, true);
    }
    case SiteKind::kUnknown:
      return note_not_understood(reinterpret_cast<const char*>(frame.address));
    default:
      return;
  }
}

void slow(AssemblyFrame& frame, const void* vectors) {
  const SiteWord site = unpack(static_cast<uint32_t>(frame.number));
  auto* const address = at<void>(frame);
  if (site.kind == SiteKind::kRead || site.kind == SiteKind::kReadWrite) {
    put_range(RecordType::kRead, address, site.size, frame.pc);
  }
  if (site.kind == SiteKind::kWrite || site.kind == SiteKind::kReadWrite) {
    put_range(RecordType::kWrite, address, site.size, frame.pc);
  }
  if (explore::active) {
    in_order_of_schedule(frame, site, vectors);
  } else {
    record(frame, site);
  }
}

}  // namespace
}  // namespace tsomon::probe::assembly

bool tsomon_assembly_slow(tsomon::probe::AssemblyFrame* frame, const void* vectors) {
  tsomon::probe::assembly::slow(*frame, vectors);
  const tsomon::SiteWord site = tsomon::unpack(static_cast<uint32_t>(frame->number));
  return !tsomon::explore::active && tsomon::probe::options.stamp_max_age != 0 &&
         site.kind == tsomon::SiteKind::kStore && !site.stays;
}
