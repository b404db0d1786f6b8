// Small random programs of the abstract machine.
#pragma once

#include <cstdint>
#include <random>

#include "tso/machine/machine.h"

namespace tsomon::explore {

// One to `length` instructions a thread, jumps to skip one included, on one to `most` locations; of at
// most two locations half of them are locked.
machine::Program random_program(std::mt19937_64& random, uint32_t threads, uint32_t length,
                                uint32_t most = 3);

}  // namespace tsomon::explore
