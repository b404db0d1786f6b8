#include "monitor/probe/watched_memory.h"

#include "monitor/probe/chunk_writer.h"

namespace tsomon::probe {

namespace watching {
std::atomic<Page*> regions[kRegions];
std::atomic<uint64_t> watched_pages[kPageBitsKept / 64];
}  // namespace watching

namespace {

using namespace watching;

constexpr uint64_t kPageSize = uint64_t{1} << kPageBits;
constexpr size_t kWords = kPageSize / kGranule / 64;
using Word = std::atomic<uint64_t>;

// A place for the granules of a page. Callers take turns.
Word* new_granules() {
  static Word* free = nullptr;
  static size_t left = 0;
  if (left == 0) {
    constexpr size_t kMany = 1024;
    free = static_cast<Word*>(take_memory(kMany * kWords * sizeof(Word)));
    if (free == nullptr) {
      return nullptr;
    }
    left = kMany;
  }
  --left;
  Word* const granules = free;
  free += kWords;
  return granules;
}

Page* page_at(uint64_t address) {
  std::atomic<Page*>& region = regions[address >> kRegionBits];
  Page* pages = region.load(std::memory_order_relaxed);
  if (pages == nullptr) {
    pages = static_cast<Page*>(take_memory(kPages * sizeof(Page)));
    if (pages == nullptr) {
      return nullptr;
    }
    region.store(pages, std::memory_order_release);
  }
  return &pages[(address >> kPageBits) & (kPages - 1)];
}

// [begin, end) lies in one page; both are multiples of kGranule.
bool watch_in_page(uint64_t begin, uint64_t end) {
  Page* const page = page_at(begin);
  if (page == nullptr) {
    return false;
  }
  const uint64_t bit = page_bit(begin);
  watched_pages[bit / 64].fetch_or(uint64_t{1} << bit % 64, std::memory_order_relaxed);
  const uint64_t known = page->load(std::memory_order_relaxed);
  if (known == kWholePage) {
    return true;
  }
  if (end - begin == kPageSize) {
    page->store(kWholePage, std::memory_order_release);
    return true;
  }
  Word* const granules = known != 0 ? reinterpret_cast<Word*>(known) : new_granules();
  if (granules == nullptr) {
    return false;
  }
  for (uint64_t at = begin; at < end; at += kGranule) {
    const uint64_t granule = at % kPageSize / kGranule;
    granules[granule / 64].fetch_or(uint64_t{1} << (granule % 64), std::memory_order_relaxed);
  }
  page->store(reinterpret_cast<uint64_t>(granules), std::memory_order_release);
  return true;
}

}  // namespace

bool watch_range(uint64_t address, uint64_t size) {
  constexpr uint64_t kEnd = uint64_t{1} << kAddressBits;
  if (size == 0) {
    return true;
  }
  if (address >= kEnd || size > kEnd - address) {
    return false;
  }
  const uint64_t end = (address + size + kGranule - 1) & ~(kGranule - 1);
  bool all = true;
  for (uint64_t at = address & ~(kGranule - 1); at < end;) {
    const uint64_t page_end = (at & ~(kPageSize - 1)) + kPageSize;
    const uint64_t next = page_end < end ? page_end : end;
    all = watch_in_page(at, next) && all;
    at = next;
  }
  return all;
}

uint64_t next_watched(uint64_t at, uint64_t end, bool wanted) {
  while (at < end) {
    const uint64_t page_end = (at & ~(kPageSize - 1)) + kPageSize;
    const uint64_t page = page_of(at);
    if (page <= kWholePage) {
      if ((page != 0) == wanted) {
        return at;
      }
      at = page_end;
    } else {
      for (; at < page_end && at < end; at = (at & ~(kGranule - 1)) + kGranule) {
        if (has_granule(page, at) == wanted) {
          return at;
        }
      }
    }
    if (at == 0) {
      break;  // the end of the address space
    }
  }
  return end;
}

}  // namespace tsomon::probe
