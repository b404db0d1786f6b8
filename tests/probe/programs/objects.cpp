// Objects that are there before recording begins, that come and go on a thread, that are too large;
// prints where they are and whether errno survived.
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include <malloc.h>

namespace {

void* volatile kept;  // so that no allocation is optimised away

template <typename T>
T* keep(T* pointer) {
  kept = pointer;
  return pointer;
}

uint64_t at(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

struct Pair {
  long x = 0;
  long y = 0;
};

}  // namespace

int main() {
  std::free(keep(std::malloc(90)));
  auto early = std::make_unique<Pair>();
  auto large = std::make_unique<char[]>(200);
  keep(early.get());
  for (int i = 0; i < 5000; ++i) {  // more than the table begins with
    auto gone = std::make_unique<char[]>(static_cast<size_t>(1 + i % 90));
    keep(gone.get());
  }
  std::printf("early %lu\nlarge %lu\n", at(early.get()), at(large.get()));
  int error = 0;
  std::thread([&] {
    errno = 77;
    void* moving = keep(std::malloc(40));
    std::printf("moving %lu\n", at(moving));
    void* const moved = keep(std::realloc(moving, 60));
    std::printf("moved %lu\n", at(moved));
    void* const failed = std::realloc(moved, SIZE_MAX / 4);
    error = failed == nullptr ? errno : 0;
    std::free(moved);
    void* const cleared = keep(std::calloc(3, 7));
    std::printf("cleared %lu\n", at(cleared));
    void* aligned = nullptr;
    if (posix_memalign(&aligned, 64, 96) == 0) {
      std::printf("aligned %lu\n", at(aligned));
    }
    void* const other = keep(std::aligned_alloc(32, 32));
    std::printf("other %lu\n", at(other));
    long* const numbers = keep(new long[5]);
    std::printf("numbers %lu\n", at(numbers));
    delete[] numbers;
    std::free(other);
    std::free(aligned);
    std::free(cleared);
    std::free(nullptr);
    errno = 77;
    std::free(keep(std::malloc(10)));
    std::printf("errno %d\n", errno);
  }).join();
  early.reset();
  large.reset();
  std::printf("failed %d\n", error == ENOMEM ? 1 : 0);
}
