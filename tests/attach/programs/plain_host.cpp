// Loads and unloads a module: plain_host MODULE TIMES
#include <cstdio>
#include <cstdlib>

#include <dlfcn.h>
#include <unistd.h>

int main(int argc, char** argv) {
  const int times = argc > 2 ? std::atoi(argv[2]) : 1;
  for (int i = 0; i < times; ++i) {
    void* const module = dlopen(argv[1], RTLD_NOW);
    if (module == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    const auto work = reinterpret_cast<void (*)(long)>(dlsym(module, "plugin_work"));
    for (int call = 0; call < 50; ++call) {
      work(call);
      usleep(10'000);
    }
    dlclose(module);
    usleep(200'000);
  }
  std::printf("loaded %d times\n", times);
  return 0;
}
