// What PathWalk knows of memory: the stack, constants, and the rest where nobody else writes.
#include <algorithm>
#include <cstring>

#include "decoders/pt/path_walk.h"

namespace tsomon::pt {
namespace {

using x86::Operation;
using x86::Register;

constexpr uint64_t kMostEntries = 4096;  // of a table that is searched
constexpr uint32_t kSeveral = ~uint32_t{0};

}  // namespace

Term PathWalk::perhaps_on_stack(Term address) const {
  constexpr int64_t kNear = int64_t{1} << 20;
  const Term stack = reg(Register::kRsp);
  const Term now = terms_.settled(stack);
  const auto distance = static_cast<int64_t>(address.offset - now.offset);
  if (now.known() && distance > -kNear && distance < kNear) {
    return {stack.offset + static_cast<uint64_t>(distance), stack.node, address.via};
  }
  return address;
}

std::optional<uint64_t> PathWalk::constant_at(uint64_t address, unsigned size) {
  if (options_.constants == nullptr || size > 8) {
    return std::nullopt;
  }
  const uint64_t number = address / Constants::kPage;
  Page& page = pages_[number % pages_.size()];
  if (page.number != number) {
    page = {number, options_.constants->page(process_, address)};
  }
  uint64_t value = 0;
  if (page.content.state == Constants::Page::State::kNone) {
    return std::nullopt;
  }
  const uint64_t at = address % Constants::kPage;
  const bool known = page.content.state == Constants::Page::State::kSome &&
                     at >= page.content.begin && at + size <= page.content.end;
  if (known && at + sizeof value <= page.content.end) {
    std::memcpy(&value, page.content.bytes + (at - page.content.begin), sizeof value);
    value &= Terms::most_of(size);
  } else if (known) {
    std::memcpy(&value, page.content.bytes + (at - page.content.begin), size);
  } else if (!options_.constants->read(process_, address, reinterpret_cast<uint8_t*>(&value),
                                       size)) {
    return std::nullopt;
  }
  return value;
}

// After constant_at() has found nothing there.
const Term* PathWalk::settled_at(uint64_t address, unsigned size) {
  if (options_.constants == nullptr || size != 8 ||
      !pages_[address / Constants::kPage % pages_.size()].content.settled) {
    return nullptr;
  }
  auto word = settled_.find(address);
  if (word == settled_.end()) {
    if (!options_.constants->is_settled(process_, address, size) ||
        options_.constants->may_be_loader(process_, block_ip_)) {
      return nullptr;
    }
    word = settled_.emplace(address, terms_.leaf(8)).first;
  }
  word->second = terms_.resolve(word->second);
  return &word->second;
}

void PathWalk::forget_settled(uint64_t address, uint64_t size) {
  const uint64_t end = address + size;
  auto word = settled_.lower_bound(address - std::min<uint64_t>(address, 7));
  while (word != settled_.end() && word->first < end) {
    word = settled_.erase(word);
  }
}

Term PathWalk::load(Term address, unsigned size) {
  address = on_stack(address);
  if (is_own(address)) {
    return options_.stack ? stack_.load(address, size, terms_) : terms_.leaf(size);
  }
  if (const auto value = address.known() ? constant_at(address.offset, size) : std::nullopt) {
    return {*value, 0, address.via};
  }
  if (const Term* word = address.known() ? settled_at(address.offset, size) : nullptr) {
    return *word;
  }
  const Term value = options_.memory ? load_shared(address, size) : terms_.leaf(size);
  if (!address.known() && options_.constants != nullptr) {
    const Terms::Node& node = terms_.node(address.node);
    const bool shifted = node.operation == Operation::kShiftLeft && node.b.known();
    if (node.most < kMostEntries || (shifted && node.a.offset == 0 && !node.a.known() &&
                                     terms_.node(node.a.node).most < kMostEntries)) {
      TableLoad& loaded = table_loads_.emplace_back();
      loaded.address = address;
      loaded.value = value;
      loaded.size = static_cast<uint8_t>(size);
    }
  }
  return value;
}

Term PathWalk::load_shared(Term address, unsigned size) {
  memory_.node = address.node;
  const auto place = static_cast<int64_t>(address.offset);
  const Word* word = memory_.get(place, size);
  if (word != nullptr && word->epoch == memory_epoch_) {
    Term value = terms_.resolve(word->value);
    value = size < word->size ? terms_.cut(value, size) : value;
    value.via = value.via | kViaMemory;
    return value;
  }
  Term leaf = terms_.leaf(size);
  leaf.via = kViaMemory;
  if (Word* kept = memory_.put(place, size, leaf)) {
    kept->epoch = memory_epoch_;
    last_writer_ = address.node == last_writer_ ? last_writer_ : kSeveral;
  }
  return leaf;
}

void PathWalk::memory_store(uint32_t node) {
  if (node != last_writer_) {
    ++memory_epoch_;
    last_writer_ = node;
  }
}

void PathWalk::store(Term address, unsigned size, Term value, bool pushed) {
  address = on_stack(address);
  if (is_own(address)) {
    frame_written(address, size);
    if (options_.memory) {
      memory_store(address.node);
    }
    stack_.store(address, size, terms_.cut(value, size), pushed);
    return;
  }
  leak(value);
  store_elsewhere(address, size);
  if (options_.memory) {
    memory_.node = address.node;
    if (Word* word =
            memory_.put(static_cast<int64_t>(address.offset), size, terms_.cut(value, size))) {
      word->epoch = memory_epoch_;
    }
  }
}

void PathWalk::store_unknown(Term address, uint64_t size) {
  address = on_stack(address);
  if (is_own(address)) {
    frame_written(address, size);
    stack_.store_unknown(address, size);
    if (options_.memory) {
      memory_store(address.node);
    }
    return;
  }
  store_elsewhere(address, size);
}

// Not at a known place of the stack.
void PathWalk::store_elsewhere(Term address, uint64_t size) {
  if (!address.known()) {
    const Terms::Node& node = terms_.node(address.node);
    const bool indexed = node.operation == Operation::kAdd;
    for (const Term base : {node.a, node.b}) {
      if (indexed && is_own(base)) {
        frame_written(base, ThreadStack::kEverything);
        const Term around = base.plus(address.offset);
        if (is_own(around)) {
          stack_.store_around(around);
        } else {
          stack_.forget_all();
        }
      }
    }
  }
  if (address.known() && !settled_.empty()) {
    forget_settled(address.offset, size);
  }
  if (!address.known() || (address.via & kViaFact) != 0) {
    stack_.store_anywhere();
    for (Interrupted& interrupted : interrupted_) {
      interrupted.intact = false;
    }
  }
  if (options_.memory) {
    memory_store(address.node);
    memory_.node = address.node;
    memory_.forget(static_cast<int64_t>(address.offset), std::min<uint64_t>(size, 4096));
    if (size > 4096) {
      memory_.words.clear();
    }
  }
}

void PathWalk::store_anywhere() {
  stack_.store_anywhere();
  ++memory_epoch_;
  last_writer_ = kSeveral;
  for (Interrupted& interrupted : interrupted_) {
    interrupted.intact = false;
  }
}

void PathWalk::touch(Term address, uint64_t size) {
  address = on_stack(address);
  if (is_own(address)) {
    stack_.leak_content(address, size);
  }
}

void PathWalk::leaked(Term term) {
  frame_written(term, 8);
  stack_.leak(term);
}

// The registers that a signal handler's return restores.
void PathWalk::frame_written(Term address, uint64_t size) {
  // The return address in front of them is the handler's.
  if (!interrupted_.empty() && address.node == interrupted_.back().frame &&
      static_cast<int64_t>(address.offset) > 8 - static_cast<int64_t>(size)) {
    interrupted_.back().intact = false;
  }
}

// The entry of a table of constants that was loaded tells its index, when no other entry is equal.
void PathWalk::look_up(TableLoad& load) {
  const Term value = terms_.settled(load.value);
  if (!value.known() || terms_.settled(load.address).known()) {
    return;
  }
  const Terms::Node& node = terms_.node(load.address.node);
  const bool shifted = node.operation == Operation::kShiftLeft && node.b.known();
  const Term index = shifted ? node.a : Term{0, load.address.node, 0};
  const uint64_t most = terms_.node(index.node).most;
  if (index.known() || index.offset != 0 || most >= kMostEntries || most >= load.searched) {
    return;
  }
  load.searched = most;
  const Table table{load.address.offset, value.offset, static_cast<uint32_t>(most), load.size,
                    static_cast<uint8_t>(shifted ? node.b.offset : 0)};
  if (const auto found = search(table)) {
    terms_.learn(index, *found, 8, kViaFact);
  }
}

// The only entry that has the value, if the others are known.
std::optional<uint64_t> PathWalk::search(const Table& table) {
  const uint64_t hash = (table.address ^ table.value * 0x9E3779B97F4A7C15ULL) >> 8;
  Searched& searched = searched_[hash % searched_.size()];
  if (searched.table == table) {
    return searched.found;
  }
  searched = {table, std::nullopt};
  std::optional<uint64_t> found;
  for (uint64_t i = 0; i <= table.most; ++i) {
    const auto entry = constant_at(table.address + (i << table.shift), table.size);
    if (!entry) {
      return std::nullopt;  // may hold anything
    }
    if (*entry == table.value) {
      if (found) {
        return std::nullopt;
      }
      found = i;
    }
  }
  searched.found = found;
  return found;
}

void PathWalk::solve() {
  while (terms_.news()) {
    terms_.solve();
    for (TableLoad& load : table_loads_) {
      look_up(load);
    }
    table_loads_.erase(
        std::remove_if(table_loads_.begin(), table_loads_.end(),
                       [&](const TableLoad& load) { return terms_.settled(load.address).known(); }),
        table_loads_.end());
  }
}

void PathWalk::forget_before(size_t node, std::vector<Place>& places,
                             std::vector<Repeats>& repeats) {
  table_loads_.erase(std::remove_if(table_loads_.begin(), table_loads_.end(),
                                    [&](const TableLoad& load) { return load.value.node < node; }),
                     table_loads_.end());
  terms_.forget_before(node, [&](auto apply) {
    for (size_t i = 0; i < x86::kRegisters; ++i) {
      apply(slots_[i]);
    }
    stack_.each_term(apply);
    for (auto& [address, word] : settled_) {
      apply(word);
    }
    for (Interrupted& interrupted : interrupted_) {
      for (Term& term : interrupted.registers) {
        apply(term);
      }
      interrupted.stack.each_term(apply);
      Term frame{0, interrupted.frame, 0};
      apply(frame);
      interrupted.frame = frame.node;
    }
    apply(tested_.a);
    apply(tested_.b);
    apply(target_);
    for (TableLoad& load : table_loads_) {
      apply(load.address);
      apply(load.value);
    }
    for (Place& place : places) {
      apply(place.address);
    }
    for (Repeats& repeat : repeats) {
      apply(repeat.count);
      apply(repeat.down);
    }
  });
  // The keys of the words are not terms.
  memory_.words.clear();
  last_writer_ = kSeveral;
}

}  // namespace tsomon::pt
