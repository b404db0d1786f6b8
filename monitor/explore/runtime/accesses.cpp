// The hooks of accesses. This file is compiled without the use of callee-saved registers, and the
// compiler's hooks jump here, so at the beginning of each function they hold what the program has.
#include "monitor/explore/runtime/plain.h"
#include "monitor/explore/runtime/state.h"
#include "monitor/explore/runtime/waits.h"
#include "monitor/probe/copy.h"

namespace tsomon::explore {
namespace {

constexpr int kRelaxed = 0;
constexpr int kRelease = 3;
constexpr int kSeqCst = 5;

#define TSOMON_STATE()                                             \
  State state;                                                     \
  asm volatile("movq %%rbx, %0" : "=m"(state.registers[0]));       \
  asm volatile("movq %%rbp, %0" : "=m"(state.registers[1]));       \
  asm volatile("movq %%r12, %0" : "=m"(state.registers[2]));       \
  asm volatile("movq %%r13, %0" : "=m"(state.registers[3]));       \
  asm volatile("movq %%r14, %0" : "=m"(state.registers[4]));       \
  asm volatile("movq %%r15, %0" : "=m"(state.registers[5]));       \
  state.stack = reinterpret_cast<uint64_t>(__builtin_dwarf_cfa()); \
  state.others = 0;                                                \
  const uint64_t pc = reinterpret_cast<uint64_t>(__builtin_return_address(0))

// Words and who has accessed them since there are several threads.
struct Owner {
  uint64_t word;  // 0: free
  uint32_t thread;
  bool written;
  bool several;
};
constexpr uint32_t kOwners = 1U << 18;
Owner* owners = nullptr;
uint32_t* owner_places = nullptr;  // those that are not free
uint32_t owner_count = 0;

// A word that nobody has told of: whether it turns out to be shared.
void note_owner(uint64_t word, bool write) {
  uint32_t at = static_cast<uint32_t>((word * 0x9E3779B97F4A7C15ULL) >> 40) & (kOwners - 1);
  while (owners[at].word != 0 && owners[at].word != word) {
    at = (at + 1) & (kOwners - 1);
  }
  Owner& owner = owners[at];
  if (owner.word == 0) {
    if (++owner_count > kOwners / 2) {
      end_run(End::kFailed, "more than a megabyte is accessed by explored threads");
    }
    owner_places[owner_count - 1] = at;
    owner = {word, this_thread(), write, false};
    return;
  }
  const bool was = owner.several && owner.written;
  owner.several = owner.several || owner.thread != this_thread();
  owner.written = owner.written || write;
  Channel& channel = *the_channel();
  const uint32_t found = at_most(channel.found_count, kMaxFound);
  if (!was && owner.several && owner.written && found < kMaxFound) {
    channel.found[found] = word;
    channel.found_count = found + 1;
  }
}

}  // namespace

bool is_shared(uint64_t address, uint32_t size, bool write, uint64_t pc) {
  check_alive(address, pc);
  const Channel& channel = *the_channel();
  bool shared = false;
  for (uint64_t word = word_of(address); word <= word_of(address + size - 1); ++word) {
    if (is_shared_word(channel, word)) {
      shared = true;
    } else {
      note_owner(word, write);
    }
  }
  return shared;
}

namespace {

template <typename T>
uint64_t address_of(const volatile T* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

// Atomics are operations whoever accesses them; others may access them plainly, too.
void note_atomic(uint64_t address, uint32_t size, bool write, uint64_t pc) {
  if (is_concurrent()) {
    is_shared(address, size, write, pc);
  }
}

template <typename T>
Operation operation_of(Op op, const volatile T* address, const State* state, uint64_t pc) {
  Operation operation;
  operation.op = op;
  operation.address = address_of(address);
  operation.size = sizeof(T);
  operation.pc = pc;
  operation.state = state;
  return operation;
}

}  // namespace

void take_owners() {
  owners = static_cast<Owner*>(take_zeroed(kOwners * sizeof(Owner)));
  owner_places = static_cast<uint32_t*>(take_zeroed(kOwners / 2 * sizeof(uint32_t)));
}

void forget_owners() {
  for (uint32_t i = 0; i < owner_count && i < kOwners / 2; ++i) {
    owners[owner_places[i]] = {};
  }
  owner_count = 0;
}

bool note_freed(uint64_t address, size_t size) {
  bool shared = false;
  for (uint64_t word = word_of(address); word <= word_of(address + (size == 0 ? 0 : size - 1));
       ++word) {
    if (is_shared_word(*the_channel(), word)) {
      shared = true;
    } else {
      note_owner(word, true);
    }
  }
  return shared;
}

void plain(bool write, const volatile void* pointer, uint32_t size, uint64_t) {
  TSOMON_STATE();
  const uint64_t address = address_of(pointer);
  if (!is_concurrent()) {
    return;
  }
  if (!write) {
    announce_load(address, size, &state, pc);
  } else if (!announce_store(address, size, pc) && !on_stack(address, state.stack)) {
    had_effect();
  }
}

uint64_t end_of_part(uint64_t address) {
  const uint64_t word = word_of(address);
  const Channel& channel = *the_channel();
  for (uint32_t i = 0, count = at_most(channel.split_count, kMaxSplit); i < count; ++i) {
    if (channel.split[i].word == word) {
      for (uint64_t at = address + 1; word_of(at) == word; ++at) {
        if (((channel.split[i].starts >> (at & 7)) & 1) != 0) {
          return at;
        }
      }
    }
  }
  return (word + 1) << 3;
}

// The program's own instructions follow: of very many bytes only one step can be made.
bool range(bool write, const volatile void* pointer, size_t size, uint64_t pc) {
  const uint64_t address = address_of(pointer);
  if (!is_concurrent() || size == 0) {
    return false;
  }
  if (size <= kMostPlain) {
    had_effect();
    if (write) {
      announce_store(address, static_cast<uint32_t>(size), pc);
    } else {
      announce_load(address, static_cast<uint32_t>(size), nullptr, pc);
    }
    return false;
  }
  uint32_t shared = 0;
  uint64_t begin = 0;
  for (uint64_t at = address; at < address + size; at = (word_of(at) + 1) << 3) {
    const uint64_t end = (word_of(at) + 1) << 3;
    const auto part = static_cast<uint32_t>((end < address + size ? end : address + size) - at);
    if (is_shared(at, part, write)) {
      begin = shared == 0 ? at : begin;
      ++shared;
    }
  }
  had_effect();
  if (shared == 0) {
    return false;
  }
  if (shared > 1) {
    note_unsaid();
  }
  const uint64_t end = end_of_part(begin);
  const uint64_t part = (end < address + size ? end : address + size) - begin;
  if (write) {
    announce_store(begin, static_cast<uint32_t>(part), pc);
  } else {
    Operation operation;
    operation.divisible = true;
    operation.address = begin;
    operation.size = static_cast<uint8_t>(part);
    operation.pc = pc;
    step(operation);
  }
  return true;
}

namespace {

// One step for every shared word, or for its parts, or for what of it is accessed.
void load_bytes(char* to, const void* from, size_t size, uint64_t pc) {
  const uint64_t address = address_of(static_cast<const char*>(from));
  for (uint64_t at = address; at < address + size;) {
    const uint64_t part_end = end_of_part(at);
    const auto part =
        static_cast<uint8_t>((part_end < address + size ? part_end : address + size) - at);
    char* const target = to + (at - address);
    if (is_shared(at, part, false)) {
      Operation operation;
      operation.divisible = true;
      operation.address = at;
      operation.size = part;
      operation.pc = pc;
      const Value value = step(operation).read;
      probe::copy(target, &value, part);
    } else {
      probe::copy(target, reinterpret_cast<const void*>(at), part);
    }
    at += part;
  }
}

// What is in the frames of the program is part of its state, and no effect on others.
void store_bytes(void* to, const char* from, size_t size, uint64_t pc) {
  const uint64_t address = address_of(static_cast<char*>(to));
  const auto frame = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  bool changes = false;
  for (uint64_t at = address; at < address + size;) {
    const uint64_t part_end = end_of_part(at);
    const auto part =
        static_cast<uint8_t>((part_end < address + size ? part_end : address + size) - at);
    const char* const source = from + (at - address);
    if (is_shared(at, part, true)) {
      Operation operation;
      operation.op = Op::kStore;
      operation.divisible = true;
      operation.address = at;
      operation.size = part;
      operation.pc = pc;
      probe::copy(&operation.a, source, part);
      step(operation);
    } else {
      probe::copy(reinterpret_cast<void*>(at), source, part);
      changes = changes || !on_stack(at, frame);
    }
    at += part;
  }
  if (changes) {
    had_effect();
  }
}

}  // namespace

void load_copy(void* to, const void* from, size_t size, uint64_t pc) {
  load_bytes(static_cast<char*>(to), from, size, pc);
}

bool copy(void* to, const void* from, size_t size, uint64_t pc) {
  if (!is_concurrent() || size == 0 || size > (size_t{1} << 20)) {
    if (size > (size_t{1} << 20) && is_concurrent()) {
      note_unsaid();
    }
    return false;
  }
  char small[256];
  char* const between = size <= sizeof small ? small : static_cast<char*>(allocate(size, 16));
  if (between == nullptr) {
    return false;
  }
  load_bytes(between, from, size, pc);
  store_bytes(to, between, size, pc);
  return true;
}

bool fill(void* to, int value, size_t size, uint64_t pc) {
  if (!is_concurrent() || size == 0) {
    return false;
  }
  char part[256];
  for (size_t i = 0; i < sizeof part; ++i) {
    part[i] = static_cast<char>(value);
  }
  for (size_t at = 0; at < size; at += sizeof part) {
    store_bytes(static_cast<char*>(to) + at, part,
                size - at < sizeof part ? size - at : sizeof part, pc);
  }
  return true;
}

namespace {

template <typename T>
inline __attribute__((always_inline)) T load_at(const volatile T* address, const State& state,
                                                uint64_t pc) {
  note_atomic(address_of(address), sizeof(T), false, pc);
  if (sizeof(T) == 16) {  // lock cmpxchg16b
    return static_cast<T>(step(operation_of(Op::kAdd, address, &state, pc)).read);
  }
  const Value value = step(operation_of(Op::kLoad, address, &state, pc)).read;
  if (is_concurrent()) {
    check_alive(address_of(address), pc);
    check_written(address_of(address), sizeof(T), value, pc);
  }
  return static_cast<T>(value);
}

template <typename T>
inline __attribute__((always_inline)) void store_at(volatile T* address, T value, int order,
                                                    const State& state, uint64_t pc) {
  note_atomic(address_of(address), sizeof(T), true, pc);
  const bool locked = sizeof(T) == 16 || (order != kRelaxed && order != kRelease);
  Operation operation =
      operation_of(locked ? Op::kExchange : Op::kStore, address, locked ? &state : nullptr, pc);
  operation.a = static_cast<Value>(value);
  step(operation);
  check_alive(address_of(address), pc);
}

template <typename T>
inline __attribute__((always_inline)) T modify_at(volatile T* address, T value, Op op,
                                                  const State& state, uint64_t pc) {
  note_atomic(address_of(address), sizeof(T), true, pc);
  Operation operation = operation_of(op, address, &state, pc);
  operation.a = static_cast<Value>(value);
  const Value before = step(operation).read;
  check_alive(address_of(address), pc);
  return static_cast<T>(before);
}

// What is on the stack is part of the thread's state, by which loops are recognised.
bool is_own(const void* what, const State& state) {
  return !is_concurrent() || on_stack(address_of(static_cast<const char*>(what)), state.stack);
}

template <typename T>
T take_argument(const void* from, const State& state, uint64_t pc) {
  T value{};
  if (is_own(from, state)) {
    probe::copy(&value, from, sizeof value);
  } else {
    load_bytes(reinterpret_cast<char*>(&value), from, sizeof value, pc);
  }
  return value;
}

template <typename T>
void give_result(void* to, T value, const State& state, uint64_t pc) {
  if (is_own(to, state)) {
    probe::copy(to, &value, sizeof value);
  } else {
    store_bytes(to, reinterpret_cast<const char*>(&value), sizeof value, pc);
  }
}

template <typename T>
inline __attribute__((always_inline)) int compare_exchange_at(volatile T* address, void* expected,
                                                              T desired, const State& state,
                                                              uint64_t pc) {
  note_atomic(address_of(address), sizeof(T), true, pc);
  Operation operation = operation_of(Op::kCompareExchange, address, &state, pc);
  const T wanted = take_argument<T>(expected, state, pc);
  if (sizeof(T) >= sizeof(uint64_t) && is_concurrent() &&
      was_freed(static_cast<uint64_t>(wanted))) {
    ++the_channel()->freed_compared;
  }
  operation.a = static_cast<Value>(wanted);
  operation.b = static_cast<Value>(desired);
  const T seen = static_cast<T>(step(operation).read);
  check_alive(address_of(address), pc);
  if (seen != wanted) {
    give_result(expected, seen, state, pc);
  }
  return seen == wanted ? 1 : 0;
}

}  // namespace

template <typename T>
T load(const volatile T* address, int) {
  TSOMON_STATE();
  return load_at(address, state, pc);
}

template <typename T>
void store(volatile T* address, T value, int order) {
  TSOMON_STATE();
  store_at(address, value, order, state, pc);
}

template <typename T>
T modify(volatile T* address, T value, Op op) {
  TSOMON_STATE();
  return modify_at(address, value, op, state, pc);
}

template <typename T>
int compare_exchange(volatile T* address, T* expected, T desired) {
  TSOMON_STATE();
  return compare_exchange_at(address, expected, desired, state, pc);
}

template <typename T>
void load_object(const volatile void* object, void* to) {
  TSOMON_STATE();
  give_result(to, load_at(static_cast<const volatile T*>(object), state, pc), state, pc);
}

template <typename T>
void store_object(volatile void* object, const void* from, int order) {
  TSOMON_STATE();
  const T value = take_argument<T>(from, state, pc);
  store_at(static_cast<volatile T*>(object), value, order, state, pc);
}

template <typename T>
void exchange_object(volatile void* object, const void* from, void* to) {
  TSOMON_STATE();
  const T value = take_argument<T>(from, state, pc);
  give_result(to, modify_at(static_cast<volatile T*>(object), value, Op::kExchange, state, pc),
              state, pc);
}

template <typename T>
bool compare_exchange_object(volatile void* object, void* expected, const void* from) {
  TSOMON_STATE();
  const T value = take_argument<T>(from, state, pc);
  return compare_exchange_at(static_cast<volatile T*>(object), expected, value, state, pc) != 0;
}

void fence(int order) {
  TSOMON_STATE();
  if (order != kSeqCst || !is_concurrent()) {
    return;
  }
  Operation operation;
  operation.op = Op::kFence;
  operation.pc = pc;
  operation.state = &state;
  step(operation);
}

int condition_wait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until,
                   uint64_t place) {
  TSOMON_STATE();
  static_cast<void>(pc);
  return wait_for_signal(condition, mutex, until, &state, place);
}

int take_until(Op op, void* object, const timespec* until, uint64_t place) {
  TSOMON_STATE();
  static_cast<void>(pc);
  return take_in_time(op, object, until, &state, place);
}

Value assembly(const Operation& operation, uint64_t stack) {
  if (operation.op == Op::kFence || !is_concurrent()) {
    return operation.op == Op::kFence && !is_concurrent() ? 0 : step(operation).read;
  }
  const bool write = operation.op != Op::kLoad;
  const bool shared = is_shared(operation.address, operation.size, write, operation.pc);
  // What is stored to the own stack, and is nobody else's, is part of the thread's state. (Loads may wait for somebody.)
  if (operation.op == Op::kStore && !shared && on_stack(operation.address, stack)) {
    put(operation.address, operation.size, operation.a);
    return 0;
  }
  const Value value = step(operation).read;
  check_alive(operation.address, operation.pc);
  if (!write) {
    check_written(operation.address, operation.size, value, operation.pc);
  }
  return value;
}

// NOLINTBEGIN(bugprone-macro-parentheses): T is a type
#define TSOMON_ATOMICS(T)                                               \
  template T load<T>(const volatile T*, int);                           \
  template void store<T>(volatile T*, T, int);                          \
  template T modify<T>(volatile T*, T, Op);                             \
  template int compare_exchange<T>(volatile T*, T*, T);                 \
  template void load_object<T>(const volatile void*, void*);            \
  template void store_object<T>(volatile void*, const void*, int);      \
  template void exchange_object<T>(volatile void*, const void*, void*); \
  template bool compare_exchange_object<T>(volatile void*, void*, const void*);
// NOLINTEND(bugprone-macro-parentheses)
TSOMON_ATOMICS(uint8_t)
TSOMON_ATOMICS(uint16_t)
TSOMON_ATOMICS(uint32_t)
TSOMON_ATOMICS(uint64_t)
TSOMON_ATOMICS(unsigned __int128)

}  // namespace tsomon::explore
