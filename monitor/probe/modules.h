// The module map: which file's code lies where, for symbolisation after the run.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tsomon::probe {

// Payload of a kModules chunk for the modules that are loaded now, or nullptr when `*seen`, the
// number of loads so far, has not changed. The memory belongs to the function and is reused. Takes
// the loader's lock: not for signal handlers.
const char* describe_modules(uint64_t* seen, size_t* size);

}  // namespace tsomon::probe
