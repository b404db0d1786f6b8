#include "monitor/explore/runtime/memory_image.h"

#include <algorithm>

#include <emmintrin.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "monitor/explore/runtime/kernel.h"
#include "monitor/probe/copy.h"

namespace tsomon::explore::image {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint32_t kMaxRegions = 4096;
constexpr uint32_t kMaxPages = 16384;
constexpr uint64_t kMarkBytes = uint64_t{4} << 20;  // a bit for each page of the regions
constexpr uint64_t kMapsBytes = uint64_t{1} << 20;
// Pages that nothing was written to in so many executions are protected again. To look at one costs
// a hundredth of what the next write to it does then.
constexpr uint32_t kIdle = 256;

struct Region {
  uint64_t begin;
  uint64_t end;
  uint64_t marks;  // the first of its bits
  bool code;       // may be executed
};

struct Page {
  uint64_t address;
  uint32_t content;  // number of what was kept; 0: zeroes
  uint32_t changed;  // in the last execution that did
  bool always;
};

struct Tables {
  uint32_t regions;
  uint32_t pages;
  uint32_t contents;  // that were taken so far, of kept
  uint32_t free_contents;
  uint32_t executions;
  uint32_t next_look;
  uint64_t marks_used;
  Region region[kMaxRegions];
  Page page[kMaxPages];
  uint32_t free_content[kMaxPages];
  uint64_t mark[kMarkBytes / 8];
  char maps[kMapsBytes];
  alignas(kPage) uint8_t kept[kMaxPages + 1][kPage];  // the first holds zeroes
};

struct Range {
  uint64_t begin;
  uint64_t end;
};

Tables* tables = nullptr;
Range left_out[16];
uint32_t left_out_count = 0;

const uint8_t* kept_content(const Page& page) { return tables->kept[page.content]; }

bool are_equal(const void* a, const void* b) {
  const auto* x = static_cast<const __m128i*>(a);
  const auto* y = static_cast<const __m128i*>(b);
  for (uint64_t i = 0; i < kPage / 16; i += 4) {
    __m128i same = _mm_cmpeq_epi32(_mm_load_si128(x + i), _mm_load_si128(y + i));
    for (uint64_t j = 1; j < 4; ++j) {
      same = _mm_and_si128(same,
                           _mm_cmpeq_epi32(_mm_load_si128(x + i + j), _mm_load_si128(y + i + j)));
    }
    if (_mm_movemask_epi8(same) != 0xFFFF) {
      return false;
    }
  }
  return true;
}

// Lines that differ are copied. False: there were none.
bool bring_back(void* to, const void* from) {
  auto* x = static_cast<__m128i*>(to);
  const auto* y = static_cast<const __m128i*>(from);
  bool changed = false;
  for (uint64_t i = 0; i < kPage / 16; i += 4) {
    __m128i was[4];
    __m128i same = _mm_set1_epi32(-1);
    for (uint64_t j = 0; j < 4; ++j) {
      was[j] = _mm_load_si128(y + i + j);
      same = _mm_and_si128(same, _mm_cmpeq_epi32(_mm_load_si128(x + i + j), was[j]));
    }
    if (_mm_movemask_epi8(same) != 0xFFFF) {
      changed = true;
      for (uint64_t j = 0; j < 4; ++j) {
        _mm_store_si128(x + i + j, was[j]);
      }
    }
  }
  return changed;
}

bool set_rights(const Region& region, uint64_t begin, uint64_t size, bool write) {
  const long rights = PROT_READ | (write ? PROT_WRITE : 0) | (region.code ? PROT_EXEC : 0);
  return kernel_call(SYS_mprotect, begin, size, rights) == 0;
}

Region* region_of(uint64_t address) {
  for (uint32_t i = 0; i < tables->regions; ++i) {
    if (address >= tables->region[i].begin && address < tables->region[i].end) {
      return &tables->region[i];
    }
  }
  return nullptr;
}

uint64_t mark_of(const Region& region, uint64_t address) {
  return region.marks + (address - region.begin) / kPage;
}
bool is_marked(uint64_t mark) { return ((tables->mark[mark / 64] >> (mark % 64)) & 1) != 0; }
void flip(uint64_t mark) { tables->mark[mark / 64] ^= uint64_t{1} << (mark % 64); }

// 0: there is no room.
uint32_t take_content() {
  if (tables->free_contents != 0) {
    return tables->free_content[--tables->free_contents];
  }
  return tables->contents == kMaxPages ? 0 : ++tables->contents;
}

// False: no room. `content` may be 0, of a page of zeroes.
bool keep(uint64_t address, uint32_t* content) {
  const auto* const now = reinterpret_cast<const void*>(address);
  if (*content == 0) {
    if (are_equal(now, tables->kept[0])) {
      return true;
    }
    *content = take_content();
    if (*content == 0) {
      return false;
    }
  }
  probe::copy(tables->kept[*content], now, kPage);
  return true;
}

// The page can be written to.
bool add_page(const Region& region, uint64_t address, bool always) {
  Page page{address, 0, tables->executions, always};
  if (tables->pages == kMaxPages || !keep(address, &page.content)) {
    return false;
  }
  flip(mark_of(region, address));
  tables->page[tables->pages++] = page;
  return true;
}

bool protect(const Region& region, uint64_t begin, uint64_t end) {
  return begin >= end || set_rights(region, begin, end - begin, false);
}

bool add_region(uint64_t begin, uint64_t end, bool code, const Open& open) {
  const uint64_t marks = (end - begin) / kPage;
  if (tables->regions == kMaxRegions || tables->marks_used + marks > kMarkBytes * 8) {
    return false;
  }
  Region& region = tables->region[tables->regions];
  region = {begin, end, tables->marks_used, code};
  ++tables->regions;
  tables->marks_used += marks;
  const uint64_t open_begin = std::clamp(open.begin & ~(kPage - 1), begin, end);
  const uint64_t open_end =
      std::clamp((open.begin + open.size + kPage - 1) & ~(kPage - 1), open_begin, end);
  for (uint64_t page = open_begin; page < open_end; page += kPage) {
    if (!add_page(region, page, true)) {
      return false;
    }
  }
  return protect(region, begin, open_begin) && protect(region, open_end, end);
}

bool is_left_out(uint64_t begin, uint64_t end) {
  for (uint32_t i = 0; i < left_out_count; ++i) {
    if (begin < left_out[i].end && left_out[i].begin < end) {
      return true;
    }
  }
  return false;
}

// What of [begin, end) is not left out; the kernel joins neighbours of the same kind.
bool add_parts(uint64_t begin, uint64_t end, bool code, const Open& open) {
  while (begin < end) {
    uint64_t to = begin + kPage;
    const bool out = is_left_out(begin, to);
    while (to < end && is_left_out(to, to + kPage) == out) {
      to += kPage;
    }
    if (!out && !add_region(begin, to, code, open)) {
      return false;
    }
    begin = to;
  }
  return true;
}

uint64_t read_number(const char** at) {
  uint64_t number = 0;
  for (;; ++*at) {
    const char c = **at;
    if (c >= '0' && c <= '9') {
      number = number * 16 + static_cast<uint64_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      number = number * 16 + static_cast<uint64_t>(c - 'a' + 10);
    } else {
      return number;
    }
  }
}

bool read_maps() {
  const long file = kernel_call(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (kernel_failed(file)) {
    return false;
  }
  uint64_t size = 0;
  long got = 0;
  while (size + 1 < kMapsBytes &&
         (got = kernel_call(SYS_read, file, tables->maps + size, kMapsBytes - 1 - size)) > 0) {
    size += static_cast<uint64_t>(got);
  }
  kernel_call(SYS_close, file);
  tables->maps[size] = 0;
  return got == 0 && size != 0;
}

// Pages that nothing was written to for long.
void drop_idle() {
  uint32_t left = 0;
  for (uint32_t i = 0; i < tables->pages; ++i) {
    const Page page = tables->page[i];
    Region* const region = region_of(page.address);
    if (page.always || tables->executions - page.changed < kIdle || region == nullptr ||
        !set_rights(*region, page.address, kPage, false)) {
      tables->page[left++] = page;
      continue;
    }
    flip(mark_of(*region, page.address));
    if (page.content != 0) {
      tables->free_content[tables->free_contents++] = page.content;
    }
  }
  tables->pages = left;
}

}  // namespace

size_t memory_size() { return sizeof(Tables); }

void leave_out(const void* begin, size_t size) {
  const auto from = reinterpret_cast<uint64_t>(begin);
  if (left_out_count < sizeof left_out / sizeof left_out[0]) {
    left_out[left_out_count++] = {from, (from + size + kPage - 1) & ~(kPage - 1)};
  }
}

bool begin(void* memory, const Open& open) {
  tables = static_cast<Tables*>(memory);
  tables->next_look = kIdle;
  if (!read_maps()) {
    return false;
  }
  for (const char* at = tables->maps; *at != 0;) {
    const uint64_t from = read_number(&at);
    ++at;
    const uint64_t to = read_number(&at);
    ++at;
    const bool kept = at[0] == 'r' && at[1] == 'w' && at[3] == 'p';
    if (kept && !add_parts(from, to, at[2] == 'x', open)) {
      return false;
    }
    while (*at != 0 && *at != '\n') {
      ++at;
    }
    at += *at == '\n' ? 1 : 0;
  }
  return true;
}

bool add(uint64_t begin, uint64_t size, const Open& open) {
  return add_region(begin, begin + size, false, open);
}

bool note_write(uint64_t address) {
  address &= ~(kPage - 1);
  Region* const region = region_of(address);
  return region != nullptr && !is_marked(mark_of(*region, address)) &&
         add_page(*region, address, false) && set_rights(*region, address, kPage, true);
}

bool let_write(uint64_t address, uint64_t size) {
  for (uint64_t at = address & ~(kPage - 1); at < address + size; at += kPage) {
    Region* const region = region_of(at);
    if (region != nullptr && !is_marked(mark_of(*region, at)) && !note_write(at)) {
      return false;
    }
  }
  return true;
}

bool is_in(uint64_t address) { return region_of(address) != nullptr; }

void restore() {
  ++tables->executions;
  for (uint32_t i = 0; i < tables->pages; ++i) {
    Page& page = tables->page[i];
    if (bring_back(reinterpret_cast<void*>(page.address), kept_content(page))) {
      page.changed = tables->executions;
    }
  }
  if (tables->executions >= tables->next_look) {
    tables->next_look = tables->executions + kIdle;
    drop_idle();
  }
}

bool renew() {
  for (uint32_t i = 0; i < tables->pages; ++i) {
    if (!keep(tables->page[i].address, &tables->page[i].content)) {
      return false;
    }
  }
  return true;
}

}  // namespace tsomon::explore::image
