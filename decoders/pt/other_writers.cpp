#include "decoders/pt/other_writers.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tsomon::pt {

using Kind = PathEntry::Kind;
using x86::AccessKind;
using x86::Register;

ThreadStores::ThreadStores(const ThreadPath& path, const PathTimes& times,
                           const Constants& constants)
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
  shares_ = shares_ || created == Created::kOther;
  if (created == Created::kPerhapsThread) {
    creations_.push_back({at_, path_.entries[at_].block->instructions.back().next(),
                          times_.low(at_), call.creates.value_or(NewThread{})});
  }
  ended_ = ends_thread(call) && at_ + 1 == path_.entries.size();
}

void ThreadStores::entry(const PathEntry& entry, const std::vector<FoundAccess>& accesses) {
  at_ = next_++;
  lost_ = lost_ || entry.kind == Kind::kGap;
  if (entry.kind == Kind::kBlock) {
    auto found = accesses.begin();
    for (const x86::Instruction& instruction : entry.block->instructions) {
      bool fence = instruction.ordering == x86::Ordering::kFull;
      for (; found != accesses.end() && found->instruction == &instruction; ++found) {
        access(*found);
        fence = fence || found->access->kind == AccessKind::kLocked;
      }
      // System calls are told by themselves.
      const bool far = instruction.branch == x86::Branch::kFar;
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
  if (found.access->stack_relative() || found.stack || own_block ||
      found.source == AddressSource::kOwnStack) {
    return;
  }
  if (!unknown) {
    write(found.range);
  } else if (found.within.size != 0) {
    write(found.within);
  } else {
    write_anywhere();
  }
}

void ThreadStores::write(const x86::ByteRange& range) {
  if (range.size > kMostBytes) {
    write_anywhere();
    return;
  }
  if (range.size == 0 || !constants_.may_be_data(path_.process, range.address, range.size)) {
    return;
  }
  const uint64_t last = (range.address + range.size - 1) / kGranule;
  for (uint64_t word = range.address / kGranule; word <= last; ++word) {
    add(words_[word]);
  }
}

void ThreadStores::add(Stretches& to) const {
  const size_t fence = fences_.size();
  if (!to.empty() && (to.back().fence == fence || to.size() >= kMostStretches)) {
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

// Both ends of the stretches ascend.
bool ThreadStores::meets(const Stretches& stretches, int64_t from, int64_t to) const {
  const auto behind =
      std::upper_bound(stretches.begin(), stretches.end(), to,
                       [](int64_t time, const Stretch& stretch) { return time < stretch.from; });
  return behind != stretches.begin() && end_of((behind - 1)->fence) >= from;
}

bool ThreadStores::may_write(uint64_t address, unsigned size, int64_t from, int64_t to) const {
  if (path_.entries.empty()) {
    return false;
  }
  if ((begin_ <= to && end_of(0) >= from) || (!ended_ && end_ <= to) ||
      meets(anywhere_, from, to)) {
    return true;
  }
  if (meets(by_binding_, from, to) &&
      constants_.may_change_by_binding(path_.process, address, size)) {
    return true;
  }
  const uint64_t last = (address + size - 1) / kGranule;
  for (uint64_t word = address / kGranule; word <= last; ++word) {
    const auto stretches = words_.find(word);
    if (stretches != words_.end() && meets(stretches->second, from, to)) {
      return true;
    }
  }
  return false;
}

OtherWriters::OtherWriters(std::vector<ThreadStores*> threads) : threads_(std::move(threads)) {
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
    if (threads_[i]->first() >= first_creation && sites.count(threads_[i]->first_ip()) != 0) {
      created_.push_back(i);
      threads_[i]->begins_at(first_creation);
    }
  }
  complete_ = complete_ && created_.size() == creations;
}

bool OtherWriters::may_write(const ThreadStores* but, uint64_t address, unsigned size, int64_t from,
                             int64_t to) const {
  return std::any_of(threads_.begin(), threads_.end(), [&](const ThreadStores* thread) {
    return thread != but && thread->may_write(address, size, from, to);
  });
}

}  // namespace tsomon::pt
