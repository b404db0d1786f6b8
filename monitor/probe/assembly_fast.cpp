// What asm statements access: what is done without touching a vector register. This file is compiled for general
// registers only and calls nothing outside of it.
#include "monitor/probe/assembly_frame.h"
#include "monitor/probe/atomic_operations.h"

namespace tsomon::probe::assembly {
namespace {

// The first call for an operand: its address is what the instruction would access.
void complete_address(AssemblyFrame& frame, const SiteWord& site) {
  if (site.segment == Segment::kFs) {
    uint64_t base = 0;
    asm("movq %%fs:0, %0" : "=r"(base));
    frame.address += base;
  }
  if (site.bit_register != 0) {
    const uint64_t all = frame.registers[site.bit_register - 1];
    const auto bit = site.size == 8   ? static_cast<int64_t>(all)
                     : site.size == 4 ? int64_t{static_cast<int32_t>(all)}
                                      : int64_t{static_cast<int16_t>(all)};
    const int shift = site.size == 8 ? 6 : site.size == 4 ? 5 : 4;
    frame.address += static_cast<uint64_t>((bit >> shift) * site.size);
  }
}

template <typename T>
bool load_now(AssemblyFrame& frame, bool recorded) {
  const auto* const address = at<const volatile Unaligned<T>>(frame);
  if (!recorded) {
    set_temporary(frame, *address);
    return true;
  }
  Context& context = *local.context;
  if (!simple_atomics || local.lock_code != 0 || !may_load_at_once(context)) {
    return false;
  }
  const uint64_t key = capture::other_key(RecordType::kAtomicLoad, sizeof(T), frame.pc);
  announce_stamp(context);
  asm volatile("" : : : "memory");
  const T value = *address;
  asm volatile("" : : : "memory");
  set_temporary(frame, value);
  if (put_load_at_once(context, key, address, value_of(value))) {
    return true;
  }
  frame.number |= kLoaded;
  return false;
}

template <typename T>
bool store_now(AssemblyFrame& frame, bool recorded, bool stays) {
  auto* const address = at<volatile Unaligned<T>>(frame);
  const auto value = static_cast<T>(temporary_of(frame, sizeof(T)));
  if (!recorded) {
    if (!stays) {
      *address = value;
    }
    return true;
  }
  Context& context = *local.context;
  const uint64_t key = capture::other_key(RecordType::kAtomicStore, sizeof(T), frame.pc);
  if (!simple_atomics || owes_stamp(context) || !can_open(context) ||
      !capture::put_open_cached(context.encoder, key, frame.address, value_of(value))) {
    return false;
  }
  asm volatile("" : : : "memory");
  if (!stays) {
    *address = value;
  }
  asm volatile("" : : : "memory");
  return true;
}

template <typename T>
void locked_now(AssemblyFrame& frame, const SiteWord& site) {
  auto* const address = at<volatile Unaligned<T>>(frame);
  const LockedEffect effect = locked_effect(frame, site);
  const auto operand = static_cast<T>(effect.operand);
  auto old = static_cast<T>(effect.expected);
  switch (site.change) {
    case Change::kExchange:
      old = __atomic_exchange_n(address, operand, __ATOMIC_SEQ_CST);
      break;
    case Change::kAdd:
      old = __atomic_fetch_add(address, operand, __ATOMIC_SEQ_CST);
      break;
    case Change::kAnd:
      old = __atomic_fetch_and(address, operand, __ATOMIC_SEQ_CST);
      break;
    case Change::kOr:
      old = __atomic_fetch_or(address, operand, __ATOMIC_SEQ_CST);
      break;
    case Change::kXor:
      old = __atomic_fetch_xor(address, operand, __ATOMIC_SEQ_CST);
      break;
    default:
      __atomic_compare_exchange_n(address, &old, operand, false, __ATOMIC_SEQ_CST,
                                  __ATOMIC_SEQ_CST);
      break;
  }
  run_again(frame, old);
}

void compare_exchange16_now(AssemblyFrame& frame) {
  uint64_t low = frame.registers[kRax];
  uint64_t high = frame.registers[kRdx];
  bool equal = false;
  asm volatile("lock cmpxchg16b %1"
               : "=@ccz"(equal), "+m"(*at<volatile Wide>(frame)), "+a"(low), "+d"(high)
               : "b"(frame.registers[kRbx]), "c"(frame.registers[kRcx])
               : "memory");
  set_compared16(frame, equal, low, high);
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

bool load_of(AssemblyFrame& frame, const SiteWord& site, bool recorded) {
  TSOMON_BY_SIZE(load_now, frame, recorded)
}
bool store_of(AssemblyFrame& frame, const SiteWord& site, bool recorded) {
  TSOMON_BY_SIZE(store_now, frame, recorded, site.stays)
}
void locked_of(AssemblyFrame& frame, const SiteWord& site) {
  TSOMON_BY_SIZE(locked_now, frame, site)
}
#undef TSOMON_BY_SIZE

// Flat: what is not inlined may be another file's, with vector registers.
__attribute__((flatten)) bool fast(AssemblyFrame& frame) {
  const SiteWord site = unpack(static_cast<uint32_t>(frame.number));
  if (site.kind != SiteKind::kLockedEnd && site.kind != SiteKind::kUnknown) {
    complete_address(frame, site);
  }
  if (site.kind == SiteKind::kLocked) {
    begin_locked(frame, site);
    return true;
  }
  if (site.kind == SiteKind::kLockedEnd && frame.replay.performed != 0) {
    return true;
  }
  const bool recorded = local.thread != nullptr;
  if (TSOMON_UNLIKELY(explore::active)) {
    return false;
  }
  if (site.kind == SiteKind::kLoad) {
    return load_of(frame, site, recorded);
  }
  if (site.kind == SiteKind::kStore) {
    return store_of(frame, site, recorded);
  }
  if (recorded) {
    return false;
  }
  if (site.kind == SiteKind::kLockedEnd) {
    locked_of(frame, site);
  } else if (site.kind == SiteKind::kCompareExchange16) {
    compare_exchange16_now(frame);
  } else if (site.kind == SiteKind::kCopy || site.kind == SiteKind::kFill) {
    string_instruction(frame, site, true);
  }
  return true;
}

}  // namespace
}  // namespace tsomon::probe::assembly

void tsomon_assembly_store(tsomon::probe::AssemblyFrame* frame) {
  namespace assembly = tsomon::probe::assembly;
  assembly::store_of(*frame, tsomon::unpack(static_cast<uint32_t>(frame->number)), false);
}
bool tsomon_assembly_fast(tsomon::probe::AssemblyFrame* frame) {
  return tsomon::probe::assembly::fast(*frame);
}
