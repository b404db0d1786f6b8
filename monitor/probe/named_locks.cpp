#include "monitor/probe/named_locks.h"

#include <cstdlib>
#include <cstring>

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#include "monitor/probe/chunk_writer.h"
#include "monitor/probe/lock_name.h"
#include "monitor/probe/runtime.h"
#include "monitor/probe/slices.h"
#include "monitor/probe/symbol_table.h"

extern "C" void tsomon_enter_lock_function();

namespace tsomon::probe {
namespace {

constexpr size_t kMost = 1024;
constexpr uint64_t kSpace = 5;  // of a call

struct LockFunction {
  uint64_t body = 0;  // behind the call that is written at its beginning
  LockName name;
};
constinit LockFunction functions[kMost]{};  // before constructors run
size_t function_count = 0;

const char* patterns[2 * Options::kMaxPatterns];
bool is_release[2 * Options::kMaxPatterns];  // of a pair
bool is_acquire[2 * Options::kMaxPatterns];
bool found[2 * Options::kMaxPatterns];
int pattern_count = 0;

// The calls of lock functions that the thread is in. What it had is put back when it leaves the
// outermost one.
struct Inside {
  uint32_t depth;
  uint64_t frame;  // of the outermost
  uint64_t lock;
  Thread* thread;
  Context* context;
};
__thread Inside inside;

constexpr unsigned char kBranchTarget[] = {0xf3, 0x0f, 0x1e, 0xfa};

// A plain function with a twin (assembler/twins.h).
bool begins_with_entry(uint64_t function) {
  const auto* at = reinterpret_cast<const unsigned char*>(function);
  if (std::memcmp(at, kBranchTarget, sizeof kBranchTarget) == 0) {
    at += sizeof kBranchTarget;
  }
  return *at == 0xa9 || *at == 0xe9;
}

bool write_call(uint64_t entry) {
  static const unsigned char kNothing[][kSpace] = {{0x90, 0x90, 0x90, 0x90, 0x90},
                                                   {0x0f, 0x1f, 0x44, 0x00, 0x08},
                                                   {0x0f, 0x1f, 0x44, 0x00, 0x00}};
  auto* at = reinterpret_cast<unsigned char*>(entry);
  if (std::memcmp(at, kBranchTarget, sizeof kBranchTarget) == 0) {
    at += sizeof kBranchTarget;
  }
  bool room = false;
  for (const auto& nothing : kNothing) {
    room = room || std::memcmp(at, nothing, kSpace) == 0;
  }
  const auto from = reinterpret_cast<uint64_t>(at) + kSpace;
  const auto distance =
      static_cast<int64_t>(reinterpret_cast<uint64_t>(&tsomon_enter_lock_function) - from);
  if (!room || distance != static_cast<int32_t>(distance) || function_count == kMost) {
    return false;
  }
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t begin = reinterpret_cast<uint64_t>(at) & ~(page - 1);
  void* const pages = reinterpret_cast<void*>(begin);
  const size_t size = from - begin;
  if (mprotect(pages, size, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
    return false;
  }
  const auto relative = static_cast<int32_t>(distance);
  at[0] = 0xe8;
  std::memcpy(at + 1, &relative, sizeof relative);
  mprotect(pages, size, PROT_READ | PROT_EXEC);
  functions[function_count++].body = from;
  return true;
}

void add(const NamedSymbol& symbol) {
  const char* const dot = std::strchr(symbol.name + 1, '.');
  if (dot != nullptr &&
      (std::strstr(dot, ".cold") != nullptr || std::strstr(dot, ".part") != nullptr)) {
    return;  // it is entered through another one
  }
  if (dot != nullptr &&
      (std::strstr(dot, ".constprop") != nullptr || std::strstr(dot, ".isra") != nullptr)) {
    warn(
        "TSOMON_OPTIONS: lock: the compiler has made %s a copy that may lack the first argument; "
        "mark it __attribute__((noipa)). Its accesses are recorded, not a lock",
        symbol.plain);
    found[symbol.pattern] = true;
    return;
  }
  if (std::strncmp(symbol.name, "pthread_", 8) == 0) {
    return;  // the runtime's, which are recorded anyway
  }
  if (dot == nullptr && begins_with_entry(symbol.address)) {
    return;  // its twin is what is recorded
  }
  if (!write_call(symbol.address)) {
    warn(
        "TSOMON_OPTIONS: lock: %s has no room for a call where it begins; compile it with "
        "tsomon-c++ or tsomon-cc. Its accesses are recorded, not a lock",
        symbol.plain);
    found[symbol.pattern] = true;
    return;
  }
  found[symbol.pattern] = true;
  LockName name = lock_name(symbol.plain);
  if (is_release[symbol.pattern] || is_acquire[symbol.pattern]) {
    name.releases = is_release[symbol.pattern];
    name.tries = name.tries && !name.releases;
  }
  functions[function_count - 1].name = name;
}

int compare(const void* a, const void* b) {
  const auto* const left = static_cast<const LockFunction*>(a);
  const auto* const right = static_cast<const LockFunction*>(b);
  return left->body < right->body ? -1 : left->body > right->body ? 1 : 0;
}

const LockFunction* function_of(uint64_t body) {
  size_t low = 0;
  size_t high = function_count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (functions[middle].body < body) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < function_count && functions[low].body == body ? &functions[low] : nullptr;
}

void go_on_recording() {
  if (controlled) {
    local.off = false;
  }
  local.thread = inside.thread;
  local.context = inside.context;
  inside.depth = 0;
}

void release_now(uint64_t lock, bool shared, uint64_t pc) {
  const uint64_t now =
      put_point_now(shared ? RecordType::kReleaseShared : RecordType::kRelease, lock, pc);
  if (now != 0) {
    leave_stamp(lock, now, shared);
  }
}

}  // namespace

bool find_lock_functions(bool required) {
  if (options.locks == 0) {
    return true;
  }
  for (int i = 0; i < options.locks; ++i) {
    const char* const slash = std::strchr(options.lock[i], '/');
    patterns[pattern_count] = options.lock[i];
    if (slash != nullptr) {
      *const_cast<char*>(slash) = '\0';  // in Options::text
      is_acquire[pattern_count++] = true;
      is_release[pattern_count] = true;
      patterns[pattern_count] = slash + 1;
    }
    ++pattern_count;
  }
  find_symbols(STT_FUNC, patterns, pattern_count, add);
  bool any = false;
  for (int i = 0; i < pattern_count; ++i) {
    any = any || found[i];
  }
  for (int i = 0; i < pattern_count; ++i) {
    if (!found[i]) {
      warn_of_no_match("lock", STT_FUNC, "function", patterns[i],
                       i != 0 || any ? " and none of the patterns before it" : "");
    }
  }
  qsort(functions, function_count, sizeof(LockFunction), compare);
  return any || !required;
}

}  // namespace tsomon::probe

using namespace tsomon::probe;

#define TSOMON_FROM_CALL extern "C" __attribute__((visibility("hidden"), used))

// `frame`: where the return address of the call lies.
TSOMON_FROM_CALL void tsomon_lock_function_begins(uint64_t body, uint64_t lock,
                                                  const uint64_t* frame) {
  const auto place = reinterpret_cast<uint64_t>(frame);
  if (inside.depth != 0 && inside.frame <= place) {
    go_on_recording();  // longjmp has left the call
  }
  if (inside.depth != 0) {
    ++inside.depth;
    return;
  }
  const LockFunction* const function = function_of(body);
  if (local.thread == nullptr || function == nullptr) {
    return;
  }
  if (function->name.releases) {
    release_now(lock, function->name.shared, *frame);
  }
  inside = {1, place, lock, local.thread, local.context};
  local.thread = nullptr;
  local.context = &inactive;
  local.off = controlled;  // what the function does joins no slice
}

TSOMON_FROM_CALL void tsomon_lock_function_ends(uint64_t body, uint64_t result,
                                                const uint64_t* frame) {
  if (inside.depth == 0) {
    return;
  }
  if (--inside.depth != 0) {
    return;
  }
  go_on_recording();
  const LockFunction* const function = function_of(body);
  if (function == nullptr || function->name.releases ||
      (function->name.tries && (result & 0xFF) == 0)) {
    return;
  }
  __builtin_ia32_mfence();
  if (function->name.tries) {
    put_point_now(RecordType::kTry, inside.lock, *frame);
  }
  put_point_after(function->name.shared ? RecordType::kAcquireShared : RecordType::kAcquire,
                  inside.lock, *frame, last_stamp(inside.lock));
}

// An exception, or the end of the thread, passes the call.
TSOMON_FROM_CALL _Unwind_Reason_Code tsomon_lock_function_left(int, _Unwind_Action actions,
                                                               _Unwind_Exception_Class,
                                                               _Unwind_Exception*,
                                                               _Unwind_Context*) {
  if ((actions & _UA_CLEANUP_PHASE) != 0 && inside.depth != 0 && --inside.depth == 0) {
    go_on_recording();
  }
  return _URC_CONTINUE_UNWIND;
}

// Called where a function begins, with its body as the return address and the caller's above that.
// Calls the body with the same registers and the next 128 bytes of the stack.
asm(R"(
  .text
  .p2align 4
  .globl tsomon_enter_lock_function
  .hidden tsomon_enter_lock_function
  .type tsomon_enter_lock_function, @function
tsomon_enter_lock_function:
  .cfi_startproc
  .cfi_personality 0x1b, tsomon_lock_function_left
  .cfi_def_cfa 7, 16
  pushq %rbp
  .cfi_def_cfa_offset 24
  .cfi_offset 6, -24
  movq %rsp, %rbp
  .cfi_def_cfa_register 6
  subq $200, %rsp
  movq %rdi, (%rsp)
  movq %rsi, 8(%rsp)
  movq %rdx, 16(%rsp)
  movq %rcx, 24(%rsp)
  movq %r8, 32(%rsp)
  movq %r9, 40(%rsp)
  movq %rax, 48(%rsp)
  movq %r10, 56(%rsp)
  movups %xmm0, 64(%rsp)
  movups %xmm1, 80(%rsp)
  movups %xmm2, 96(%rsp)
  movups %xmm3, 112(%rsp)
  movups %xmm4, 128(%rsp)
  movups %xmm5, 144(%rsp)
  movups %xmm6, 160(%rsp)
  movups %xmm7, 176(%rsp)
  movq %rdi, %rsi
  movq 8(%rbp), %rdi
  leaq 16(%rbp), %rdx
  call tsomon_lock_function_begins
  movq (%rsp), %rdi
  movq 8(%rsp), %rsi
  movq 16(%rsp), %rdx
  movq 24(%rsp), %rcx
  movq 32(%rsp), %r8
  movq 40(%rsp), %r9
  movq 48(%rsp), %rax
  movq 56(%rsp), %r10
  movups 64(%rsp), %xmm0
  movups 80(%rsp), %xmm1
  movups 96(%rsp), %xmm2
  movups 112(%rsp), %xmm3
  movups 128(%rsp), %xmm4
  movups 144(%rsp), %xmm5
  movups 160(%rsp), %xmm6
  movups 176(%rsp), %xmm7
  subq $128, %rsp
  .set offset, 0
  .rept 8
  movups offset+24(%rbp), %xmm15
  movups %xmm15, offset(%rsp)
  .set offset, offset+16
  .endr
  call *8(%rbp)
  addq $128, %rsp
  movq %rax, (%rsp)
  movq %rdx, 8(%rsp)
  movups %xmm0, 64(%rsp)
  movups %xmm1, 80(%rsp)
  movq 8(%rbp), %rdi
  movq %rax, %rsi
  leaq 16(%rbp), %rdx
  call tsomon_lock_function_ends
  movq (%rsp), %rax
  movq 8(%rsp), %rdx
  movups 64(%rsp), %xmm0
  movups 80(%rsp), %xmm1
  leave
  .cfi_def_cfa 7, 16
  leaq 8(%rsp), %rsp
  .cfi_def_cfa_offset 8
  ret
  .cfi_endproc
  .size tsomon_enter_lock_function, .-tsomon_enter_lock_function
)");
