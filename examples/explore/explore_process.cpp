// What executions do to their process beside memory: each finds the same in place and forked.
//
//   explore_process prints | prints_errors | opens | maps | thread_local | errno | exits |
//                   exits_in_thread | quits | raises | terminates | throws | overflows | divides |
//                   recurses | writes_much | takes_much | detached | nested | many | handles |
//                   cancels_output | own_stack | thread_numbers
#include <atomic>
#undef NDEBUG  // the assertions are what is explored
#include <cassert>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <tsomon.h>
#include <unistd.h>

namespace {

std::atomic<int> flag{0};
int counter = 0;
int seen = 0;

// Two threads, one of which sees the other's store or not: in either case both did `what`.
template <typename What>
int with_two(What what) {
  std::thread other([&] {
    flag.store(1, std::memory_order_release);
    what(1);
  });
  const int before = flag.load(std::memory_order_acquire);
  what(0);
  other.join();
  tsomon_outcome("before=%d counter=%d", before, counter);
  return 0;
}

int prints() {
  std::printf("before the threads\n");
  return with_two([](int thread) {
    std::printf("thread %d", thread);
    std::cout << "thread " << thread << std::endl;
  });
}

int prints_errors() {
  return with_two([](int thread) { std::fprintf(stderr, "thread %d\n", thread); });
}

int opens() {
  return with_two([](int thread) {
    std::FILE* const file = std::fopen("/proc/self/cmdline", "r");
    assert(file != nullptr);
    assert(std::fgetc(file) != EOF);
    std::fclose(file);
    if (thread == 0) {
      assert(open("/", O_RDONLY) == 3 || flag.load() != 7);
    }
  });
}

int maps() {
  return with_two([](int) {
    void* const memory =
        mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(memory != MAP_FAILED && *static_cast<int*>(memory) == 0);
    *static_cast<int*>(memory) = 1;
  });
}

struct Counted {
  ~Counted() { ++counter; }
  int value = 0;
};
thread_local Counted counted;
thread_local std::unique_ptr<std::string> text;

int thread_locals() {
  counter = 0;
  std::thread other([] {
    flag.store(1, std::memory_order_release);
    assert(counted.value == 0 && text == nullptr);
    counted.value = 1;
    text = std::make_unique<std::string>("a text that is longer than what a string holds itself");
  });
  assert(counted.value == 0);
  counted.value = flag.load(std::memory_order_acquire) + 5;
  other.join();
  tsomon_outcome("mine=%d ended=%d", counted.value, counter);
  return 0;
}

int errors() {
  return with_two([](int thread) {
    errno = 100 + thread;
    flag.fetch_add(2);
    assert(errno == 100 + thread);
    assert(std::strtol("999999999999999999999", nullptr, 10) != 0 && errno == ERANGE);
  });
}

int exits(bool in_thread) {
  return with_two([in_thread](int thread) {
    if ((thread == 1) == in_thread && flag.load() == 1) {
      std::exit(3);
    }
  });
}

int quits() {
  return with_two([](int thread) {
    if (thread == 0 && flag.load() == 1) {
      syscall(SYS_exit_group, 0);
    }
  });
}

int raises() {
  return with_two([](int thread) {
    if (thread == 0 && flag.load() == 1) {
      raise(SIGTERM);
    }
  });
}

int terminates() {
  return with_two([](int thread) {
    if (thread == 1 && flag.load() == 1) {
      throw std::runtime_error("nobody catches this");
    }
  });
}

int throws() {
  return with_two([](int thread) {
    try {
      counter += std::vector<int>(1).at(size_t{1} + static_cast<size_t>(flag.load()));
    } catch (const std::out_of_range& error) {
      counter += thread == 0 && error.what()[0] != 0 ? 1 : 0;
    }
  });
}

__attribute__((noinline)) int descend(volatile char* above, int depth) {
  volatile char here[4096];
  here[0] = static_cast<char>(depth);
  here[4095] = above == nullptr ? 0 : above[0];
  return depth == 0 ? here[0] : descend(here, depth - 1) + here[4095];
}

int overflows() {
  return with_two([](int thread) {
    if (thread == 1) {
      seen = descend(nullptr, 100000);
    }
  });
}

int divides() {
  return with_two([](int thread) {
    volatile int divisor = flag.load() - 1;
    if (thread == 0) {
      volatile int quotient = 7 / divisor;
      static_cast<void>(quotient);
    }
  });
}

// Deeper than the stack is at first.
int recurses() {
  return with_two([](int thread) {
    if (thread == 0) {
      seen = descend(nullptr, 500);
    }
  });
}

int takes(size_t size, bool writes) {
  return with_two([size, writes](int thread) {
    if (thread == 0) {
      auto* const memory = static_cast<char*>(std::malloc(size));
      assert(memory != nullptr);
      for (size_t at = 0; writes && at < size; at += 4096) {
        memory[at] = 1;
      }
      assert(size < 2 || memory[1] != 1);  // NOLINT(clang-analyzer-unix.Malloc): it is kept
    }
  });
}

int detached() {
  std::thread([] { flag.store(1, std::memory_order_release); }).detach();
  tsomon_outcome("flag=%d", flag.load(std::memory_order_acquire));
  return 0;
}

int nested() {
  std::thread outer([] {
    std::thread inner([] { flag.fetch_add(1); });
    flag.fetch_add(1);
    inner.join();
  });
  seen = flag.load();
  outer.join();
  tsomon_outcome("seen=%d", seen);
  return 0;
}

int many() {
  constexpr size_t kThreads = 4;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([i] {
      if (i == 0) {
        flag.store(1, std::memory_order_release);
      } else {
        auto mine = std::make_unique<int>(flag.load(std::memory_order_acquire));
        seen += *mine == 7 ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return 0;
}

int handles() {
  std::signal(SIGUSR1, [](int) { ++counter; });
  return with_two([](int thread) {
    if (thread == 0) {
      raise(SIGUSR1);
    }
  });
}

int cancels_output() {
  return with_two([](int thread) {
    if (thread == 0) {
      close(STDERR_FILENO);
    }
    std::fprintf(stderr, "thread %d\n", thread);
  });
}

void* run_in_thread(void*) {
  flag.store(1, std::memory_order_release);
  return &flag;
}

// Of four mebibytes.
int own_stack() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size_t{4} << 20);
  pthread_t thread;
  assert(pthread_create(&thread, &attributes, run_in_thread, nullptr) == 0);
  seen = flag.load(std::memory_order_acquire);
  void* result = nullptr;
  assert(pthread_join(thread, &result) == 0 && result == &flag);
  tsomon_outcome("seen=%d", seen);
  return 0;
}

int thread_numbers() {
  const auto mine = std::this_thread::get_id();
  return with_two([mine](int thread) {
    assert((std::this_thread::get_id() == mine) == (thread == 0));
    assert(pthread_equal(pthread_self(), pthread_self()) != 0);
    counter += thread == 0 && syscall(SYS_gettid) == getpid() ? 1 : 0;
  });
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): one of them is there to throw
int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  const auto is = [what](const char* name) { return std::strcmp(what, name) == 0; };
  return is("prints")            ? prints()
         : is("prints_errors")   ? prints_errors()
         : is("opens")           ? opens()
         : is("maps")            ? maps()
         : is("thread_local")    ? thread_locals()
         : is("errno")           ? errors()
         : is("exits")           ? exits(false)
         : is("exits_in_thread") ? exits(true)
         : is("quits")           ? quits()
         : is("raises")          ? raises()
         : is("terminates")      ? terminates()
         : is("throws")          ? throws()
         : is("overflows")       ? overflows()
         : is("divides")         ? divides()
         : is("recurses")        ? recurses()
         : is("writes_much")     ? takes(size_t{128} << 20, true)
         : is("takes_much")      ? takes(size_t{512} << 20, false)
         : is("detached")        ? detached()
         : is("nested")          ? nested()
         : is("many")            ? many()
         : is("handles")         ? handles()
         : is("cancels_output")  ? cancels_output()
         : is("own_stack")       ? own_stack()
         : is("thread_numbers")  ? thread_numbers()
                                 : 2;
}
