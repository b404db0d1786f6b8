// operator new and delete: those of the C++ library, which say where they were called.
//
// They call malloc and free, whose hooks (objects.cpp) would otherwise record a place inside of the
// C++ library for all of them. Weak: a program's own operators are used instead. Looked up when they
// are first called; where the C++ library is linked statically there is no next definition, and they
// allocate themselves.
#include <cstdlib>
#include <new>

#include <dlfcn.h>

#include "monitor/probe/runtime.h"

using namespace tsomon::probe;

namespace {

template <typename Function>
struct Next {
  Function function = nullptr;
  bool looked_up = false;

  // nullptr: there is none.
  Function find(const char* name) {
    if (TSOMON_UNLIKELY(!looked_up)) {
      function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
      looked_up = true;
    }
    return function;
  }
};

}  // namespace

extern "C" __attribute__((weak)) void _ZSt17__throw_bad_allocv();

namespace {

void* allocate(size_t size, size_t alignment, bool throws) {
  size = size == 0 ? 1 : size;
  void* const memory =
      alignment == 0 ? std::malloc(size)
                     : std::aligned_alloc(alignment, (size + alignment - 1) & ~(alignment - 1));
  if (memory == nullptr && throws) {
    _ZSt17__throw_bad_allocv == nullptr ? std::abort() : _ZSt17__throw_bad_allocv();
  }
  return memory;
}

}  // namespace

#define TSOMON_NEW(NAME, PARAMETERS, ARGUMENTS, ALIGNMENT, THROWS)               \
  TSOMON_HOOK void* NAME PARAMETERS {                                            \
    static Next<void*(*)PARAMETERS> known;                                       \
    const auto real = known.find(#NAME);                                         \
    local.allocates = TSOMON_PC();                                               \
    return real != nullptr ? real ARGUMENTS : allocate(size, ALIGNMENT, THROWS); \
  }
#define TSOMON_DELETE(NAME, PARAMETERS, ARGUMENTS)         \
  TSOMON_HOOK void NAME PARAMETERS {                       \
    static Next<void(*) PARAMETERS> known;                 \
    const auto real = known.find(#NAME);                   \
    local.allocates = TSOMON_PC();                         \
    real != nullptr ? real ARGUMENTS : std::free(pointer); \
    local.allocates = 0;                                   \
  }

using Nothrow = const std::nothrow_t&;

TSOMON_NEW(_Znwm, (size_t size), (size), 0, true)
TSOMON_NEW(_Znam, (size_t size), (size), 0, true)
TSOMON_NEW(_ZnwmRKSt9nothrow_t, (size_t size, Nothrow tag), (size, tag), 0, false)
TSOMON_NEW(_ZnamRKSt9nothrow_t, (size_t size, Nothrow tag), (size, tag), 0, false)
TSOMON_NEW(_ZnwmSt11align_val_t, (size_t size, size_t alignment), (size, alignment), alignment,
           true)
TSOMON_NEW(_ZnamSt11align_val_t, (size_t size, size_t alignment), (size, alignment), alignment,
           true)
TSOMON_NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t size, size_t alignment, Nothrow tag),
           (size, alignment, tag), alignment, false)
TSOMON_NEW(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t size, size_t alignment, Nothrow tag),
           (size, alignment, tag), alignment, false)

TSOMON_DELETE(_ZdlPv, (void* pointer), (pointer))
TSOMON_DELETE(_ZdaPv, (void* pointer), (pointer))
TSOMON_DELETE(_ZdlPvm, (void* pointer, size_t size), (pointer, size))
TSOMON_DELETE(_ZdaPvm, (void* pointer, size_t size), (pointer, size))
TSOMON_DELETE(_ZdlPvRKSt9nothrow_t, (void* pointer, Nothrow tag), (pointer, tag))
TSOMON_DELETE(_ZdaPvRKSt9nothrow_t, (void* pointer, Nothrow tag), (pointer, tag))
TSOMON_DELETE(_ZdlPvSt11align_val_t, (void* pointer, size_t alignment), (pointer, alignment))
TSOMON_DELETE(_ZdaPvSt11align_val_t, (void* pointer, size_t alignment), (pointer, alignment))
TSOMON_DELETE(_ZdlPvmSt11align_val_t, (void* pointer, size_t size, size_t alignment),
              (pointer, size, alignment))
TSOMON_DELETE(_ZdaPvmSt11align_val_t, (void* pointer, size_t size, size_t alignment),
              (pointer, size, alignment))
TSOMON_DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, (void* pointer, size_t alignment, Nothrow tag),
              (pointer, alignment, tag))
TSOMON_DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, (void* pointer, size_t alignment, Nothrow tag),
              (pointer, alignment, tag))
