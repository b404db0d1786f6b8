// Small random programs of the abstract machine.
#pragma once

#include <cstdint>
#include <random>

#include "tso/machine/machine.h"

namespace tsomon::explore {

// One to `length` instructions a thread, jumps to skip one included, on one to three locations.
machine::Program random_program(std::mt19937_64& random, uint32_t threads, uint32_t length);

}  // namespace tsomon::explore
