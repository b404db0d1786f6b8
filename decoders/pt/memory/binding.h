// Where a path is in the loader's code that binds a symbol when it is first called.
//
// Purpose     What the loader reads then are its own lists of files and the tables of symbols in
//             them: no code of the program writes these. Such loads are told apart from what is
//             lost.
// Begins      At a jump through the word that the loader has put before the addresses that it
//             binds late (the third one of DT_PLTGOT; only the first entry of a procedure linkage
//             table jumps so): where it goes is the loader's file.
// Ends        With the jump to the function that was looked up: at the depth of calls at which it
//             began. A gap ends it, too. Signal handlers do not belong to it; it goes on where one
//             returns to the place that it interrupted.
// Not counted Loads from the thread's own block (through fs), which the C library shares with it;
//             what is called from there in other files (resolvers of indirect functions, malloc).
// Contract    Entries of one thread's path in order, each once.
// Thread-safety: none.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "decoders/pt/code/read_only_data.h"
#include "decoders/pt/flow/flow.h"
#include "decoders/pt/memory/accesses.h"

namespace tsomon::pt {

class Binding {
 public:
  // `constants` must outlive this; null: nothing counts.
  Binding(int process, const ReadOnlyData* constants) : process_(process), constants_(constants) {}

  // Whether the entry is a block of the loader's while it binds.
  bool next(const PathEntry& entry) {
    if (entry.kind == PathEntry::Kind::kBlock) {
      const bool plain = under_way_.empty() && !entered_ && !moved_;
      last_ = entry.block;
      return (plain && !last_->jumps_by_word) ? false : block(*last_);
    }
    if (entry.kind == PathEntry::Kind::kGap) {
      interrupted_.clear();
      stop();
    } else if (entry.kind == PathEntry::Kind::kElsewhere) {
      interrupt();
    }
    return false;
  }

 private:
  struct Lookup {
    uint64_t loader = 0;  // where its file is
    int depth = 0;        // of calls
  };

  // What a signal handler interrupted, or its end.
  struct Interrupted {
    std::vector<Lookup> under_way;
    std::array<uint64_t, 2> ips;  // where it may go on
    bool entered = false;
  };

  bool block(const CodeBlock& block);
  void interrupt();
  void come_back(uint64_t ip);
  void stop() {
    under_way_.clear();
    entered_ = false;
    moved_ = false;
    last_ = nullptr;
  }

  int process_;
  const ReadOnlyData* constants_;
  std::vector<Lookup> under_way_;  // functions that are called from one may need another one
  std::vector<Interrupted> interrupted_;
  const CodeBlock* last_ = nullptr;
  bool entered_ = false;  // the next block is the loader's first one
  bool moved_ = false;    // the next block is where the kernel has put the thread
};

// What is not known of a block's accesses while the loader binds.
void note_loader(std::vector<FoundAccess>& accesses);

}  // namespace tsomon::pt
