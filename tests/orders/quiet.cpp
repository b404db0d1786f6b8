// A race of a program that asks, in ThreadSanitizer's ways, that none is reported, and whose own functions
// call what stands in front of the library's.
#include <cstdio>
#include <cstdlib>
#include <thread>

#ifndef __has_feature
#error "the wrappers answer for g++"
#elif !__has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#error "what is instrumented is told"
#elif !__has_feature(cxx_exceptions) || !__has_feature(cxx_rtti)
#error "these are there as well"
#endif

extern "C" {
#ifdef QUIET
const char* __tsan_default_options() { return "verbosity=0 report_bugs=0"; }
#endif
FILE* __interceptor_fopen(const char*, const char*);
int __interceptor_fileno(FILE*);
void* __interceptor_malloc(size_t);
void __interceptor_free(void*);

int opened;
FILE* fopen(const char* path, const char* mode) {
  ++opened;
  return __interceptor_fopen(path, mode);
}
int fileno(FILE*) noexcept { return 1; }
void* malloc(size_t size) noexcept { return __interceptor_malloc(size); }
void free(void* pointer) noexcept { __interceptor_free(pointer); }
}

int counter;

int main() {
  FILE* const file = fopen("/dev/null", "r");
  if (file == nullptr || opened != 1 || __interceptor_fileno(file) < 3 || fileno(file) != 1) {
    return 1;
  }
  fclose(file);
  auto add = [] { counter = counter + 1; };
  std::thread one(add);
  std::thread two(add);
  one.join();
  two.join();
  return 0;
}
