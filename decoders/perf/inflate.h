// The contents of compressed records: one zstd stream that goes on from record to record.
//
// Memory      One block at a time, and the window that the stream asks for: up to 128 MB (zstd's
//             own limit for streams), which is touched only as far as data fill it.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tso/support/result.h"

struct ZSTD_DCtx_s;

namespace tsomon::perf {

class Inflater {
 public:
  static constexpr size_t kBlockBytes = size_t{256} << 10;

  Inflater();

  // The next piece of the stream; it must stay alive until next() has given all of it.
  void give(std::string_view input) { input_ = input; }
  // Appends up to kBlockBytes to `block`; false when what was given is used up.
  Result<bool> next(std::string& block);

 private:
  struct Free {
    void operator()(ZSTD_DCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_DCtx_s, Free> context_;
  std::string_view input_;
  bool full_ = false;  // the last call filled its block: there may be more inside zstd
};

}  // namespace tsomon::perf
