// What a capture calls things, as symbols: threads, labels, program counters.
//
// Complexity  O(1) each.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tso/model/trace.h"

namespace tsomon::capture {

// Ids of the capture to ids of Symbols, shared by the threads of one capture.
class Names {
 public:
  explicit Names(Symbols& symbols) : symbols_(&symbols) {}

  void set_label(uint32_t id, std::string_view text) { labels_[id] = std::string(text); }
  bool any_label() const { return !labels_.empty(); }
  void set_thread_name(uint32_t number, std::string_view name);

  ThreadId thread(uint64_t number);
  uint32_t label(uint64_t id);     // "label#7" when the capture does not define it
  uint32_t location(uint64_t pc);  // "0x401136" until it is symbolised; 0 has none
  uint64_t undefined_labels() const { return undefined_labels_; }
  // Takes so many of the largest pieces that the ranges of one capture may have together. False: it has not as many left.
  bool take_pieces(uint64_t count) {
    if (count > pieces_left_) {
      return false;
    }
    pieces_left_ -= count;
    return true;
  }
  void set_may_cancel() { may_cancel_ = true; }
  bool may_cancel() const { return may_cancel_; }  // units

 private:
  uint64_t pieces_left_ = uint64_t{1} << 20;  // 16 TiB
  Symbols* symbols_;
  std::unordered_map<uint64_t, std::string> labels_;
  std::unordered_map<uint64_t, std::string> thread_names_;
  std::unordered_map<uint64_t, ThreadId> threads_;
  std::unordered_map<uint64_t, uint32_t> label_ids_;
  std::unordered_map<uint64_t, uint32_t> locations_;
  struct Recent {
    uint64_t pc = 0;
    uint32_t id = Event::kNoLocation;
  };
  std::vector<Recent> recent_ = std::vector<Recent>(1024);
  uint64_t undefined_labels_ = 0;
  bool may_cancel_ = false;
};

}  // namespace tsomon::capture
