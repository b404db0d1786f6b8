// Accesses of different sizes that share bytes.
//
//   explore_sizes whole | halves | halves_fenced | ticket | ticket_unlocked | pair | pair_unlocked |
//                 counted | chained
#include <atomic>
#undef NDEBUG  // the assertions are what is explored
#include <cassert>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <thread>

#include <tsomon.h>

namespace {

template <typename Half>
Half* half_of(void* whole, int number) {
  return static_cast<Half*>(whole) + number;
}

// Halves of what the other thread writes as a whole.
int whole() {
  static uint64_t whole = 0;
  std::thread writer([] { __atomic_store_n(&whole, 0x100000001, __ATOMIC_RELEASE); });
  const uint32_t low = __atomic_load_n(half_of<uint32_t>(&whole, 0), __ATOMIC_ACQUIRE);
  const uint32_t high = __atomic_load_n(half_of<uint32_t>(&whole, 1), __ATOMIC_ACQUIRE);
  writer.join();
  tsomon_outcome("low=%u high=%u", low, high);
  return 0;
}

// Each writes its half and looks at both. Its own is in the buffer, the other comes from memory: as
// in store buffering, each may miss the other's.
int halves(bool fenced) {
  static uint64_t whole = 0;
  static uint64_t seen[2];
  const auto write = [fenced](int number) {
    __atomic_store_n(half_of<uint32_t>(&whole, number), 1, __ATOMIC_RELEASE);
    if (fenced) {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    seen[number] = __atomic_load_n(&whole, __ATOMIC_ACQUIRE);
  };
  std::thread first(write, 0);
  std::thread second(write, 1);
  first.join();
  second.join();
  tsomon_outcome("%lx %lx", seen[0], seen[1]);
  assert(seen[0] == 0x100000001 || seen[1] == 0x100000001);
  return 0;
}

// A lock whose halves are the next ticket and whose turn it is. It is tried as a whole.
uint32_t tickets = 0;
int held = 0;
bool try_lock() {
  uint32_t now = __atomic_load_n(&tickets, __ATOMIC_ACQUIRE);
  if (static_cast<uint16_t>(now) != now >> 16) {
    return false;
  }
  return __atomic_compare_exchange_n(&tickets, &now, now + 0x10000, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
}
void lock() {
  const uint16_t mine = __atomic_fetch_add(half_of<uint16_t>(&tickets, 1), 1, __ATOMIC_ACQ_REL);
  while (__atomic_load_n(half_of<uint16_t>(&tickets, 0), __ATOMIC_ACQUIRE) != mine) {
  }
}
void unlock() {
  uint16_t* const turn = half_of<uint16_t>(&tickets, 0);
  __atomic_store_n(turn, static_cast<uint16_t>(__atomic_load_n(turn, __ATOMIC_RELAXED) + 1),
                   __ATOMIC_RELEASE);
}
void use() {
  const int before = held;
  held = before + 1;
  assert(before == 0);
  held = before;
}
int ticket(bool locked) {
  std::thread other([] {
    lock();
    use();
    unlock();
  });
  if (!locked || try_lock()) {
    use();
    if (locked) {
      unlock();
    }
  }
  other.join();
  return 0;
}

// Compilers copy two numbers by one instruction.
struct Pair {
  int a;
  int b;
};
int pair(bool locked) {
  static Pair shared{};
  static std::mutex mutex;
  const auto guard = [locked] {
    return locked ? std::unique_lock(mutex) : std::unique_lock<std::mutex>();
  };
  std::thread writer([guard] {
    const auto lock = guard();
    __atomic_store_n(&shared.a, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&shared.b, 1, __ATOMIC_RELAXED);
  });
  Pair mine;
  {
    const auto lock = guard();
    mine = shared;
  }
  writer.join();
  tsomon_outcome("a=%d b=%d", mine.a, mine.b);
  assert(mine.a == mine.b);
  return 0;
}

// What is on top, with a number that says whether it is the same again: both are read one after the
// other, and exchanged together.
struct Counted {
  uint32_t top;
  uint32_t count;
};
alignas(8) Counted counted{1, 0};
bool replace(Counted expected, uint32_t top) {
  uint64_t before = uint64_t{expected.count} << 32 | expected.top;
  const uint64_t after = uint64_t{expected.count + 1} << 32 | top;
  return __atomic_compare_exchange_n(half_of<uint64_t>(&counted, 0), &before, after, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}
Counted read_counted() {
  Counted seen{};
  seen.count = __atomic_load_n(&counted.count, __ATOMIC_ACQUIRE);
  seen.top = __atomic_load_n(&counted.top, __ATOMIC_ACQUIRE);
  return seen;
}
int take_counted() {
  // 1 is over 2. The other takes both and puts 1 back, over nothing.
  std::thread other([] {
    while (!replace(read_counted(), 2)) {
    }
    while (!replace(read_counted(), 0)) {
    }
    while (!replace(read_counted(), 1)) {
    }
  });
  const Counted seen = read_counted();
  const bool taken = seen.top == 1 && seen.count == 0 && replace(seen, 2);
  other.join();
  tsomon_outcome("taken=%d top=%u", taken, counted.top);
  return 0;
}

// Each shares bytes with the next: more in all than are looked at together.
int chained() {
  alignas(32) static char bytes[32];
  std::thread writer([] {
    for (int at = 0; at < 24; at += 4) {
      __atomic_store_n(reinterpret_cast<uint64_t*>(bytes + at), 1, __ATOMIC_RELEASE);
    }
  });
  const uint64_t seen = __atomic_load_n(reinterpret_cast<uint64_t*>(bytes + 8), __ATOMIC_ACQUIRE);
  writer.join();
  tsomon_outcome("%lx", seen);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view client = argc > 1 ? argv[1] : "";
  const auto is = [client](std::string_view name) { return client == name; };
  return is("whole")             ? whole()
         : is("halves")          ? halves(false)
         : is("halves_fenced")   ? halves(true)
         : is("ticket")          ? ticket(true)
         : is("ticket_unlocked") ? ticket(false)
         : is("pair")            ? pair(true)
         : is("pair_unlocked")   ? pair(false)
         : is("counted")         ? take_counted()
         : is("chained")         ? chained()
                                 : 2;
}
