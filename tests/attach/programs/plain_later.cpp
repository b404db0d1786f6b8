// Loads a pool of tasks after a while, takes from it, unloads it, loads it again and takes once
// more: plain_later MODULE TASKS
//
// Between loading a module and its first take lies a third of a second.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <dlfcn.h>
#include <sys/resource.h>
#include <unistd.h>

#include "turns.h"

int main(int argc, char** argv) {
  const uint64_t tasks = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 100;
  setpriority(PRIO_PROCESS, 0, -15);  // so that takes are seldom interrupted; not a must
  usleep(1'000'000);                  // time to attach
  for (int load = 0; load < 2; ++load) {
    void* const module = dlopen(argv[1], RTLD_NOW);
    if (module == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    reinterpret_cast<void (*)(uint64_t)>(dlsym(module, "plugin_fill"))(tasks);
    usleep(333'000);
    alternate(tasks, reinterpret_cast<Take>(dlsym(module, "plugin_take_head")),
              reinterpret_cast<Take>(dlsym(module, "plugin_take_tail")));
    dlclose(module);
  }
  std::fflush(stdout);
  return 0;
}
