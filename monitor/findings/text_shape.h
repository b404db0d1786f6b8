// How findings are laid out as text.
#pragma once

#include <cstddef>

namespace tsomon {

struct TextShape {
  // Columns of the terminal; 0: it is none, and a line is as long as what it says. Then the same
  // finding has the same text everywhere.
  size_t width = 0;
  // Nothing is folded, and with each access and each edge stands what is known of it.
  bool verbose = false;
};

}  // namespace tsomon
