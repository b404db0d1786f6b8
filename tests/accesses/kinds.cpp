// Accesses of the kinds that compilers have, a few of each, by a thread: kinds [ROUNDS].
#include <algorithm>
#include <array>
#include <atomic>
#include <complex>
#include <csetjmp>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

#define ALONE __attribute__((noinline))

namespace {

struct Small {
  char a;
  short b;
  int c;
};
struct Large {
  long words[9];
  char tail[5];
};
struct Bits {
  unsigned low : 3;
  unsigned middle : 17;
  int high : 12;
  bool one : 1;
};
struct __attribute__((packed)) Packed {
  char first;
  long second;
  short third;
};
struct Base {
  virtual ~Base() = default;
  virtual int answer(int with) { return with + value; }
  int value = 1;
};
struct Derived : Base {
  int answer(int with) override { return with * 2 + other; }
  int other = 3;
};
struct Virtual : virtual Base {
  long more = 2;
};
union Either {
  float real;
  uint32_t bits;
};

std::mutex lock;
Small small;
Small smaller;
Large large;
Large larger;
Bits bits;
Packed packed;
Either either;
char bytes[100];
short shorts[40];
int ints[40];
long longs[40];
float floats[40];
double doubles[40];
long double extended[3];
__int128 wide;
std::complex<double> complex;
bool flags[5];
int* pointer = ints;
int (*function)(int) = nullptr;
int Small::*member = &Small::c;
std::atomic<int> atomic;
volatile int loud;
thread_local int own = 4;
int* theirs = nullptr;
std::jmp_buf place;
Base* object = nullptr;
std::vector<int> numbers;
std::string text;
std::map<int, std::string> names;
std::unordered_map<std::string, int> counts;
std::unique_ptr<Large> on_heap;
std::shared_ptr<Small> counted;
std::optional<Small> perhaps;
std::variant<int, double> variant;
typedef int Four __attribute__((vector_size(16)));
Four vector;
int sum;

ALONE int twice(int value) { return value * 2 + ints[1]; }
ALONE Large returned(int seed) {
  Large made = large;
  made.words[seed % 9] = seed;
  return made;
}
ALONE long by_value(Large value, Small other) { return value.words[2] + other.c; }
ALONE int variable(int count, ...) {
  va_list list;
  va_start(list, count);
  int all = 0;
  for (int i = 0; i < count; ++i) {
    all += *va_arg(list, int*);
  }
  va_end(list);
  return all;
}
ALONE void scalars(int i) {
  small.a = static_cast<char>(i);
  small.b = static_cast<short>(small.b + small.a);
  small.c += small.b;
  smaller = small;
  large = larger;
  larger = returned(i);
  sum += static_cast<int>(by_value(larger, small));
  bits.low = static_cast<unsigned>(i);
  bits.middle += 2;
  bits.high = -bits.high;
  bits.one = !bits.one;
  packed.second += packed.first + packed.third;
  packed.third = 4;
  either.real = 2.5F;
  sum += static_cast<int>(either.bits >> 20);
  flags[i % 5] = flags[(i + 1) % 5] || i > 2;
  wide += i;
  complex *= std::complex<double>(1, i);
  extended[1] += extended[0] + i;
  sum += variable(3, &ints[0], &ints[5], &sum);
  *pointer++ = i;
  pointer = pointer > ints + 30 ? ints : pointer;
  function = twice;
  sum += function(i) + small.*member;
  std::swap(small, smaller);
  std::swap(ints[3], ints[4]);
  loud = loud + 1;
  const char letter = bytes[3];
  sum += letter == 'x' ? ints[7] : shorts[7];
}
ALONE void loops(int i) {
  for (char& byte : bytes) {
    byte = static_cast<char>(byte ^ i);
  }
  for (int j = 0; j < 40; ++j) {
    shorts[j] = static_cast<short>(ints[j]);
    longs[j] = shorts[j] > 3 ? longs[39 - j] : j;
    floats[j] += static_cast<float>(j) * 0.5F;
    doubles[j] = floats[j] / 3;
  }
  for (int j = 1; j < 40; ++j) {
    ints[j] += ints[j - 1] & i;
  }
  double total = 0;
  for (const double one : doubles) {
    total += one;
  }
  sum += static_cast<int>(total);
  std::sort(longs, longs + 12, [](long a, long b) { return a > b; });
  std::reverse(shorts, shorts + 9);
  std::rotate(ints, ints + 3, ints + 9);
  vector = vector * 3 + i;
  std::memmove(bytes + 1, bytes, 7);
  std::memset(longs + 20, 0, 33);
  sum += std::memcmp(bytes, bytes + 20, 4) + static_cast<int>(std::strlen(text.c_str()));
  switch (ints[2] & 7) {
    case 0:
      sum += longs[0] != 0;
      break;
    case 1:
      sum += floats[1] > 2;
      break;
    case 2:
      sum -= shorts[2];
      break;
    case 5:
      shorts[5] = 6;
      break;
    default:
      --sum;
  }
}
ALONE void library(int i) {
  numbers.push_back(i);
  numbers.insert(numbers.begin(), 7);
  text += "some more text that is longer than what fits";
  text[3] = static_cast<char>('a' + i);
  names[i] = text;
  names.erase(i - 1);
  ++counts["one" + std::to_string(i)];
  on_heap = std::make_unique<Large>(larger);
  on_heap->words[3] += numbers.back();
  counted = std::make_shared<Small>(small);
  const std::shared_ptr<Small> copy = counted;
  sum += copy->c;
  perhaps = perhaps ? std::nullopt : std::optional<Small>(small);
  variant = i % 2 == 0 ? std::variant<int, double>(i) : std::variant<int, double>(2.5);
  sum += std::visit([](auto value) { return static_cast<int>(value); }, variant);
  if (numbers.size() > 6) {
    std::vector<int>().swap(numbers);
  }
}
ALONE void thrower(int i) {
  if ((ints[i] & 1) == i % 2) {
    throw std::runtime_error("odd " + std::to_string(sum));
  }
  longs[1] = i;
}
ALONE void control(int i) {
  try {
    thrower(i);
  } catch (const std::exception& error) {
    sum += error.what()[0];
  }
  delete object;
  object = i % 2 == 0 ? new Derived : new Base;
  sum += object->answer(i);
  const auto inherited = std::make_unique<Virtual>();
  inherited->value = i;
  sum += inherited->answer(2);
  if (setjmp(place) == 0) {
    sum += 2;
    std::longjmp(place, 1);
  }
  *theirs += own;
  own = *theirs;
  atomic.fetch_add(i);
  atomic.store(atomic.load() + 1, std::memory_order_release);
  int old = 3;
  atomic.compare_exchange_strong(old, 5);
  std::array<int, 6> local{};
  const auto set = [&](int at) { local[static_cast<size_t>(at)] = ints[at]; };
  set(i);
  sum += std::get<0>(std::make_tuple(local[2], ints[i]));
  static const int first = sum;
  sum += first;
}
ALONE void statements() {
  asm volatile("addl $3, %0" : "+m"(ints[8]));
  asm volatile("lock incq %0" : "+m"(longs[9]));
  long value = 2;
  asm volatile("xchgq %0, %1" : "+r"(value), "+m"(longs[10]));
  asm volatile("movl %1, %k0\n\tmovb $7, %2"
               : "=&r"(value)
               : "m"(ints[9]), "m"(bytes[9])
               : "memory");
  sum += static_cast<int>(value);
}

void work(int rounds) {
  for (int i = 0; i < rounds; ++i) {
    const std::lock_guard<std::mutex> guard(lock);
    scalars(i);
    loops(i);
    library(i);
    control(i);
    statements();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 3;
  theirs = &own;
  packed.first = 2;
  int on_stack = 0;
  std::thread([&] {
    work(rounds);
    on_stack += 2;
  }).join();
  on_stack += sum;
  std::printf("%d\n", on_stack != 0);
}
