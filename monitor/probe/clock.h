// Whether time stamps of different threads may be compared on this machine.
//
// stamp.h relies on two things that a program cannot see in a stamp:
//   counters  The time-stamp counters of all processors run at one rate and agree. Relied upon is
//   the
//             kernel: it takes "tsc" as its clock source only where the counters are constant in
//             rate, do not stop and were found synchronised at start, and drops it when its
//             watchdog sees them drift. CPUID's bit for an invariant counter says less (nothing
//             about other processors), and a virtual machine may hide it where the counters are
//             good.
//   LFENCE    No later instruction begins before it completes. Intel documents that; AMD and Hygon
//             promise it with CPUID 0x80000021 EAX bit 2, or when the kernel has switched it on and
//             says so ("lfence_rdtsc" in /proc/cpuinfo, which newer kernels no longer print).
// Where either is not known, no order between threads is claimed: the capture says so, and its
// reader opens all intervals (decoders/capture/format.h).
//
// Misses      A clock source that was forced upon the kernel (tsc=reliable, tsc=nowatchdog);
//             counters that a hypervisor changes while the program runs (migration, a restored
//             snapshot).
// Cost        A few microseconds, once. No allocation, no lock. Thread-safety: pure but for files.
#pragma once

#include <cstdint>
#include <cstring>

#include <cpuid.h>
#include <fcntl.h>
#include <unistd.h>

namespace tsomon::probe {

struct ClockState {
  bool lfence = false;   // LFENCE is known to wait
  char source[32] = {};  // of the kernel; empty: not known
  bool counters() const {
    return std::strcmp(source, "tsc") == 0 || std::strcmp(source, "kvm-clock") == 0;
  }
  bool orders_threads() const { return lfence && counters(); }
};

// The file's first bytes as text; false when it cannot be read.
inline bool read_start(const char* path, char* text, size_t size) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return false;
  }
  size_t have = 0;
  for (ssize_t got = 1; got > 0 && have < size - 1;
       have += static_cast<size_t>(got > 0 ? got : 0)) {
    got = ::read(file, text + have, size - 1 - have);
  }
  ::close(file);
  text[have] = '\0';
  return true;
}

inline bool lfence_waits() {
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

inline ClockState examine_clock() {
  ClockState state;
  state.lfence = lfence_waits();
  read_start("/sys/devices/system/clocksource/clocksource0/current_clocksource", state.source,
             sizeof state.source);
  state.source[std::strcspn(state.source, "\n")] = '\0';
  return state;
}

}  // namespace tsomon::probe
