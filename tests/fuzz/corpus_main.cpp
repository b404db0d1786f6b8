// Stands in for libFuzzer where the compiler has none: runs every file of the given folders once.
// Options (-runs=0) are libFuzzer's and ignored, but -mutations=N: so many inputs in all that were
// made of the files, the same every time; what is in one that ended the process is left in the file
// NAME.last, in the working folder.
//
// An input below kSmall may take a second of the processor and 512 MiB, as in tools/fuzz: beyond
// that the process ends, and the name printed last is that of the input. With sanitizers, which
// make everything slower and reserve memory of their own, it may take ten seconds.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
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

using Bytes = std::vector<char>;

void run(const Bytes& bytes) {
  // Exactly as long as the input: a sanitizer sees one byte too far.
  const Bytes exact(bytes);
  limit_time(exact.size() < kSmall ? kSeconds : 0);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(exact.data()), exact.size());
  limit_time(0);
}

class Mutations {
 public:
  Mutations(std::vector<Bytes> files, std::string last)
      : files_(std::move(files)), last_(std::move(last)) {}

  void run_all(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      Bytes bytes = files_[i % files_.size()];
      for (uint64_t change = 0, changes = 1 + below(4); change < changes; ++change) {
        mutate(&bytes);
      }
      bytes.resize(std::min(bytes.size(), kSmall - 1));
      std::ofstream(last_, std::ios::binary).write(bytes.data(), static_cast<long>(bytes.size()));
      run(bytes);
    }
    std::filesystem::remove(last_);
  }

 private:
  uint64_t below(uint64_t bound) { return random_() % bound; }

  void mutate(Bytes* bytes) {
    const auto begin = bytes->begin();
    const size_t at = below(bytes->size() + 1);
    const auto place = begin + static_cast<ptrdiff_t>(at);
    const size_t rest = bytes->size() - at;
    const size_t length = std::min<size_t>(rest, 1 + below(below(4) == 0 ? 256 : 8));
    const auto end = place + static_cast<ptrdiff_t>(length);
    switch (below(8)) {
      case 0:
        bytes->resize(at);  // cut off
        return;
      case 1:
        bytes->erase(place, end);
        return;
      case 2: {
        const Bytes again(place, end);
        bytes->insert(place, again.begin(), again.end());
        return;
      }
      case 3: {  // from another place, or another file
        const Bytes& from = files_[below(files_.size())];
        if (!from.empty()) {
          const size_t first = below(from.size());
          const size_t size = std::min(from.size() - first, length);
          std::copy_n(from.begin() + static_cast<ptrdiff_t>(first), size, place);
        }
        return;
      }
      case 4: {  // numbers at the edge
        constexpr uint64_t kNumbers[] = {0,          1,          0x7F,       0xFF,      0x7FFF,
                                         0x7FFFFFFF, 0xFFFFFFFF, UINT64_MAX, INT64_MAX, 1U << 20};
        const uint64_t number = kNumbers[below(std::size(kNumbers))];
        std::memcpy(bytes->data() + at, &number, std::min<size_t>(rest, 1U << below(4)));
        return;
      }
      case 5: {  // and as text
        constexpr const char* kTexts[] = {"0",  "-1", "18446744073709551616", "T99999", "|",
                                          "\n", "\""};
        const std::string text = kTexts[below(std::size(kTexts))];
        bytes->insert(place, text.begin(), text.end());
        return;
      }
      default:
        for (size_t i = 0; i < length && below(2) == 0; ++i) {
          (*bytes)[at + i] = static_cast<char>((*bytes)[at + i] ^ (1 << below(8)));
        }
    }
  }

  std::mt19937_64 random_{39};
  const std::vector<Bytes> files_;
  const std::string last_;
};

}  // namespace

int main(int argc, char** argv) {
  limit_memory();
  size_t inputs = 0;
  uint64_t mutations = 0;
  std::vector<Bytes> files;
  for (int i = 1; i < argc; ++i) {
    if (argv[i][0] == '-') {
      constexpr const char* kMutations = "-mutations=";
      if (std::strncmp(argv[i], kMutations, std::strlen(kMutations)) == 0) {
        mutations = std::strtoull(argv[i] + std::strlen(kMutations), nullptr, 10);
      }
      continue;
    }
    std::error_code error;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i], error)) {
      if (!entry.is_regular_file()) {
        continue;
      }
      std::ifstream file(entry.path(), std::ios::binary);
      Bytes bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
      std::fprintf(stderr, "%s\n", entry.path().c_str());
      run(bytes);
      files.push_back(std::move(bytes));
      ++inputs;
    }
    if (error) {
      std::fprintf(stderr, "%s: %s\n", argv[i], error.message().c_str());
      return 1;
    }
  }
  std::sort(files.begin(), files.end());  // whatever the order of the folder
  if (mutations != 0 && !files.empty()) {
    Mutations(std::move(files), std::filesystem::path(argv[0]).filename().string() + ".last")
        .run_all(mutations);
  }
  std::fprintf(stderr, "%zu inputs, %llu mutations\n", inputs,
               static_cast<unsigned long long>(mutations));
  return inputs == 0 ? 1 : 0;  // an empty corpus tests nothing
}
