// What compilers make of functions, each with a shared word that it loads and stores: kinds [threads]
//
// Prints what it computed, which is the same whichever version of a function runs.
#include <atomic>
#include <coroutine>
#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/dormant/library.h"

#define NOINLINE __attribute__((noinline))

namespace {

long plain_word, template_word, static_word, thrown_word, variadic_word, built_word, tail_word,
    pointer_word, jump_word, coroutine_word, virtual_word, lambda_word, goto_word, recursive_word,
    excluded_word, weak_word, vector_word, locals_word, aggregate_word, asm_word;
std::atomic<long> atomic_word{0};

NOINLINE void plain(long n) { plain_word += n; }

template <typename T>
T add_template(T n) {
  template_word += n;
  return n;
}

inline long& counted() {
  static long count = 0;  // one for both versions
  ++count;
  static_word = count;
  return count;
}

struct Guard {
  explicit Guard(long* word) : word_(word) { ++*word_; }
  ~Guard() { ++*word_; }
  long* word_;
};

NOINLINE void throws(long n) {
  Guard guard(&thrown_word);
  if (n % 2 == 1) {
    throw n;
  }
}
NOINLINE long passes(long n) {
  Guard guard(&thrown_word);
  throws(n);
  return 0;
}
NOINLINE long catches(long n) {
  try {
    return passes(n);
  } catch (long caught) {
    thrown_word += caught;
    return caught;
  }
}

NOINLINE long variadic(int count, ...) {
  va_list list;
  va_start(list, count);
  double sum = 0;
  for (int i = 0; i < count; ++i) {
    sum += i % 2 == 0 ? static_cast<double>(va_arg(list, long)) : va_arg(list, double);
  }
  va_end(list);
  variadic_word += static_cast<long>(sum);
  return static_cast<long>(sum);
}

struct Built {
  Built() { built_word += 1; }
  Built(const Built&) { built_word += 10; }
  ~Built() { built_word += 100; }
};
NOINLINE void by_value(Built) {}
Built global_built;

NOINLINE long tail(long n);
NOINLINE long tail_other(long n) {
  tail_word += n;
  return n == 0 ? 7 : tail(n - 1);
}
NOINLINE long tail(long n) {
  tail_word += 1;
  return tail_other(n);
}

using Function = void (*)(long);
NOINLINE void by_pointer(long n) { pointer_word += n; }
Function table[] = {plain, by_pointer};

std::jmp_buf target;
NOINLINE void jumps(long n) {
  jump_word += n;
  std::longjmp(target, 1);
}
NOINLINE long comes_back(long n) {
  volatile long kept = n;
  if (setjmp(target) == 0) {
    jumps(n);
  }
  jump_word += kept;
  return kept;
}

struct Generator {
  struct promise_type {
    long value = 0;
    Generator get_return_object() {
      return {std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(long n) {
      value = n;
      return {};
    }
    void return_void() {}
    void unhandled_exception() { std::abort(); }
  };
  std::coroutine_handle<promise_type> handle;
};
Generator numbers(long n) {
  for (long i = 0; i < n; ++i) {
    coroutine_word += i;
    co_yield i;
  }
}
NOINLINE long generates(long n) {
  Generator generator = numbers(n);
  long sum = 0;
  while (generator.handle.resume(), !generator.handle.done()) {
    sum += generator.handle.promise().value;
  }
  generator.handle.destroy();
  return sum;
}

struct Base {
  virtual ~Base() = default;
  virtual long turn(long n) = 0;
};
struct Derived : Base {
  long turn(long n) override {
    virtual_word += n;
    return n + 1;
  }
};
struct Other {
  virtual ~Other() = default;
  virtual long other() { return 1; }
};
struct Both : Other, Derived {
  long other() override {
    virtual_word += 3;
    return 3;
  }
};

NOINLINE long interprets(const char* program) {
  static void* const labels[] = {&&add, &&stop};  // cannot be copied: no twin
  long sum = 0;
  for (;;) {
    goto* labels[*program++ == '+' ? 0 : 1];
  add:
    sum += 1;
    goto_word += 1;
    continue;
  stop:
    return sum;
  }
}

NOINLINE long recursive(long n) {
  recursive_word += 1;
  return n < 2 ? n : recursive(n - 1) + recursive(n - 2);
}

__attribute__((noinline, no_sanitize("thread"))) void excluded(long n) { excluded_word += n; }

struct Large {
  long values[9];
};
NOINLINE Large aggregate(Large given, double x, long double y) {
  aggregate_word += given.values[3];
  given.values[8] = static_cast<long>(x + static_cast<double>(y));
  return given;
}

// With vectors on its stack, which have to lie where their instructions want them.
NOINLINE float aligned(long n) {
  alignas(32) float values[16];
  for (int i = 0; i < 16; ++i) {
    values[i] = static_cast<float>(n + i);
  }
  locals_word += n;
  float sum = 0;
  for (const float value : values) {
    sum += value * 2;
  }
  return sum;
}

NOINLINE long in_assembly(long n) {
  asm volatile("lock addq %1, %0" : "+m"(asm_word) : "r"(n) : "memory");
  return asm_word;
}

NOINLINE void standard(long n) {
  std::vector<std::string> texts;
  for (long i = 0; i < n; ++i) {
    texts.push_back(std::string(static_cast<size_t>(i) * 3, 'x'));
  }
  std::map<std::string, long> sizes;
  for (const std::string& text : texts) {
    sizes[text] += static_cast<long>(std::strlen(text.c_str()));
  }
  char copy[64] = {};
  std::memcpy(copy, "shared", 7);
  vector_word += static_cast<long>(sizes.size() + std::strlen(copy));
}

}  // namespace

__attribute__((weak)) void weak(long n) { weak_word += n; }

int main(int count, char** arguments) {
  const int threads = count > 1 ? std::atoi(arguments[1]) : 1;
  long sum = 0;
  for (int t = 0; t < threads; ++t) {
    std::thread([&] {
      for (long n = 0; n < 4; ++n) {
        plain(n);
        sum += add_template(n) + static_cast<long>(add_template(static_cast<short>(n)));
        sum += counted() + catches(n) + variadic(4, n, 1.5, n, 2.5);
        by_value(global_built);
        sum += tail(n);
        for (const Function function : table) {
          function(n);
          sum += function == static_cast<Function>(by_pointer) ? 1000 : 0;
        }
        sum += comes_back(n) + generates(n);
        const std::unique_ptr<Base> object = std::make_unique<Both>();
        sum += object->turn(n) + dynamic_cast<Both&>(*object).other();
        const auto lambda = [&](long by) { lambda_word += by; };
        lambda(n);
        sum += interprets("+++-") + recursive(5);
        excluded(n);
        weak(n);
        sum += aggregate(Large{{n, 1, 2, n, 4}}, 1.5, 2.5L).values[8];
        sum += static_cast<long>(aligned(n)) + in_assembly(n);
        standard(n);
        sum += in_library(n) + library_counted();
        sum += in_library_by(by_pointer) ? 5 : 0;
        atomic_word.fetch_add(n);
      }
    }).join();
  }
  std::printf(
      "%ld: %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld\n",
      sum, plain_word, template_word, static_word, thrown_word, variadic_word, built_word,
      tail_word, pointer_word, jump_word, coroutine_word, virtual_word, lambda_word, goto_word,
      recursive_word, excluded_word, weak_word, vector_word, locals_word, aggregate_word, asm_word,
      atomic_word.load());
  std::printf("library: %ld %d\n", library_word, library_counted());
}
