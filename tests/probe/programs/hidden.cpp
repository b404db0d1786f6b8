// The cases of hidden.h, and those that only C++ has.
#include <algorithm>
#include <array>
#include <new>
#include <string>

#define _Alignas alignas
#include "tests/probe/programs/hidden.h"

namespace {
struct Base {
  virtual ~Base() = default;
  long field = 0;
};
struct Derived : Base {
  long more = 0;
};
}  // namespace

#define CPP_CASES                                                                  \
  CASE(fill_chars, W(arena.text, 16), std::fill(arena.text, arena.text + 16, 'x')) \
  CASE(fill_ints, W(arena.ints, 16), std::fill(arena.ints, arena.ints + 4, 0))     \
  CASE(copy_16, R(arena.other, 16) W(arena.text, 16),                              \
       std::copy(arena.other, arena.other + 16, arena.text))                       \
  CASE(equal_16, R(arena.other, 16) R(arena.text, 16),                             \
       sink = std::equal(arena.other, arena.other + 16, arena.text))               \
  CASE(construct, W(arena.text, 24), new (arena.text) Wide())                      \
  CASE(construct_array, W(arena.text, 32), new (arena.text) long[4]())             \
  CASE(construct_virtual, W(arena.text, 24), new (arena.text) Derived())

#include "tests/probe/programs/hidden_main.h"
