// The word that was meant: of those offered the one that differs least from what was written.
//
// Distance    Letters that are missing, too many or wrong, and neighbours that are exchanged, count
//             one each (optimal string alignment). A '*' that was written stands for anything.
// Near        is what differs by one and a quarter of the letters written, and not by all.
// Complexity  Lengths multiplied, for each word; words above 255 bytes, or 63 written, are not
//             looked at. Fixed memory. Header only, no dependencies: the probe has it, too.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <cstring>

namespace tsomon {

class Nearest {
 public:
  explicit Nearest(const char* written) : written_(written), size_(std::strlen(written)) {
    uint32_t letters = 0;
    for (size_t i = 0; i < size_; ++i) {
      letters += written_[i] != '*' ? 1 : 0;
    }
    const uint32_t most = 1 + letters / 4;
    limit_ = letters == 0 ? 0 : most < letters ? most + 1 : letters;
  }

  void offer(const char* word) {
    const size_t size = std::strlen(word);
    if (size_ > kWritten || size > kWord || size == 0) {
      return;
    }
    const uint32_t found = distance(word, size);
    if (found < limit_) {
      limit_ = found;
      std::memcpy(best_, word, size + 1);
    }
  }
  // Empty: none is near.
  const char* best() const { return best_; }

 private:
  static constexpr size_t kWritten = 63;
  static constexpr size_t kWord = 255;

  uint32_t distance(const char* word, size_t size) const {
    uint16_t rows[3][kWord + 1];
    for (size_t j = 0; j <= size; ++j) {
      rows[0][j] = static_cast<uint16_t>(j);
    }
    for (size_t i = 1; i <= size_; ++i) {
      const uint16_t* const before = rows[(i - 1) % 3];
      uint16_t* const row = rows[i % 3];
      const char letter = written_[i - 1];
      const bool any = letter == '*';
      row[0] = static_cast<uint16_t>(before[0] + (any ? 0 : 1));
      for (size_t j = 1; j <= size; ++j) {
        uint32_t least = before[j] + (any ? 0U : 1U);
        const uint32_t longer = row[j - 1] + (any ? 0U : 1U);
        const uint32_t other = before[j - 1] + (letter == word[j - 1] || any ? 0U : 1U);
        least = longer < least ? longer : least;
        least = other < least ? other : least;
        if (i > 1 && j > 1 && letter == word[j - 2] && written_[i - 2] == word[j - 1]) {
          const uint32_t exchanged = rows[(i - 2) % 3][j - 2] + 1U;
          least = exchanged < least ? exchanged : least;
        }
        row[j] = static_cast<uint16_t>(least);
      }
    }
    return rows[size_ % 3][size];
  }

  const char* written_;
  size_t size_;
  uint32_t limit_ = 0;
  char best_[kWord + 1] = {};
};

}  // namespace tsomon
