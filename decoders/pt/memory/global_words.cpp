#include "decoders/pt/memory/global_words.h"

#include <algorithm>
#include <iterator>

namespace tsomon::pt {

bool GlobalWords::keeps(uint64_t address, unsigned size) const {
  return size <= 8 && constants_.is_data(process_, address, size);
}

std::optional<SymbolicValue> GlobalWords::load(uint64_t address, unsigned size,
                                               SymbolicValues& terms) {
  SymbolicMemory* of = &words_;
  auto found = of->find(address);
  if (found == of->end()) {
    of = &bound_;
    found = of->find(address);
  }
  if (found == of->end() || found->second.size < size) {
    return std::nullopt;
  }
  SymbolicWord& word = found->second;
  if (proofs_.others->may_write(proofs_.self, address, size, word.since,
                                proofs_.times->high(at_))) {
    of->erase(found);
    return std::nullopt;
  }
  SymbolicValue value = terms.resolve(word.value);
  if (size < word.size) {
    return terms.cut(value, size);  // the rest is not proved
  }
  word.since = proofs_.times->low(at_);
  return value;
}

void GlobalWords::put(uint64_t address, unsigned size, SymbolicValue value) {
  forget(address, size);
  SymbolicMemory& words =
      constants_.may_change_by_binding(process_, address, size) ? bound_ : words_;
  if (words.size() >= kMost) {
    words.clear();
  }
  words[address] = {value, size, proofs_.times->low(at_)};
}

void GlobalWords::forget_any() {
  bound_.clear();
  if (!binds_) {
    words_.clear();
  }
}

void GlobalWords::store(const KernelWrites& writes) {
  if (writes.anywhere) {
    forget_all();
  }
  for (const x86::ByteRange& range : writes.ranges) {
    forget(range.address, range.size);
  }
}

void GlobalWords::forget(uint64_t address, uint64_t size) {
  forget(words_, address, size);
  forget(bound_, address, size);
}

void GlobalWords::forget(SymbolicMemory& words, uint64_t address, uint64_t size) {
  if (words.empty() || size == 0) {
    return;
  }
  const uint64_t last = address + (size - 1);
  if (last < address) {
    words.clear();
    return;
  }
  auto word = words.lower_bound(address - std::min<uint64_t>(address, 7));
  while (word != words.end() && word->first <= last) {
    word = word->first + word->second.size > address ? words.erase(word) : std::next(word);
  }
}

}  // namespace tsomon::pt
