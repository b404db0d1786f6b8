#include "decoders/perf/inflate.h"

#include <fmt/format.h>
#include <zstd.h>

namespace tsomon::perf {

void Inflater::Free::operator()(ZSTD_DCtx_s* context) const { ZSTD_freeDCtx(context); }

Inflater::Inflater() : context_(ZSTD_createDCtx()) {}

Result<bool> Inflater::next(std::string& block) {
  if (input_.empty() && !full_) {
    return false;
  }
  const size_t before = block.size();
  block.resize(before + kBlockBytes);
  ZSTD_outBuffer out{block.data() + before, kBlockBytes, 0};
  ZSTD_inBuffer in{input_.data(), input_.size(), 0};
  size_t result = 1;
  do {
    const size_t produced = out.pos;
    const size_t consumed = in.pos;
    result = ZSTD_decompressStream(context_.get(), &out, &in);
    if (ZSTD_isError(result) != 0) {
      block.resize(before + out.pos);
      return fail(ErrorKind::kDamaged, fmt::format("zstd says: {}", ZSTD_getErrorName(result)));
    }
    if (out.pos == produced && in.pos == consumed) {
      break;
    }
  } while (out.pos < out.size && in.pos < in.size);
  input_.remove_prefix(in.pos);
  full_ = out.pos == out.size;
  block.resize(before + out.pos);
  return out.pos > 0 || !input_.empty();
}

}  // namespace tsomon::perf
