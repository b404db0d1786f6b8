#include "tso/support/text_hash.h"

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tsomon {

uint64_t text_hash(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

std::string hash_name(std::string_view text) { return fmt::format("{:016x}", text_hash(text)); }

}  // namespace tsomon
