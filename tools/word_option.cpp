#include "tools/word_option.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "monitor/probe/nearest.h"

namespace tsomon {

CLI::Validator one_of(std::vector<std::string> words) {
  std::string set = fmt::format("{{{}}}", fmt::join(words, ","));
  return CLI::Validator(
      [words = std::move(words), set](const std::string& word) {
        return std::find(words.begin(), words.end(), word) != words.end()
                   ? std::string()
                   : word + " not in " + set + meant_text(word, words);
      },
      set);
}

std::string meant_text(const std::string& written, const std::vector<std::string>& offered) {
  Nearest nearest(written.c_str());
  for (const std::string& word : offered) {
    nearest.offer(word.c_str());
  }
  return *nearest.best() == '\0' ? "" : fmt::format("\nDid you mean {}?", nearest.best());
}

}  // namespace tsomon
