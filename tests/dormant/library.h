// A shared library with functions of its own, and one that it has in common with the program.
#pragma once

extern long library_word;
long in_library(long n);
bool in_library_by(void (*function)(long));

inline int library_counted() {
  static int count = 0;
  return ++count;
}
