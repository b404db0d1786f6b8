// Stands in for libFuzzer where the compiler has none: runs every file of the given folders once.
// Options (-runs=0) are libFuzzer's and ignored.
//
// An input below kSmall may take a second of the processor and 512 MiB, as in tools/fuzz: beyond
// that the process ends, and the name printed last is that of the input. With sanitizers, which
// make everything slower and reserve memory of their own, it may take ten seconds.

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

#ifdef TSOMON_SANITIZED
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
constexpr size_t kSmall = 65536;
constexpr long kSeconds = kSanitized ? 10 : 1;
constexpr rlim_t kMemory = rlim_t{512} << 20;

// What is mapped now, and kMemory more.
void limit_memory() {
  if (kSanitized) {
    return;
  }
  std::ifstream pages("/proc/self/statm");
  rlim_t mapped = 0;
  pages >> mapped;
  mapped *= static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = mapped + kMemory < limit.rlim_max ? mapped + kMemory : limit.rlim_max;
  setrlimit(RLIMIT_AS, &limit);
}

// 0: none. SIGPROF ends the process when it is over.
void limit_time(long seconds) {
  const itimerval limit{{0, 0}, {seconds, 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  limit_memory();
  size_t inputs = 0;
  for (int i = 1; i < argc; ++i) {
    if (argv[i][0] == '-') {
      continue;
    }
    std::error_code error;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i], error)) {
      if (!entry.is_regular_file()) {
        continue;
      }
      std::ifstream file(entry.path(), std::ios::binary);
      // Exactly as long as the input: a sanitizer sees one byte too far.
      std::vector<char> bytes{std::istreambuf_iterator<char>(file),
                              std::istreambuf_iterator<char>()};
      bytes.shrink_to_fit();
      std::fprintf(stderr, "%s\n", entry.path().c_str());
      limit_time(bytes.size() < kSmall ? kSeconds : 0);
      LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
      limit_time(0);
      ++inputs;
    }
    if (error) {
      std::fprintf(stderr, "%s: %s\n", argv[i], error.message().c_str());
      return 1;
    }
  }
  std::fprintf(stderr, "%zu inputs\n", inputs);
  return inputs == 0 ? 1 : 0;  // an empty corpus tests nothing
}
