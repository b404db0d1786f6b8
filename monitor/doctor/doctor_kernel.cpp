// The kernel's version, type information, BPF and ptrace.

#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <linux/bpf.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/doctor/doctor_parts.h"

namespace tsomon::doctor {
namespace {

MachineFinding examine_version() {
  utsname name{};
  uname(&name);
  return finding("kernel", true, false, fmt::format("{} {}", name.sysname, name.release),
                 "everything", "");
}

MachineFinding examine_btf() {
  const bool readable = access("/sys/kernel/btf/vmlinux", R_OK) == 0;
  return finding("btf", readable, false,
                 readable ? "/sys/kernel/btf/vmlinux" : "no /sys/kernel/btf/vmlinux",
                 "BPF programs that fit this kernel without its headers",
                 "use a kernel with CONFIG_DEBUG_INFO_BTF");
}

MachineFinding examine_bpf() {
  union bpf_attr attributes {};
  attributes.map_type = BPF_MAP_TYPE_ARRAY;
  attributes.key_size = 4;
  attributes.value_size = 8;
  attributes.max_entries = 1;
  const long fd = syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof attributes);
  const int error = errno;
  if (fd >= 0) {
    close(static_cast<int>(fd));
  }
  return finding("bpf", fd >= 0, false,
                 fd >= 0 ? "a map was created"
                         : fmt::format("a map cannot be created: {}", std::strerror(error)),
                 "attaching with events collected in the kernel",
                 error == ENOSYS ? "use a kernel with CONFIG_BPF_SYSCALL"
                                 : "run as root or with CAP_BPF and CAP_PERFMON");
}

// Tries to seize a child that only waits. What Yama says about other processes is in the detail.
MachineFinding examine_ptrace() {
  int scope = 0;
  const bool yama = static_cast<bool>(std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope);
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  int error = errno;
  bool seized = false;
  if (child > 0) {
    seized = ptrace(PTRACE_SEIZE, child, nullptr, nullptr) == 0;
    error = errno;
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  const std::string policy =
      yama ? fmt::format("ptrace_scope is {}", scope) : "no Yama, so no ptrace_scope";
  return finding(
      "ptrace", seized, false,
      seized ? fmt::format("a child was seized; {}", policy)
             : fmt::format("a child cannot be seized ({}); {}", std::strerror(error), policy),
      "attaching to running programs",
      "run as root or with CAP_SYS_PTRACE, or: sysctl kernel.yama.ptrace_scope=0");
}

}  // namespace

std::vector<MachineFinding> examine_kernel() {
  return {examine_version(), examine_btf(), examine_bpf(), examine_ptrace()};
}

}  // namespace tsomon::doctor
