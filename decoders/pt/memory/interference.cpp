#include "decoders/pt/memory/interference.h"

#include <algorithm>
#include <set>
#include <utility>

#include <sys/syscall.h>

namespace tsomon::pt {

using Kind = PathEntry::Kind;
using x86::AccessKind;
using x86::Register;

namespace {

constexpr uint64_t kGranule = 8;
constexpr uint64_t kPage = ReadOnlyData::kPage;
constexpr size_t kMostWide = 16;  // ranges of a page, before they are put together

// The part of a range in a page.
x86::ByteRange in_page(const x86::ByteRange& range, uint64_t page) {
  const uint64_t begin = std::max(range.address, page * kPage);
  const uint64_t last = std::min(range.address + (range.size - 1), page * kPage + (kPage - 1));
  return {begin, last - begin + 1};
}

bool meet(const x86::ByteRange& range, uint64_t address, uint64_t size) {
  return range.address < address + size && address < range.address + range.size;
}

// The place of the range among those of its page, made larger where there are too many.
template <typename Wide>
Wide& place_of(std::vector<Wide>& page, const x86::ByteRange& range) {
  for (Wide& known : page) {
    if (known.range.address == range.address && known.range.size == range.size) {
      return known;
    }
  }
  if (page.size() < kMostWide) {
    page.push_back({range, {}});
    return page.back();
  }
  x86::ByteRange& last = page.back().range;
  const uint64_t end = std::max(last.address + last.size, range.address + range.size);
  last.address = std::min(last.address, range.address);
  last.size = end - last.address;
  return page.back();
}

}  // namespace

void WriteTimes::finish() {
  std::sort(all_.begin(), all_.end(), [](const Time& a, const Time& b) { return a.from < b.from; });
  for (size_t i = 1; i < all_.size(); ++i) {
    const Time& before = all_[i - 1];
    Time& here = all_[i];
    if (here.thread == before.thread) {
      here.until = std::max(here.until, before.until);
      here.others_until = before.others_until;
    } else if (here.until > before.until) {
      here.others_until = std::max(before.until, before.others_until);
    } else {
      const int64_t until = here.until;
      const int64_t others = std::max(until, before.others_until);
      here.until = before.until;
      here.thread = before.thread;
      here.others_until = others;
    }
  }
}

bool WriteTimes::meets(size_t but, int64_t from, int64_t to) const {
  const auto behind =
      std::upper_bound(all_.begin(), all_.end(), to,
                       [](int64_t time, const Time& each) { return time < each.from; });
  if (behind == all_.begin()) {
    return false;
  }
  const Time& last = *(behind - 1);
  return (last.thread == but ? last.others_until : last.until) >= from;
}

ThreadStores::ThreadStores(const ThreadPath& path, const PathTimes& times,
                           const ReadOnlyData& constants)
    : path_(path), times_(times), constants_(constants) {
  if (!path.entries.empty()) {
    first_ = times.high(0);
    first_ip_ = path.entries.front().kind == Kind::kBlock ? path.entries.front().block->ip() : 0;
  }
}

void ThreadStores::system_call(const SystemCall& call) {
  const KernelWrites writes = written_by(call);
  if (writes.anywhere) {
    add(anywhere_);
  }
  for (const x86::ByteRange& range : writes.ranges) {
    write(range);
  }
  const Created created = created_by(call);
  shares_ = shares_ || created == Created::kOther || remaps_data(call);
  if (created == Created::kPerhapsThread) {
    creations_.push_back({at_, path_.entries[at_].block->instructions.back().next(),
                          times_.low(at_), call.creates.value_or(NewThread{})});
  }
  ended_ = ends_thread(call) && at_ + 1 == path_.entries.size();
}

// Whether a file's data may be elsewhere from then on, and other memory in its place.
bool ThreadStores::remaps_data(const SystemCall& call) {
  const KernelWrites remapped = remapped_by(call);
  const bool any =
      remapped.anywhere ||
      std::any_of(remapped.ranges.begin(), remapped.ranges.end(), [&](const x86::ByteRange& range) {
        return constants_.may_be_data(path_.process, range.address, range.size);
      });
  return any && !maps_as_loader(call);
}

// The C library's loader maps files privately, where there were none; what it unmaps while the
// program has not begun is its list of files.
bool ThreadStores::maps_as_loader(const SystemCall& call) {
  const uint64_t site = path_.entries[at_].block->instructions.back().address;
  if (!constants_.is_c_library(path_.process, site) || !constants_.loader_at(path_.process, site)) {
    return false;
  }
  if (call.number != SYS_munmap) {
    return call.number == SYS_mmap;
  }
  for (; starting_ < at_; ++starting_) {
    const PathEntry& entry = path_.entries[starting_];
    if (entry.kind != Kind::kBlock || !constants_.is_c_library(path_.process, entry.block->ip())) {
      break;
    }
  }
  return starting_ == at_ && path_.thread == path_.process;
}

void ThreadStores::entry(const PathEntry& entry, const std::vector<FoundAccess>& accesses) {
  at_ = next_++;
  lost_ = lost_ || entry.kind == Kind::kGap;
  if (entry.kind == Kind::kElsewhere) {
    add(anywhere_);
  } else if (entry.kind == Kind::kBlock) {
    auto found = accesses.begin();
    for (const x86::Instruction& instruction : entry.block->instructions) {
      bool fence = instruction.ordering == x86::Ordering::kFull;
      for (; found != accesses.end() && found->instruction == &instruction; ++found) {
        access(*found);
        fence = fence || found->access->kind == AccessKind::kLocked;
      }
      // System calls are told by themselves.
      const bool far = instruction.branch == x86::Branch::kFar;
      shares_ = shares_ || instruction.other_gate;
      if (far ? instruction.operation != x86::Operation::kSystemCall
              : instruction.unlisted_stores) {
        write_anywhere();
      }
      if (fence) {
        fences_.push_back(times_.high(at_));
      }
    }
  }
  binds_ = false;
}

void ThreadStores::access(const FoundAccess& found) {
  const bool unknown = found.source == AddressSource::kUnknown;
  unknown_ += unknown && !found.access->stack_relative() ? 1 : 0;
  if (found.access->kind == AccessKind::kLoad) {
    return;
  }
  const x86::Address& address = found.access->address;
  const bool own_block = address.segment == Register::kFsBase && address.base == Register::kNone &&
                         address.index == Register::kNone;
  const bool own_stack =
      found.access->stack_relative() || found.stack || found.source == AddressSource::kOwnStack;
  if (!unknown && found.source != AddressSource::kOwnStack) {
    write(found.range);
  } else if (own_stack || own_block) {
    return;
  } else if (found.within.size != 0) {
    write(found.within);
  } else {
    write_anywhere();
  }
}

void ThreadStores::write(const x86::ByteRange& range) {
  constexpr uint64_t kFew = 64;
  if (range.size > kMostBytes) {
    write_anywhere();
    return;
  }
  const uint64_t page = range.address / kPage;
  const uint64_t last = range.address + (range.size - 1);
  if (range.size == 0 || (page == no_data_ && last / kPage == page)) {
    return;
  }
  if (last / kPage == page && !constants_.may_be_data(path_.process, page * kPage, kPage)) {
    no_data_ = page;
    return;
  }
  if (!constants_.may_be_data(path_.process, range.address, range.size)) {
    return;
  }
  if (last < range.address || words_.size() >= kMostWords) {
    write_anywhere();
  } else if (range.size > kFew) {
    write_wide(range);
  } else {
    for (uint64_t word = range.address / kGranule; word <= last / kGranule; ++word) {
      add(words_[word]);
    }
  }
}

void ThreadStores::write_wide(const x86::ByteRange& range) {
  const uint64_t last = (range.address + (range.size - 1)) / kPage;
  for (uint64_t page = range.address / kPage; page <= last; ++page) {
    add(place_of(pages_[page], in_page(range, page)).spans);
  }
}

// Both ends of the spans ascend.
void ThreadStores::add(StoreSpans& to) const {
  const size_t fence = fences_.size();
  if (!to.empty() && (to.back().fence == fence || to.size() >= kMostSpans)) {
    to.back().fence = fence;
    return;
  }
  to.push_back({times_.low(at_), fence});
}

void ThreadStores::finish() {
  if (!ended_ && !path_.entries.empty()) {
    end_ = times_.low(path_.entries.size() - 1);
  }
}

void ThreadStores::add_times(const StoreSpans& spans, WriteTimes& to) const {
  for (const StoreSpan& span : spans) {
    to.add(number_, span.from, end_of(span.fence));
  }
}

void ThreadStores::add_times(StoreTimes& to) const {
  if (path_.entries.empty()) {
    return;
  }
  to.anywhere.add(number_, begin_, end_of(0));
  if (!ended_) {
    to.anywhere.add(number_, end_, kTimeMax);
  }
  add_times(anywhere_, to.anywhere);
  add_times(by_binding_, to.by_binding);
  for (const auto& [word, spans] : words_) {
    add_times(spans, to.words[word]);
  }
  for (const auto& [page, ranges] : pages_) {
    for (const Wide& wide : ranges) {
      add_times(wide.spans, place_of(to.pages[page], wide.range).times);
    }
  }
}

Interference::Interference(std::vector<ThreadStores*> threads) : threads_(std::move(threads)) {
  size_t creations = 0;
  int64_t first_creation = kTimeMax;
  std::set<uint64_t> sites;
  for (const ThreadStores* thread : threads_) {
    complete_ = complete_ && !thread->lost() && !thread->shares();
    creations += thread->creations().size();
    for (const ThreadStores::Creation& creation : thread->creations()) {
      first_creation = std::min(first_creation, creation.from);
      sites.insert(creation.site);
    }
  }
  for (size_t i = 0; i < threads_.size(); ++i) {
    threads_[i]->number(i);
    if (threads_[i]->first() >= first_creation && sites.count(threads_[i]->first_ip()) != 0) {
      created_.push_back(i);
      threads_[i]->begins_at(first_creation);
    }
  }
  complete_ = complete_ && created_.size() == creations;
  if (!complete_) {
    return;
  }
  for (const ThreadStores* thread : threads_) {
    thread->add_times(times_);
  }
  times_.anywhere.finish();
  times_.by_binding.finish();
  for (auto word = times_.words.begin(); word != times_.words.end(); ++word) {
    word.value().finish();
  }
  for (auto page = times_.pages.begin(); page != times_.pages.end(); ++page) {
    for (StoreTimes::Wide& wide : page.value()) {
      wide.times.finish();
    }
  }
}

bool Interference::may_write(const ThreadStores* but, uint64_t address, unsigned size, int64_t from,
                             int64_t to) const {
  const size_t self = but->number();
  if (times_.anywhere.meets(self, from, to) ||
      (times_.by_binding.meets(self, from, to) && but->may_change_by_binding(address, size))) {
    return true;
  }
  const uint64_t last = address + (size - 1);
  for (uint64_t word = address / kGranule; word <= last / kGranule; ++word) {
    const auto times = times_.words.find(word);
    if (times != times_.words.end() && times->second.meets(self, from, to)) {
      return true;
    }
  }
  for (uint64_t page = address / kPage; page <= last / kPage; ++page) {
    const auto ranges = times_.pages.find(page);
    if (ranges != times_.pages.end() && std::any_of(ranges->second.begin(), ranges->second.end(),
                                                    [&](const StoreTimes::Wide& wide) {
                                                      return meet(wide.range, address, size) &&
                                                             wide.times.meets(self, from, to);
                                                    })) {
      return true;
    }
  }
  return false;
}

}  // namespace tsomon::pt
