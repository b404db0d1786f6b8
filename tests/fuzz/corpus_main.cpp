// Stands in for libFuzzer where the compiler has none: runs every file of the given folders once.
// Options (-runs=0) are libFuzzer's and ignored.

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
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
      LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
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
