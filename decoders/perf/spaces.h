// Address spaces of the processes in a perf.data, and the code that is mapped in them.
//
// A process gets a new one with exec; fork starts with a copy of the parent's mappings (shared
// until either changes, so that it costs nothing). Thread-safety: none.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "decoders/perf/events.h"
#include "decoders/perf/record.h"

namespace tsomon::perf {

class AddressSpaces {
 public:
  static constexpr int kTagShift = 57;
  static constexpr uint64_t kMaxSpaces = 32;

  ~AddressSpaces();

  void see(const Record& record);  // kMmap, kMmap2, kComm, kFork, kExit

  // The address with the number of the space that the process has now; nothing when there are too
  // many, or it is no address that a program can have. The kernel's are the same everywhere.
  std::optional<uint64_t> tagged(uint32_t pid, uint64_t address);

  // Those of the spaces whose addresses were asked for; the older ones first.
  std::vector<CodeMapping> mappings(
      const std::vector<std::pair<std::string, std::string>>& build_ids_by_path) const;

 private:
  struct Node {  // a list, the newest first, whose tail may be that of other spaces
    CodeMapping mapping;
    std::shared_ptr<Node> older;
  };
  struct Space {
    std::optional<uint64_t> number;
    std::shared_ptr<Node> newest;
  };
  Space& of(uint32_t pid);

  std::vector<std::unique_ptr<Space>> spaces_;
  std::unordered_map<uint32_t, Space*> current_;
  uint64_t numbers_ = 0;
};

}  // namespace tsomon::perf
