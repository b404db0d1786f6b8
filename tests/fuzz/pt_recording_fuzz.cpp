// Any bytes as a perf.data with Intel PT: the whole way from the file to events ends, and what it
// gives holds together. The file may map "/900": some code that is always the same.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <sys/mman.h>
#include <unistd.h>

#include "monitor/pt/pt_source.h"
#include "tso/support/result.h"

namespace {

// A loop with a call, an indirect call, a load, a store, a locked instruction and a PTWRITE.
constexpr uint8_t kCode[] = {
    0xB9, 0x03, 0x00, 0x00, 0x00,                    // 00 mov ecx, 3
    0x48, 0x8B, 0x05, 0xF4, 0x00, 0x00, 0x00,        // 05 mov rax, [rip+0xf4]
    0xF3, 0x48, 0x0F, 0xAE, 0xE0,                    // 0c ptwrite rax
    0x48, 0x89, 0x08,                                // 11 mov [rax], rcx
    0xE8, 0x0A, 0x00, 0x00, 0x00,                    // 14 call 23
    0xFF, 0xD2,                                      // 19 call rdx
    0xFF, 0xC9,                                      // 1b dec ecx
    0x75, 0xE6,                                      // 1d jne 05
    0x0F, 0x05,                                      // 1f syscall
    0xEB, 0xE2,                                      // 21 jmp 05
    0xF0, 0xFF, 0x05, 0xD6, 0x00, 0x00, 0x00, 0xC3,  // 23 lock inc [rip+0xd6]; ret
};

// Under a number of its own, so that inputs can name it.
void provide_code() {
  constexpr int kNumber = 900;
  static const bool provided = [] {
    const int file = ::memfd_create("code", 0);
    return file >= 0 && ::write(file, kCode, sizeof kCode) == sizeof kCode &&
           ::dup2(file, kNumber) == kNumber && ::close(file) == 0;
  }();
  TSOMON_CHECK(provided, "no file for the code");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tsomon;
  if (size > size_t{1} << 16) {
    return 0;
  }
  provide_code();
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  PerfOptions options;
  FileSearch files;
  files.sysroot = "/proc/self/fd";  // no other file of this machine is read
  for (const bool units : {false, true}) {
    options.units.clear();
    if (units) {
      options.units.emplace_back("ptwrite:1..2:marked");
    }
    options.assume_memory = options.assume_frames = units;
    const auto read = read_pt_trace(bytes, options, files);
    if (!read) {
      continue;
    }
    const Trace& trace = read->trace.trace;
    int64_t last = kTimeMin;
    for (const Event& event : trace.events) {
      TSOMON_CHECK(event.lo >= last, "events out of order");
      TSOMON_CHECK(trace.lo(event) <= trace.hi(event), "an interval");
      last = event.lo;
    }
    TSOMON_CHECK(!trace.complete || read->trace.problems.empty(), "problems of a complete trace");
  }
  return 0;
}
