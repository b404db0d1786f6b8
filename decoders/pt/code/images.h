// The code of the processes that a stream ran: for libipt, and by address.
//
// Thread-safety: none: one for each decoding thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <intel-pt.h>

#include "decoders/pt/packets/input.h"

namespace tsomon::pt {

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};

// What is mapped up to a time, later files in place of earlier ones.
class Images {
 public:
  // Where a piece of a file is mapped.
  struct Mapped {
    uint64_t begin = 0;
    uint64_t end = 0;
    int isid = 0;  // of the file, in libipt's cache
  };
  using Mark = std::map<int, size_t>;

  Images(const Input& input, uint64_t cache_bytes);

  pt_image* at(int id, int64_t time);
  // As of the last call of at() for the process; size 0: nothing is mapped there.
  Mapped find(int id, uint64_t ip) const;
  // Changes whenever find() may.
  uint64_t version(int id) const;
  // At any time.
  bool has_code(int id, uint64_t ip);
  size_t read(int isid, uint64_t address, uint8_t* to, size_t size) const;

  // Files that cannot be read, and how often.
  const std::map<std::string, uint64_t>& problems() const { return problems_; }

  // Back to what was mapped then.
  Mark mark() const;
  void rewind(const Mark& mark);

 private:
  using Sections = std::unique_ptr<pt_image_section_cache, Freed<pt_iscache_free>>;
  using Image = std::unique_ptr<pt_image, Freed<pt_image_free>>;

  struct Process {
    Image image;
    std::vector<const CodeSection*> code;
    size_t mapped = 0;
    size_t least = 0;  // so many are mapped whatever the time is
    uint64_t version = 0;
    std::map<uint64_t, Mapped> ranges;                   // by their end
    std::vector<std::pair<uint64_t, uint64_t>> covered;  // begin, end of this and of those before
  };

  void add(const CodeSection& section, Process& process);

  Sections sections_;
  std::map<std::string, uint64_t> problems_;
  std::set<const CodeSection*> missing_;
  std::map<int, Process> processes_;
};

}  // namespace tsomon::pt
