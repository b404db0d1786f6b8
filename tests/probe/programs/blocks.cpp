// Copies and fills of every size class, range hooks, tables of virtual functions: blocks
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

extern "C" {
void __tsan_read_range(void* address, unsigned long size);
void __tsan_write_range(void* address, unsigned long size);
}

constexpr size_t kLarge = size_t{20} << 20;  // more than one event holds
char* from;
char* to;

struct Base {
  virtual ~Base() = default;
  virtual int call() { return 1; }
  int member = 3;
};
struct Derived : Base {
  int call() override { return 2 * member; }
};
struct Odd {
  char bytes[100];
};
Odd odd_from;
Odd odd_to;

// What compilers must not know.
size_t sizes[] = {0, 1, 8, 4095, 4096, 5000, kLarge};
alignas(Derived) char storage[sizeof(Derived)];

int main() {
  from = static_cast<char*>(std::malloc(kLarge));
  to = static_cast<char*>(std::malloc(kLarge));
  std::printf("from %p\nto %p\n", static_cast<void*>(from), static_cast<void*>(to));
  std::printf("odd_from %p\nodd_to %p\n", static_cast<void*>(&odd_from),
              static_cast<void*>(&odd_to));
  std::printf("object %p\n", static_cast<void*>(storage));
  std::thread([] {}).join();  // recording begins
  for (size_t& size : sizes) {
    volatile size_t& any = size;
    std::memset(from, 1, any);
    std::memcpy(to, from, any);
    std::memmove(from, to, any);
  }
  volatile size_t checked = 777;
  __builtin___memset_chk(from, 1, checked, kLarge);
  __builtin___memcpy_chk(to, from, checked, kLarge);
  __builtin___memmove_chk(from, to, checked, kLarge);
  odd_to = odd_from;
  __tsan_read_range(from, 0);
  __tsan_read_range(from, 3000);
  __tsan_write_range(from, 70000);
  Base* volatile object = new (storage) Derived;
  const int called = object->call();
  object->~Base();
  return called == 6 && from[kLarge - 1] == 1 ? 0 : 1;
}
