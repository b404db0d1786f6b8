#include "decoders/pt/values/system_calls.h"

#include <algorithm>
#include <iterator>

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include "decoders/pt/code/read_only_data.h"

namespace tsomon::pt {
namespace {

constexpr uint64_t kCloneVm = 0x100;
constexpr uint64_t kCloneThread = 0x10000;
constexpr uint64_t kCloneSetTls = 0x80000;
constexpr int kByArgument = -1;
constexpr int kPages = -2;  // likewise; all of the pages that it meets
constexpr uint64_t kCodePage = ReadOnlyData::kPage;
// The last call that Linux 6.10 has. Later ones may do anything; those with the bit of x32, too.
constexpr uint64_t kLastCall = 462;

// The kernel's structures.
constexpr int kStat = 144;
constexpr int kTime = 16;
constexpr int kAction = 32;
constexpr int kSignals = 8;

// Calls that write at most one object, which an argument points to.
struct Row {
  long number;
  int pointer = -1;  // position of the argument; -1: writes nothing
  int size = 0;      // bytes; kByArgument, kPages: as the argument `size_at` says
  int size_at = 0;
};
constexpr Row kRows[] = {
    {SYS_read, 1, kByArgument, 2},
    {SYS_write},
    {SYS_close},
    {SYS_fstat, 1, kStat},
    {SYS_lseek},
    {SYS_mprotect},
    {SYS_munmap, 0, kPages, 1},  // other contents may come there
    {SYS_brk},
    {SYS_rt_sigaction, 2, kAction},
    {SYS_rt_sigprocmask, 2, kSignals},
    {SYS_rt_sigreturn},
    {SYS_access},
    {SYS_sched_yield},
    {SYS_madvise, 0, kPages, 1},  // pages may be emptied
    {SYS_nanosleep, 1, kTime},
    {SYS_getpid},
    {SYS_exit},
    {SYS_kill},
    {SYS_getuid},
    {SYS_getppid},
    {SYS_gettid},
    {SYS_tkill},
    {SYS_clock_gettime, 1, kTime},
    {SYS_clock_nanosleep, 3, kTime},
    {SYS_exit_group},
    {SYS_tgkill},
    {SYS_openat},
    {SYS_newfstatat, 2, kStat},
    {SYS_set_robust_list},
    {SYS_getrandom, 0, kByArgument, 1},
};

const Row* row_of(uint64_t number) {
  const auto* const row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& each) {
    return static_cast<uint64_t>(each.number) == number;
  });
  return row == std::end(kRows) ? nullptr : row;
}

x86::ByteRange pages(uint64_t address, uint64_t size) {
  const uint64_t begin = address / kCodePage * kCodePage;
  const uint64_t more = size + (address - begin) + (kCodePage - 1);
  return {begin, more < size ? ~begin : more / kCodePage * kCodePage};
}

// Of a futex: only waits and wake-ups that write nothing.
bool only_waits(const SystemCall::Argument& operation) {
  if (!operation.value) {
    return false;
  }
  switch (*operation.value & 0x7F) {
    case FUTEX_WAIT:
    case FUTEX_WAKE:
    case FUTEX_WAIT_BITSET:
    case FUTEX_WAKE_BITSET:
      return true;
    default:
      return false;
  }
}

}  // namespace

KernelWrites written_by(const SystemCall& call) {
  KernelWrites anywhere;
  anywhere.anywhere = true;
  if (!call.number) {
    return anywhere;
  }
  if (*call.number == SYS_futex) {
    return only_waits(call.arguments[1]) ? KernelWrites{} : anywhere;
  }
  if (*call.number == SYS_mmap) {
    const auto& flags = call.arguments[3].value;
    return flags && (*flags & MAP_FIXED) == 0 ? KernelWrites{} : anywhere;
  }
  const Row* row = row_of(*call.number);
  if (row == nullptr) {
    return anywhere;
  }
  if (row->pointer < 0) {
    return {};
  }
  const SystemCall::Argument& pointer = call.arguments[static_cast<size_t>(row->pointer)];
  if (pointer.own) {
    return {};
  }
  const auto& count = call.arguments[static_cast<size_t>(row->size_at)].value;
  if (!pointer.value || (row->size < 0 && !count)) {
    return anywhere;
  }
  const uint64_t size = row->size < 0 ? *count : static_cast<uint64_t>(row->size);
  if (*pointer.value == 0 || size == 0) {
    return {};
  }
  return {
      false,
      {row->size == kPages ? pages(*pointer.value, size) : x86::ByteRange{*pointer.value, size}}};
}

KernelWrites remapped_by(const SystemCall& call) {
  KernelWrites anywhere;
  anywhere.anywhere = true;
  const auto& arguments = call.arguments;
  const auto there = [&]() -> KernelWrites {
    if (arguments[0].own) {
      return {};
    }
    if (!arguments[0].value || !arguments[1].value) {
      return anywhere;
    }
    return {false, {pages(*arguments[0].value, *arguments[1].value)}};
  };
  if (!call.number) {
    return anywhere;
  }
  switch (*call.number) {
    case SYS_munmap:
      return there();
    case SYS_mmap: {
      const auto& flags = arguments[3].value;
      const bool harmless = flags && ((*flags & MAP_FIXED) == 0 ||
                                      (*flags & (MAP_TYPE | MAP_ANONYMOUS)) == MAP_PRIVATE);
      return harmless ? KernelWrites{} : flags ? there() : anywhere;
    }
    case SYS_mremap: {
      const auto& flags = arguments[3].value;
      return flags && (*flags & MREMAP_FIXED) == 0 ? there() : anywhere;
    }
    case SYS_shmat: {
      const auto& flags = arguments[2].value;
      return flags && (*flags & SHM_REMAP) == 0 ? KernelWrites{} : anywhere;
    }
    case SYS_madvise: {
      const auto& advice = arguments[2].value;
      // The kernel looks at 32 bits.
      return advice && static_cast<uint32_t>(*advice) != MADV_FREE ? KernelWrites{} : there();
    }
    default:
      return {};
  }
}

Created created_by(const SystemCall& call) {
  if (!call.number) {
    return Created::kOther;
  }
  switch (*call.number) {
    case SYS_clone: {
      const auto& flags = call.arguments[0].value;
      if (!flags) {
        return Created::kPerhapsThread;
      }
      return (*flags & kCloneThread) != 0 ? Created::kPerhapsThread
             : (*flags & kCloneVm) != 0   ? Created::kOther
                                          : Created::kNobody;
    }
    case SYS_clone3:
      return Created::kPerhapsThread;  // its flags are in memory
    case SYS_vfork:
    case SYS_execve:
    case SYS_execveat:
      return Created::kOther;
    default:
      return *call.number > kLastCall ? Created::kOther : Created::kNobody;
  }
}

bool is_clone(uint64_t number) { return number == SYS_clone; }
bool is_clone3(uint64_t number) { return number == SYS_clone3; }
bool sets_thread_pointer(uint64_t flags) { return (flags & kCloneSetTls) != 0; }

bool ends_thread(const SystemCall& call) {
  constexpr uint64_t kNone = ~uint64_t{0};
  switch (call.number.value_or(kNone)) {
    case SYS_exit:
    case SYS_exit_group:
      return true;
    default:
      return false;
  }
}

}  // namespace tsomon::pt
