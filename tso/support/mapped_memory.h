// Memory that does not come from the allocator of the program, counted with what does (work.h).
//
// Thread-safety: any thread.
#pragma once

#include <cstdint>

namespace tsomon {

// So many bytes are about to be mapped, or were unmapped (negative). False: that is more than may be
// in use; then they do not count.
bool count_mapped(int64_t bytes) noexcept;

}  // namespace tsomon
