// Loads a library after recording began, calls it, and unloads it: loads_plugin FILE HOW. HOW:
// "stays" loaded to the end, "goes", "crashes" while it is loaded, "iterates": a function that
// dl_iterate_phdr calls fills many chunks.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <link.h>

#include "tsomon.h"

volatile long cells[64];

int fill(dl_phdr_info*, size_t, void*) {
  for (unsigned i = 1; i < 300'000; ++i) {
    cells[(i * i >> 3) % 64] = i;
  }
  return 1;
}

int main(int, char** argv) {
  const auto is = [argv](const char* how) { return std::strcmp(argv[2], how) == 0; };
  TSOMON_UNIT("all");
  void* const library = dlopen(argv[1], RTLD_NOW);
  auto* const call =
      library != nullptr ? reinterpret_cast<long (*)()>(dlsym(library, "call_plugin")) : nullptr;
  if (call == nullptr) {
    std::fputs(dlerror(), stderr);
    return 1;
  }
  std::printf("function %p\n", reinterpret_cast<void*>(call));
  std::printf("calls %ld\n", call());
  std::fflush(stdout);
  if (is("iterates")) {
    for (int i = 0; i < 10; ++i) {
      dl_iterate_phdr(fill, nullptr);
    }
  } else if (is("crashes")) {
    std::abort();
  }
  return is("stays") ? 0 : dlclose(library);
}
