// Watches a process again and again for a moment: switches PID COUNT MICROSECONDS. Prints how often somebody took part.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>
#include <sys/mman.h>

#include "monitor/process/descriptor.h"
#include "monitor/slices/slice_client.h"

int main(int argc, char** argv) {
  if (argc != 4) {
    return 2;
  }
  tsomon::SliceRequest request;
  request.pid = static_cast<pid_t>(std::atoi(argv[1]));
  request.time = std::chrono::microseconds(std::atol(argv[3]));
  const long count = std::atol(argv[2]);
  long with_threads = 0;
  for (long i = 0; i < count; ++i) {
    const tsomon::Descriptor file(::memfd_create("slice", MFD_CLOEXEC));
    const auto end = tsomon::record_slice(request, file.get());
    if (!end) {
      fmt::print("slice {}: {}\n", i, end.error().to_string());
      return 1;
    }
    with_threads += end->threads != 0 ? 1 : 0;
  }
  fmt::print("{} {}\n", count, with_threads);
  return 0;
}
