// What a time stamp relies on beside the margin that clock_meter.h measures: that LFENCE waits.
//
// LFENCE      No later instruction begins before it completes, and it completes when all earlier
//             ones have. Intel documents that; AMD and Hygon promise it with CPUID 0x80000021 EAX
//             bit 2, or when the kernel has switched it on. A virtual machine may show that bit
//             wrongly, so it is measured: a chain of multiplications takes some 300 cycles of the
//             core; a stamp behind it and LFENCE that comes earlier did not wait. Only where that
//             says nothing, since RDTSC itself takes so long (it traps), the documents count.
// Source      The kernel's clock source is no more than a hint for people: it takes "tsc" where the
//             counters are constant in rate and were found synchronised at start, and virtual
//             machines have others where the counters are as good.
// Cost        Some 20 microseconds, once. No allocation, no lock. Thread-safety: pure but for
//             files.
#pragma once

#include <cstdint>
#include <cstring>

#include <cpuid.h>
#include <fcntl.h>
#include <unistd.h>

#include "decoders/capture/kernel_calls.h"

namespace tsomon::probe {

// The file's first bytes as text; false when it cannot be read.
inline bool read_start(const char* path, char* text, size_t size) {
  const int file = kernel::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return false;
  }
  size_t have = 0;
  for (ssize_t got = 1; got > 0 && have < size - 1;
       have += static_cast<size_t>(got > 0 ? got : 0)) {
    got = kernel::read(file, text + have, size - 1 - have);
  }
  kernel::close(file);
  text[have] = '\0';
  return true;
}

inline bool lfence_is_documented() {
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;
  uint32_t d = 0;
  if (__get_cpuid(0, &a, &b, &c, &d) == 0) {
    return false;
  }
  const uint32_t vendor[3] = {b, d, c};
  if (std::memcmp(vendor, "GenuineIntel", sizeof vendor) == 0) {
    return true;
  }
  if (std::memcmp(vendor, "AuthenticAMD", sizeof vendor) != 0 &&
      std::memcmp(vendor, "HygonGenuine", sizeof vendor) != 0) {
    return false;
  }
  // From family 19h (Zen 3) on it always is, also where a virtual machine does not show the bit.
  if (__get_cpuid(1, &a, &b, &c, &d) != 0 && ((a >> 8) & 0xF) + ((a >> 20) & 0xFF) >= 0x19) {
    return true;
  }
  if (__get_cpuid(0x80000021, &a, &b, &c, &d) != 0 && (a & (1U << 2)) != 0) {
    return true;
  }
  char text[4096];  // the first processor stands for all
  return read_start("/proc/cpuinfo", text, sizeof text) &&
         std::strstr(text, " lfence_rdtsc") != nullptr;
}

// Cycles between two stamps around the chain, the second one behind LFENCE or not.
inline uint32_t time_chain(bool fenced) {
  uint32_t cycles = 0;
  uint64_t factor = 3;
  if (fenced) {
    asm volatile(
        "lfence\n\trdtsc\n\tlfence\n\tmovl %%eax, %%esi\n\t"
        ".rept 100\n\timulq %1, %1\n\t.endr\n\t"
        "lfence\n\trdtsc\n\tsubl %%esi, %%eax"
        : "=&a"(cycles), "+r"(factor)
        :
        : "rdx", "rsi", "cc", "memory");
  } else {
    asm volatile(
        "lfence\n\trdtsc\n\tlfence\n\tmovl %%eax, %%esi\n\t"
        ".rept 100\n\timulq %1, %1\n\t.endr\n\t"
        "rdtsc\n\tsubl %%esi, %%eax"
        : "=&a"(cycles), "+r"(factor)
        :
        : "rdx", "rsi", "cc", "memory");
  }
  return cycles;
}

inline bool lfence_waits() {
  constexpr int kTries = 64;
  // The core may run at three times the counter's rate.
  constexpr uint32_t kChain = 100;
  uint32_t fenced = ~0U;
  uint32_t free = ~0U;
  for (int i = 0; i < kTries; ++i) {
    const uint32_t with = time_chain(true);
    const uint32_t without = time_chain(false);
    fenced = with < fenced ? with : fenced;
    free = without < free ? without : free;
  }
  // Without the fence the stamp is as late: the measurement says nothing.
  return free >= fenced / 2 && free >= kChain ? lfence_is_documented() : fenced >= kChain;
}

// Of the kernel; empty: not known.
struct ClockSource {
  char text[32] = {};
};
inline ClockSource clock_source() {
  ClockSource source;
  read_start("/sys/devices/system/clocksource/clocksource0/current_clocksource", source.text,
             sizeof source.text);
  source.text[std::strcspn(source.text, "\n")] = '\0';
  return source;
}

}  // namespace tsomon::probe
