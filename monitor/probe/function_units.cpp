// Units from function names: option unit=PATTERN.
//
// At the start the functions of the executable whose name matches one of the patterns are looked up
// in its symbol table (symbol_table.h). Each call of such a function is a unit.
// Both compilers call __tsan_func_exit also when an exception leaves the function. After longjmp
// the units that were jumped over end when the thread next enters or leaves a function: their
// frames lie below its own. Missed: units nested in more than 4096 calls, functions that were
// inlined (mark them noinline), functions of shared libraries, and programs that run one thread on
// several stacks (alternate signal stacks; fibers that ThreadSanitizer's interface does not tell
// of).
#include "monitor/probe/function_units.h"

#include <cstdlib>
#include <cstring>

#include <elf.h>

#include "monitor/probe/chunk_writer.h"
#include "monitor/probe/noise.h"
#include "monitor/probe/symbol_table.h"

namespace tsomon::probe {
namespace {

struct Function {
  uint64_t begin;
  uint64_t end;
  uint32_t label;
};
Function* functions = nullptr;  // sorted by begin
size_t function_count = 0;

// Most calls are of functions that are no units. A bit for each 16 bytes of code from the first
// such function to the last says where to look closer.
constexpr int kGranuleBits = 4;
uint64_t* marked = nullptr;
uint64_t marked_begin = 0;
uint64_t marked_size = 0;  // in bytes of code; 0: there are no units
size_t function_room = 0;
bool functions_missing = false;  // there was no memory
bool pattern_found[Options::kMaxPatterns];

// The calls of this thread since the first function that is a unit, innermost last.
struct Call {
  uint64_t frame;  // where the stack stood
  uint32_t unit;   // of begin_unit(); 0: none
};
constexpr int kMaxDepth = kBlockSize / sizeof(Call);
static_assert(kMaxDepth == 4096);
__thread Call* calls;
__thread int depth;
__thread uint32_t deeper;  // calls that are nested still deeper, which are no units

void add(const NamedSymbol& symbol) {
  pattern_found[symbol.pattern] = true;
  if (function_count == function_room) {
    const size_t room = function_room != 0 ? 2 * function_room : 1024;
    auto* const more = static_cast<Function*>(take_memory(room * sizeof(Function)));
    if (more == nullptr) {
      functions_missing = true;
      return;
    }
    if (function_count != 0) {
      std::memcpy(more, functions, function_count * sizeof(Function));
    }
    functions = more;
    function_room = room;
  }
  functions[function_count++] = {symbol.address, symbol.address + symbol.size,
                                 label_id(symbol.plain, std::strlen(symbol.plain))};
}

int compare(const void* a, const void* b) {
  const auto* const left = static_cast<const Function*>(a);
  const auto* const right = static_cast<const Function*>(b);
  return left->begin < right->begin ? -1 : left->begin > right->begin ? 1 : 0;
}

bool mark_functions() {
  uint64_t end = 0;
  for (size_t i = 0; i < function_count; ++i) {
    end = functions[i].end > end ? functions[i].end : end;
  }
  marked_begin = functions[0].begin;
  // A return address can be one past the end.
  const uint64_t granules = ((end - marked_begin) >> kGranuleBits) + 1;
  marked = static_cast<uint64_t*>(take_memory((granules + 63) / 64 * sizeof(uint64_t)));
  if (marked == nullptr) {
    return false;
  }
  for (size_t i = 0; i < function_count; ++i) {
    for (uint64_t at = (functions[i].begin - marked_begin) >> kGranuleBits;
         at <= (functions[i].end - marked_begin) >> kGranuleBits; ++at) {
      marked[at / 64] |= uint64_t{1} << (at % 64);
    }
  }
  marked_size = granules << kGranuleBits;
  return true;
}

inline bool is_marked(uint64_t pc) {
  const uint64_t offset = pc - marked_begin;
  return offset < marked_size &&
         (marked[offset >> (kGranuleBits + 6)] >> (offset >> kGranuleBits) % 64 & 1) != 0;
}

const Function* find(uint64_t pc) {
  size_t low = 0;
  size_t high = function_count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (functions[middle].end < pc) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  // A return address can be one past the end; it is never the first byte.
  return low < function_count && functions[low].begin < pc ? &functions[low] : nullptr;
}

// The innermost call is over.
void leave(uint64_t pc) {
  --depth;
  if (calls[depth].unit != 0) {
    end_unit(calls[depth].unit, pc);
  }
}

void enter(uint64_t frame, const Function* function, uint64_t pc) {
  // Those whose frame is no longer there were left by longjmp.
  while (depth > 0 && calls[depth - 1].frame <= frame) {
    leave(pc);
    deeper = 0;
  }
  if (depth == kMaxDepth) {
    ++deeper;
    return;
  }
  Call& call = calls[depth++];
  call = {frame, 0};
  if (function != nullptr) {
    call.unit = begin_unit(function->label, pc);
    noise();
  }
}

// `frame`: where the stack stood at the call of the hook.
__attribute__((noinline)) void enter_function(uint64_t pc, uint64_t frame, bool candidate) {
  const Function* const function = candidate ? find(pc) : nullptr;
  if ((function == nullptr && depth == 0) || local.off) {
    return;
  }
  activate(pc);
  if (calls == nullptr) {
    calls = static_cast<Call*>(take_block());
    if (calls == nullptr) {
      return;
    }
  }
  enter(frame, function, pc);
}

}  // namespace

bool find_unit_functions(bool required) {
  if (options.units == 0) {
    return true;
  }
  find_symbols(STT_FUNC, options.unit, options.units, add);
  if (function_count == 0 && !functions_missing) {
    warn_of_no_match("unit", STT_FUNC, "function", options.unit[0],
                     options.units > 1 ? " or the other patterns" : "");
    return !required;
  }
  for (int i = 0; i < options.units; ++i) {
    if (!pattern_found[i]) {
      warn_of_no_match("unit", STT_FUNC, "function", options.unit[i],
                       i != 0 ? " and none of the patterns before it" : "");
    }
  }
  qsort(functions, function_count, sizeof(Function), compare);
  if (functions_missing || !mark_functions()) {
    warn("TSOMON_OPTIONS: unit: no memory");
    return false;
  }
  return true;
}

void exchange_calls(Thread* from, Thread* to) {
  from->calls = {calls, depth, deeper};
  calls = static_cast<Call*>(to->calls.block);
  depth = to->calls.depth;
  deeper = to->calls.deeper;
}

void leave_calls() {
  if (Call* const block = calls; block != nullptr) {
    depth = 0;
    deeper = 0;
    calls = nullptr;
    give_block(block);
  }
}

}  // namespace tsomon::probe

using namespace tsomon::probe;

TSOMON_HOOK void __tsan_func_entry(void*) {
  const bool candidate = is_marked(TSOMON_PC());
  if (TSOMON_LIKELY(!candidate && depth == 0)) {
    return;
  }
  enter_function(TSOMON_PC(), reinterpret_cast<uint64_t>(__builtin_dwarf_cfa()), candidate);
}

// Often the last call of a function, made by a jump: then it returns to the caller of the function
// that is left, and the return address does not tell which one that is.
TSOMON_HOOK void __tsan_func_exit(void*) {
  if (TSOMON_LIKELY(depth == 0)) {
    return;
  }
  if (deeper > 0) {
    --deeper;
    return;
  }
  // Where even the caller's frame is no longer there, longjmp has left the call.
  const auto frame = reinterpret_cast<uint64_t>(__builtin_dwarf_cfa());
  while (depth > 1 && calls[depth - 2].frame < frame) {
    leave(TSOMON_PC());
  }
  leave(TSOMON_PC());
}
