// How much memory an input may take: every command that reads one is bound by its size.
#pragma once

#include <string>
#include <vector>

#include "tso/support/work.h"

namespace tsomon {

// Of files, and of folders with all that is in them; 0 of pipes, whose bytes count as they come.
uint64_t bytes_of_inputs(const std::vector<std::string>& files);

// Calls work(), which reads the files and judges them. Throws WorkEnded where that takes more memory
// than inputs of their size may.
template <typename Work>
auto within_memory_of(const std::vector<std::string>& files, const Work& work) {
  return within_input(bytes_of_inputs(files), work);
}

}  // namespace tsomon
