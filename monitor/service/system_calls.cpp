#include "monitor/service/system_calls.h"

#include <cerrno>
#include <memory>

#include <sched.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tsomon::service {
namespace {

constexpr const char* kAllowed[] = {
    // Files.
    "access", "chmod", "close", "copy_file_range", "dup", "dup2", "dup3", "faccessat", "faccessat2",
    "fallocate", "fchmod", "fchmodat", "fchown", "fcntl", "fdatasync", "flock", "fstat", "fstatfs",
    "fsync", "ftruncate", "getcwd", "getdents64", "link", "linkat", "lseek", "lstat",
    "memfd_create", "mkdir", "mkdirat", "newfstatat", "open", "openat", "pipe2", "pread64",
    "preadv", "pwrite64", "pwritev", "read", "readlink", "readlinkat", "readv", "rename",
    "renameat", "renameat2", "rmdir", "sendfile", "stat", "statfs", "statx", "sync_file_range",
    "umask", "unlink", "unlinkat", "utimensat", "write", "writev",
    // Memory.
    "brk", "get_mempolicy", "madvise", "mincore", "mmap", "mprotect", "mremap", "msync", "munmap",
    // Threads, signals, time.
    "clock_getres", "clock_gettime", "clock_nanosleep", "exit", "exit_group", "futex",
    "get_robust_list", "getcpu", "getpid", "getppid", "gettid", "gettimeofday", "membarrier",
    "nanosleep", "rseq", "restart_syscall", "rt_sigaction", "rt_sigpending", "rt_sigprocmask",
    "rt_sigreturn", "rt_sigtimedwait", "sched_getaffinity", "sched_getparam", "sched_getscheduler",
    "sched_yield", "set_robust_list", "set_tid_address", "sigaltstack", "times", "wait4", "waitid",
    // What there is.
    "arch_prctl", "getegid", "geteuid", "getgid", "getgroups", "getrandom", "getresgid",
    "getresuid", "getrlimit", "getrusage", "getuid", "sysinfo", "uname",
    // Waiting, and messages.
    "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_wait", "eventfd2", "getpeername",
    "getsockname", "getsockopt", "pidfd_open", "pidfd_send_signal", "poll", "ppoll", "pselect6",
    "recvfrom", "recvmsg", "select", "sendmsg", "sendto", "shutdown"};

constexpr const char* kKilled[] = {"execveat",
                                   "ptrace",
                                   "process_vm_readv",
                                   "process_vm_writev",
                                   "process_madvise",
                                   "pidfd_getfd",
                                   "kcmp",
                                   "init_module",
                                   "finit_module",
                                   "delete_module",
                                   "kexec_load",
                                   "kexec_file_load",
                                   "reboot",
                                   "bpf",
                                   "perf_event_open",
                                   "userfaultfd",
                                   "io_uring_setup",
                                   "mount",
                                   "umount2",
                                   "pivot_root",
                                   "chroot",
                                   "move_mount",
                                   "open_tree",
                                   "fsopen",
                                   "fsmount",
                                   "unshare",
                                   "setns",
                                   "setuid",
                                   "setgid",
                                   "setreuid",
                                   "setregid",
                                   "setresuid",
                                   "setresgid",
                                   "setgroups",
                                   "setfsuid",
                                   "setfsgid",
                                   "capset",
                                   "add_key",
                                   "request_key",
                                   "keyctl",
                                   "iopl",
                                   "ioperm",
                                   "personality",
                                   "swapon",
                                   "swapoff",
                                   "acct",
                                   "quotactl",
                                   "mknod",
                                   "mknodat"};

constexpr const char* kToStart[] = {"execve", "fork", "vfork"};
constexpr const char* kToBound[] = {"close_range", "getpriority",       "ioprio_set",
                                    "kill",        "sched_setaffinity", "sched_setscheduler",
                                    "setpriority", "setrlimit",         "tgkill"};

// Threads of this process, and nothing in a namespace of its own.
constexpr uint64_t kThread = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD;
constexpr uint64_t kElsewhere = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

class Filter {
 public:
  Filter() : context_(seccomp_init(SCMP_ACT_ERRNO(EPERM)), seccomp_release) {
    note(context_ != nullptr ? 0 : -ENOMEM);
  }
  void on(uint32_t action, const char* name) {
    // What this library, older than the kernel, does not know needs no rule: it is EPERM.
    const int call = seccomp_syscall_resolve_name(name);
    if (call != __NR_SCMP_ERROR) {
      note(seccomp_rule_add(context_.get(), action, call, 0));
    }
  }
  void allow_where(const char* name, scmp_arg_cmp condition) {
    note(seccomp_rule_add_array(context_.get(), SCMP_ACT_ALLOW, seccomp_syscall_resolve_name(name),
                                1, &condition));
  }
  int load() {
    note(seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_LOG, 1));
    // Sorted, not one after the other: they are made often.
    seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
    note(error_ == 0 ? seccomp_load(context_.get()) : 0);
    return error_;
  }

 private:
  void note(int result) { error_ = error_ == 0 && result < 0 ? -result : error_; }

  std::unique_ptr<void, void (*)(scmp_filter_ctx)> context_;
  int error_ = 0;
};

}  // namespace

int confine_system_calls(Confined who) {
  const bool starts = who == Confined::kLauncher;
  Filter filter;
  for (const char* const name : kAllowed) {
    filter.on(SCMP_ACT_ALLOW, name);
  }
  for (const char* const name : kToStart) {
    filter.on(starts ? SCMP_ACT_ALLOW : SCMP_ACT_KILL_PROCESS, name);
  }
  for (const char* const name : kToBound) {
    if (starts) {
      filter.on(SCMP_ACT_ALLOW, name);
    }
  }
  for (const char* const name : kKilled) {
    filter.on(SCMP_ACT_KILL_PROCESS, name);
  }
  filter.on(SCMP_ACT_ERRNO(ENOSYS), "clone3");
  // Nothing in a namespace of its own; the analyser has threads alone.
  const uint64_t thread = starts ? 0 : kThread;
  filter.allow_where("clone", SCMP_A0(SCMP_CMP_MASKED_EQ, thread | kElsewhere, thread));
  filter.allow_where("socket", SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
  if (starts) {
    filter.on(SCMP_ACT_ALLOW, "prctl");
    filter.on(SCMP_ACT_ALLOW, "prlimit64");
  } else {
    // What it listens and connects with are sockets of this machine.
    for (const char* const name : {"accept4", "bind", "connect", "listen"}) {
      filter.on(SCMP_ACT_ALLOW, name);
    }
    filter.allow_where("prctl", SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME));
    filter.allow_where("prctl", SCMP_A0(SCMP_CMP_EQ, PR_SET_VMA));
    filter.allow_where("prlimit64", SCMP_A2(SCMP_CMP_EQ, 0));  // limits are asked for, not changed
    filter.allow_where("tgkill", SCMP_A0(SCMP_CMP_EQ, static_cast<scmp_datum_t>(::getpid())));
  }
  filter.allow_where("ioctl", SCMP_A1(SCMP_CMP_EQ, 0x5401));  // TCGETS: is it a terminal?
  return filter.load();
}

}  // namespace tsomon::service
