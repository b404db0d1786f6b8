// What a stream's decoder has executed, as pieces of the paths of threads.
//
// Purpose     Which thread it is, where its path goes on, where something is missing, and when.
// Offsets     Of the stream: what the decoder had read.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "decoders/pt/flow/stream_decoder.h"
#include "decoders/pt/packets/times.h"

namespace tsomon::pt {

class PathPieces {
 public:
  // Told of each thread that is entered: its process, and when at the earliest.
  using Entered = std::function<void(int process, int64_t time)>;

  PathPieces(const Input& input, const TraceStream& stream, Times& times, DecodedStream& out,
             Entered entered);

  // How far the decoder has read: where marks are.
  void read_up_to(uint64_t at) { read_ = at; }

  // Tells of the thread that runs at this place, if that is certain, without entering it.
  void prepare(uint64_t at);
  // Goes on with the thread that runs at this place; none when that is not certain.
  // It does so somewhere between what was read at `at` and at `until`.
  void enter_thread(uint64_t at, uint64_t until);
  void enabled(uint64_t ip);
  void leave_thread();

  // Executed, by nobody where no thread is entered.
  void block(const CodeBlock* block, int64_t lo, int64_t hi) {
    if (piece_ == nullptr) {
      return;
    }
    out_.instructions += block->instructions.size();
    if (continues_) {
      enabled(block->ip());
    }
    if (piece_->entered == 0 && piece_->entries.empty()) {
      piece_->entered = block->ip();
    }
    if (piece_->entries.size() == piece_->entries.capacity()) {
      make_room(2 * piece_->entries.size() + 64);
    }
    PathEntry& entry = piece_->entries.emplace_back();
    entry.resumed = resumed_;
    entry.block = block;
    entry.lo = lo;
    entry.hi = hi;
    resumed_ = false;
    last_ = block;
    last_lo_ = lo;
  }
  void mark(PathEntry::Kind kind, uint64_t value = 0);
  void gap(uint64_t at);
  // A time in which it was not certain who ran is a gap of everybody who may have.
  void end_unknown(uint64_t at);
  // Where the thread goes on; 0: not known. After a block it is what the block says.
  void expect(uint64_t ip) {
    expected_ = ip;
    last_ = nullptr;
  }
  void lost() { lost_ = true; }
  bool is_lost() const { return lost_; }
  void transaction(bool speculative, bool aborted);

  bool entered() const { return piece_ != nullptr; }
  int process() const { return piece_ == nullptr ? stream_.process : piece_->process; }

 private:
  struct Runs {
    int process = 0;
    int thread = 0;
    int64_t earliest = kTimeMin;
    int64_t since = kTimeMin;  // when it was switched to
    int64_t run = 0;           // likewise, as pieces have it
    bool certain = true;
    bool somebody = true;
  };

  Runs runs(uint64_t at, uint64_t until) const;
  void make_room(size_t entries);

  const TraceStream& stream_;
  Times& times_;
  DecodedStream& out_;
  Entered told_;
  std::vector<Switch> switches_;
  PathPiece current_;
  PathPiece* piece_ = nullptr;
  std::optional<size_t> transaction_;  // entries of the piece before it began
  const CodeBlock* last_ = nullptr;    // the last block, where it says what is expected
  uint64_t expected_ = 0;
  uint64_t read_ = 0;
  int64_t last_lo_ = kTimeMin;  // of the last block
  std::optional<int64_t> unknown_from_;
  bool continues_ = false;  // the piece, at a place that is not known yet
  bool resumed_ = true;     // nothing was executed since the thread was entered
  bool lost_ = false;       // something is missing before what comes next
};

}  // namespace tsomon::pt
