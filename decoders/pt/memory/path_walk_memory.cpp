// What PathWalk knows of memory: the stack, constants, and the rest where nobody else writes.
#include <algorithm>
#include <cstring>

#include "decoders/pt/memory/path_walk.h"

namespace tsomon::pt {
namespace {

using x86::Operation;
using x86::Register;

constexpr uint32_t kSeveral = ~uint32_t{0};

}  // namespace

SymbolicValue PathWalk::perhaps_on_stack(SymbolicValue address) const {
  constexpr int64_t kNear = int64_t{1} << 20;
  constexpr int64_t kRedZone = 128;
  const SymbolicValue stack = reg(Register::kRsp);
  const SymbolicValue now = terms_.settled(stack);
  const auto distance = static_cast<int64_t>(address.offset - now.offset);
  // A file's data may lie beside the stack, and below it any other memory.
  if (now.known() && distance >= -kRedZone && distance < kNear &&
      (options_.constants == nullptr ||
       !options_.constants->may_be_data(process_, address.offset, 1))) {
    return {stack.offset + static_cast<uint64_t>(distance), stack.node, address.via};
  }
  return address;
}

std::optional<uint64_t> PathWalk::constant_at(uint64_t address, unsigned size) {
  if (options_.constants == nullptr || size > 8) {
    return std::nullopt;
  }
  const uint64_t number = address / ReadOnlyData::kPage;
  Page& page = pages_[number % pages_.size()];
  if (page.number != number) {
    page = {number, options_.constants->page(process_, address)};
  }
  uint64_t value = 0;
  if (page.content.state == ReadOnlyData::Page::State::kNone) {
    return std::nullopt;
  }
  const uint64_t at = address % ReadOnlyData::kPage;
  const bool known = page.content.state == ReadOnlyData::Page::State::kSome &&
                     at >= page.content.begin && at + size <= page.content.end;
  if (known && at + sizeof value <= page.content.end) {
    std::memcpy(&value, page.content.bytes + (at - page.content.begin), sizeof value);
    value &= SymbolicValues::most_of(size);
  } else if (known) {
    std::memcpy(&value, page.content.bytes + (at - page.content.begin), size);
  } else if (!options_.constants->read(process_, address, reinterpret_cast<uint8_t*>(&value),
                                       size)) {
    return std::nullopt;
  }
  return value;
}

// After constant_at() has found nothing there.
const SymbolicValue* PathWalk::settled_at(uint64_t address, unsigned size) {
  if (options_.constants == nullptr || size != 8 ||
      !pages_[address / ReadOnlyData::kPage % pages_.size()].content.settled) {
    return nullptr;
  }
  auto word = settled_.find(address);
  if (word == settled_.end()) {
    if (!options_.constants->is_settled(process_, address, size) ||
        options_.constants->may_be_loader(process_, block_ip_)) {
      return nullptr;
    }
    // All files are known where there are proofs.
    const auto offset =
        globals_ ? options_.constants->thread_offset(process_, address) : std::nullopt;
    word =
        settled_.emplace(address, offset ? SymbolicValue{*offset, 0, kViaMemory} : terms_.leaf(8))
            .first;
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

// `address`: relative to the base of fs.
bool PathWalk::is_self_pointer(SymbolicValue address, unsigned size) const {
  constexpr uint64_t kSelfAt = 16;
  return address.offset - reg(Register::kFsBase).offset == kSelfAt && size == 8 &&
         options_.constants != nullptr && options_.constants->is_c_library(process_, block_ip_);
}

SymbolicValue PathWalk::load_found(SymbolicValue address, unsigned size) {
  address = on_stack(address);
  if (is_own(address)) {
    return load_own(address, size);
  }
  return address.known() ? load_known(address, size) : load_elsewhere(address, size);
}

SymbolicValue PathWalk::load_known(SymbolicValue address, unsigned size) {
  if (const auto value = constant_at(address.offset, size)) {
    return {*value, 0, address.via};
  }
  if (const SymbolicValue* word = settled_at(address.offset, size)) {
    return *word;
  }
  if (globals_ && globals_->keeps(address.offset, size)) {
    return load_global(address.offset, size);
  }
  return options_.memory ? load_shared(address, size) : terms_.leaf(size);
}

// Whether the address may be that of an entry of a table, and `value` its content.
void PathWalk::load_entry(SymbolicValue address, SymbolicValue value, unsigned size) {
  const SymbolicValues::Node& node = terms_.node(address.node);
  const bool shifted = node.operation == Operation::kShiftLeft && node.b.known();
  if (node.most < kMostEntries || (shifted && node.a.offset == 0 && !node.a.known() &&
                                   terms_.node(node.a.node).most < kMostEntries)) {
    TableLoad& loaded = table_loads_.emplace_back();
    loaded.address = address;
    loaded.value = value;
    loaded.size = static_cast<uint8_t>(size);
  }
}

SymbolicValue PathWalk::load_shared(SymbolicValue address, unsigned size) {
  memory_.node = address.node;
  const auto place = static_cast<int64_t>(address.offset);
  const SymbolicWord* word = memory_.get(place, size);
  if (word != nullptr && word->epoch == memory_epoch_) {
    SymbolicValue value = terms_.resolve(word->value);
    value = size < word->size ? terms_.cut(value, size) : value;
    value.via = value.via | kViaMemory;
    return value;
  }
  SymbolicValue leaf = terms_.leaf(size);
  leaf.via = kViaMemory;
  if (SymbolicWord* kept = memory_.put(place, size, leaf)) {
    kept->epoch = memory_epoch_;
    last_writer_ = address.node == last_writer_ ? last_writer_ : kSeveral;
  }
  return leaf;
}

SymbolicValue PathWalk::load_global(uint64_t address, unsigned size) {
  SymbolicValue value = terms_.leaf(size);
  if (const auto word = globals_->load(address, size, terms_)) {
    value = *word;
  } else {
    globals_->put(address, size, value);
  }
  value.via |= kViaMemory;
  return value;
}

void PathWalk::store_global(SymbolicValue address, unsigned size, SymbolicValue value) {
  if (address.known() && globals_->keeps(address.offset, size)) {
    globals_->put(address.offset, size, terms_.cut(value, size));
  }
}

// Somewhere that is not certainly the stack, by the thread.
void PathWalk::forget_global(SymbolicValue address, uint64_t size) {
  const bool own_block = !address.known() && address.node == reg(Register::kFsBase).node;
  if (own_block || into_stack(address)) {
    return;
  }
  if (const auto bounds = terms_.bounds(address)) {
    globals_->forget(bounds->first, bounds->second - bounds->first + size);
  } else {
    globals_->forget_any();
  }
}

void PathWalk::memory_store(uint32_t node) {
  if (node != last_writer_) {
    ++memory_epoch_;
    last_writer_ = node;
  }
}

void PathWalk::store_found(SymbolicValue address, unsigned size, SymbolicValue value, bool pushed) {
  address = on_stack(address);
  if (is_own(address)) {
    store_own(address, size, value, pushed);
    return;
  }
  store_outside(address, size, value);
}

void PathWalk::store_shared(SymbolicValue address, unsigned size, SymbolicValue value) {
  memory_.node = address.node;
  if (SymbolicWord* word =
          memory_.put(static_cast<int64_t>(address.offset), size, terms_.cut(value, size))) {
    word->epoch = memory_epoch_;
  }
}

void PathWalk::store_unknown(SymbolicValue address, uint64_t size) {
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

// Somewhere in what `base` points to, if that is the stack.
void PathWalk::store_indexed(SymbolicValue base, uint64_t offset) {
  if (is_own(base)) {
    frame_written(base, ThreadStack::kEverything);
    const SymbolicValue around = base.plus(offset);
    if (is_own(around)) {
      stack_.store_around(around);
    } else {
      stack_.forget_all();
    }
  }
}

// What may be a place of the stack.
void PathWalk::store_somewhere(SymbolicValue address) {
  const SymbolicValues::Node& node = terms_.node(address.node);
  if (node.operation == Operation::kAdd) {
    store_indexed(node.a, address.offset);
    store_indexed(node.b, address.offset);
  }
  stack_.store_anywhere();
  for (Interrupted& interrupted : interrupted_) {
    interrupted.intact = false;
  }
}

void PathWalk::forget_shared(SymbolicValue address, uint64_t size) {
  memory_store(address.node);
  memory_.node = address.node;
  memory_.forget(static_cast<int64_t>(address.offset), std::min<uint64_t>(size, 4096));
  if (size > 4096) {
    memory_.words.clear();
  }
}

// Somewhere, by the thread.
void PathWalk::store_anywhere() {
  if (globals_) {
    globals_->forget_any();
  }
  store_by_others();
}

// Somewhere, by the kernel or other code that the path does not show.
void PathWalk::store_by_others() {
  stack_.store_anywhere();
  ++memory_epoch_;
  last_writer_ = kSeveral;
  for (Interrupted& interrupted : interrupted_) {
    interrupted.intact = false;
  }
}

bool PathWalk::into_stack(SymbolicValue address) const {
  if (address.known()) {
    return false;
  }
  const SymbolicValues::Node& node = terms_.node(address.node);
  return node.operation == Operation::kAdd && node.result == 8 &&
         ((is_own(node.a) && is_index(node.b.plus(address.offset))) ||
          (is_own(node.b) && is_index(node.a.plus(address.offset))));
}

// Not the distance of two pointers, which leads from one object to another one: that has more bits.
bool PathWalk::is_index(SymbolicValue term, unsigned depth) const {
  constexpr unsigned kDeepest = 4;
  constexpr uint64_t kMost = uint64_t{1} << 35;  // of 32 bits, times 8
  term = terms_.settled(term);
  if (term.offset + kMost > 2 * kMost || depth > kDeepest) {
    return false;
  }
  if (term.known()) {
    return true;
  }
  const SymbolicValues::Node& node = terms_.node(term.node);
  const auto range = terms_.bounds({0, term.node, 0});
  if ((range && range->second <= kMost) ||
      (node.operation == Operation::kMoveSigned && node.size <= 4)) {
    return true;
  }
  const bool scaled =
      node.operation == Operation::kShiftLeft && node.b.known() && node.b.offset <= 3;
  const bool both = node.operation == Operation::kAdd || node.operation == Operation::kSub;
  return node.result == 8 && (scaled || both) && is_index(node.a, depth + 1) &&
         (scaled || is_index(node.b, depth + 1));
}

void PathWalk::touch(SymbolicValue address, uint64_t size) {
  address = on_stack(address);
  if (is_own(address)) {
    stack_.leak_content(address, size);
  }
}

void PathWalk::leaked(SymbolicValue term) {
  frame_written(term, 8);
  stack_.leak(term);
}

// The entry of a table of constants that was loaded tells its index, when no other entry is equal.
void PathWalk::look_up(TableLoad& load) {
  const SymbolicValue value = terms_.settled(load.value);
  if (!value.known() || terms_.settled(load.address).known()) {
    return;
  }
  const SymbolicValues::Node& node = terms_.node(load.address.node);
  const bool shifted = node.operation == Operation::kShiftLeft && node.b.known();
  const SymbolicValue index = shifted ? node.a : SymbolicValue{0, load.address.node, 0};
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

void PathWalk::forget_before(size_t node, std::span<Place> places, std::vector<Repeats>& repeats,
                             std::vector<Call>& calls) {
  table_loads_.erase(std::remove_if(table_loads_.begin(), table_loads_.end(),
                                    [&](const TableLoad& load) { return load.value.node < node; }),
                     table_loads_.end());
  terms_.forget_before(node, [&](auto apply) {
    for (size_t i = 0; i < x86::kRegisters; ++i) {
      apply(slots_[i]);
    }
    for (SymbolicValue& term : first_) {
      apply(term);
    }
    stack_.each_term(apply);
    for (auto& [address, word] : settled_) {
      apply(word);
    }
    for (Interrupted& interrupted : interrupted_) {
      for (SymbolicValue& term : interrupted.registers) {
        apply(term);
      }
      interrupted.stack.each_term(apply);
      SymbolicValue frame{0, interrupted.frame, 0};
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
    for (Call& call : calls) {
      apply(call.number);
      for (SymbolicValue& argument : call.arguments) {
        apply(argument);
      }
      if (call.creates) {
        for (SymbolicValue& passed_on : call.creates->registers) {
          apply(passed_on);
        }
        apply(call.creates->flags);
        apply(call.creates->thread_pointer);
      }
    }
    if (globals_) {
      globals_->each_term(apply);
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
