// Atomics of 16 bytes. The program checks the values itself: the capture holds digests of them.
#include <cstdint>
#include <cstdio>
#include <thread>

#include <unistd.h>

using Wide = unsigned __int128;

alignas(16) Wide wide;

int main() {
  std::thread([] {}).join();                                       // recording begins
  dprintf(STDOUT_FILENO, "wide %p\n", static_cast<void*>(&wide));  // is not recorded
  const Wide big = (Wide{7} << 64) | 5;
  bool right = true;
  __atomic_store_n(&wide, big, __ATOMIC_RELEASE);
  right = right && __atomic_load_n(&wide, __ATOMIC_ACQUIRE) == big;
  right = right && __atomic_exchange_n(&wide, big + 1, __ATOMIC_SEQ_CST) == big;
  right = right && __atomic_fetch_add(&wide, ~Wide{0}, __ATOMIC_SEQ_CST) == big + 1;
  right = right && __atomic_fetch_sub(&wide, Wide{6}, __ATOMIC_SEQ_CST) == big;  // borrows
  right = right && __atomic_fetch_or(&wide, Wide{1} << 100, __ATOMIC_SEQ_CST) == big - 6;
  right = right && __atomic_fetch_and(&wide, ~Wide{0} >> 64, __ATOMIC_SEQ_CST) ==
                       ((big - 6) | (Wide{1} << 100));
  Wide expected = 1;
  right = right && !__atomic_compare_exchange_n(&wide, &expected, big, false, __ATOMIC_SEQ_CST,
                                                __ATOMIC_SEQ_CST);
  right = right && expected == ~uint64_t{0};
  right = right && __atomic_compare_exchange_n(&wide, &expected, big, false, __ATOMIC_SEQ_CST,
                                               __ATOMIC_SEQ_CST);
  right = right && wide == big;
  return right ? 0 : 1;
}
