#include "monitor/explore/runtime/system_calls.h"

#include <cerrno>
#include <csignal>

#include <asm/ioctls.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include "decoders/capture/kernel_calls.h"
#include "monitor/explore/runtime/in_place.h"
#include "monitor/explore/runtime/kernel.h"
#include "monitor/explore/runtime/memory_image.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_ON 1
#define PR_SYS_DISPATCH_OFF 0
#endif

extern "C" void* __libc_stack_end;

namespace tsomon::explore::in_place {
namespace {

constexpr int kSignals[] = {SIGSYS, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
constexpr uint64_t kHandlerStack = uint64_t{1} << 16;
constexpr uint64_t kFirstStack = uint64_t{1} << 20;
constexpr uint64_t kFlagRestorer = 0x04000000;
constexpr int kUserDispatch = 2;  // SYS_USER_DISPATCH

struct KernelAction {
  void (*handler)(int, siginfo_t*, void*);
  uint64_t flags;
  void (*restorer)();
  uint64_t mask;
};

struct Watch {
  volatile char selector;  // 1: system calls of the program come here
  bool output_is_lost;     // standard output goes to /dev/null
  uint64_t stack_low;      // of the first thread: what was grown
  uint64_t stack_lowest;   // that it may grow to
  alignas(64) uint8_t handler_stack[kHandlerStack];
};

Watch* watch = nullptr;
void* memory = nullptr;

bool is_null_device(int file) {
  struct stat now {};
  return kernel::fstat(file, &now) == 0 && S_ISCHR(now.st_mode) && now.st_rdev == makedev(1, 3);
}

// "system call N"
[[noreturn]] void give_up_at(long number) {
  char why[64] = "system call ";
  size_t at = 12;
  char digits[20];
  size_t count = 0;
  do {
    digits[count++] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number > 0 && count < sizeof digits);
  while (count != 0) {
    why[at++] = digits[--count];
  }
  why[at] = 0;
  give_up(why);
}

long size_of_vectors(const iovec* vectors, long count) {
  long size = 0;
  for (long i = 0; i < count; ++i) {
    size += static_cast<long>(vectors[i].iov_len);
  }
  return size;
}

// What changes nothing that the program, or anybody, could notice later.
long harmless(long number, const greg_t* registers) {
  const long a = registers[REG_RDI];
  const long b = registers[REG_RSI];
  const long c = registers[REG_RDX];
  const long d = registers[REG_R10];
  const auto answer = [](long address, uint64_t size) {
    return image::let_write(static_cast<uint64_t>(address), size);
  };
  switch (number) {
    case SYS_write:
    case SYS_writev:
      if (a == STDERR_FILENO) {
        channel->wrote_errors.store(1, std::memory_order_relaxed);
        return kernel_call(number, a, b, c);
      }
      if (a == STDOUT_FILENO && watch->output_is_lost) {
        return number == SYS_write ? c : size_of_vectors(reinterpret_cast<const iovec*>(b), c);
      }
      break;
    case SYS_newfstatat:
      if (a >= 0 && a <= 2 && *reinterpret_cast<const char*>(b) == 0 &&
          answer(c, sizeof(struct stat))) {
        return kernel_call(number, a, b, c, d);
      }
      break;
    case SYS_fstat:
      if (a >= 0 && a <= 2 && answer(b, sizeof(struct stat))) {
        return kernel_call(number, a, b);
      }
      break;
    case SYS_ioctl:
      if (a >= 0 && a <= 2 && b == TCGETS && answer(c, 64)) {
        return kernel_call(number, a, b, c);
      }
      break;
    case SYS_futex:
      if ((b & FUTEX_CMD_MASK) == FUTEX_WAKE) {
        return 0;  // nobody sleeps
      }
      break;
    case SYS_sched_yield:
      return 0;
    default:
      break;
  }
  give_up_at(number);
}

// Ends the process where it is not the program's doing.
void end_by_default(int number) {
  KernelAction none{};
  kernel_call(SYS_rt_sigaction, number, &none, 0, sizeof none.mask);
}

void on_signal(int number, siginfo_t* about, void* context) {
  greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  if (number == SIGSYS && about->si_code == kUserDispatch) {
    registers[REG_RAX] = harmless(about->si_syscall, registers);
    return;
  }
  const auto address = reinterpret_cast<uint64_t>(about->si_addr);
  if (number == SIGSEGV && about->si_code == SEGV_ACCERR && image::note_write(address)) {
    return;
  }
  if (watch->selector == 0) {
    return end_by_default(number);
  }
  if (number == SIGSEGV && about->si_code == SEGV_ACCERR && image::is_in(address)) {
    give_up("it writes to too much memory");
  }
  if (number == SIGSEGV && address >= watch->stack_lowest && address < watch->stack_low) {
    give_up("the first thread's stack is deep");
  }
  end_by_signal(number);
}

}  // namespace

const char* why_not_watched() {
  uint64_t blocked = 0;
  kernel_call(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &blocked, sizeof blocked);
  for (const int number : kSignals) {
    if (((blocked >> (number - 1)) & 1) != 0) {
      return "it blocks signals";
    }
  }
  for (int number = 1; number < 32; ++number) {
    KernelAction now{};
    kernel_call(SYS_rt_sigaction, number, 0, &now, sizeof now.mask);
    if (reinterpret_cast<uint64_t>(now.handler) > 1) {
      return "it handles signals";
    }
  }
  if (kernel_call(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF) != 0) {
    return "the kernel is older than Linux 5.11";
  }
  return nullptr;
}

void take_system_calls() {
  watch = static_cast<Watch*>(take_zeroed(sizeof(Watch)));
  memory = take_zeroed(image::memory_size());
}

void* image_memory() { return memory; }

void grow_first_stack() {
  rlimit limit{};
  getrlimit(RLIMIT_STACK, &limit);
  const uint64_t most = limit.rlim_cur > (uint64_t{1} << 30) ? uint64_t{1} << 30 : limit.rlim_cur;
  const auto top = reinterpret_cast<uint64_t>(__libc_stack_end);
  const auto here = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  watch->stack_lowest = top - most;
  const uint64_t room = here - watch->stack_lowest;
  watch->stack_low = (here - (kFirstStack < room / 2 ? kFirstStack : room / 2)) & ~uint64_t{4095};
  // The kernel grows it to where it is read.
  static_cast<void>(*reinterpret_cast<volatile uint8_t*>(watch->stack_low));
}

bool begin_system_calls() {
  watch->output_is_lost = is_null_device(STDOUT_FILENO);
  stack_t stack{};
  stack.ss_sp = watch->handler_stack;
  stack.ss_size = kHandlerStack;
  if (kernel_call(SYS_sigaltstack, &stack) != 0) {
    return false;
  }
  KernelAction action{};
  action.handler = on_signal;
  action.flags = kFlagRestorer | SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  action.restorer = tsomon_return_from_handler;
  for (const int number : kSignals) {
    if (kernel_call(SYS_rt_sigaction, number, &action, 0, sizeof action.mask) != 0) {
      return false;
    }
  }
  return kernel_call(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON,
                     tsomon_kernel_begin, tsomon_kernel_end - tsomon_kernel_begin,
                     &watch->selector) == 0;
}

void watch_system_calls(bool on) { watch->selector = on ? 1 : 0; }

}  // namespace tsomon::explore::in_place
