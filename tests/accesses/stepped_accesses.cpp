#include "tests/accesses/stepped_accesses.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "decoders/x86/decode.h"
#include "tests/accesses/registers.h"

namespace tsomon::testing {
namespace {

// A thread that comes there first is the runtime's, as is one that has not come to the program's own code
// after so many steps.
constexpr const char* kFunctionOfRuntime = "writer_thread";
constexpr uint64_t kStepsOfRuntime = 200000;
// The thread's descriptor lies at and above the base of its thread-local storage.
constexpr uint64_t kDescriptorBytes = 4096;
constexpr uint64_t kRedZone = 128;
constexpr uint8_t kInt3 = 0xCC;

struct Thread {
  uint64_t steps = 0;
  bool seen_own_code = false;
  bool in_own_code = false;
  uint64_t lowest = UINT64_MAX;  // place of its stack, and the highest one
  uint64_t highest = 0;
  bool free = false;       // runs without being looked at
  bool to_any = false;     // runs to where a function of the program begins
  uint64_t resume_at = 0;  // runs to there, where the call comes back that it is in
};

struct Breakpoint {
  uint8_t byte = 0;  // that it replaces
  unsigned users = 0;
};

struct Mapping {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool writable = false;
  std::string file;
};

class Stepper {
 public:
  Stepper(const std::vector<std::string>& command, const std::string& options, const OwnCode& code)
      : code_(code) {
    start(command, options);
  }

  SteppedAccesses run() {
    for (int status = 0;;) {
      const int tid = ::waitpid(-1, &status, __WALL);
      if (tid < 0) {
        return std::move(found_);
      }
      stopped(tid, status);
    }
  }

 private:
  void start(const std::vector<std::string>& command, const std::string& options) {
    pid_ = ::fork();
    if (pid_ == 0) {
      ::personality(ADDR_NO_RANDOMIZE);
      ::setenv("TSOMON_OPTIONS", options.c_str(), 1);
      ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
      std::vector<char*> arguments;
      for (const std::string& one : command) {
        arguments.push_back(const_cast<char*>(one.c_str()));
      }
      arguments.push_back(nullptr);
      ::execv(arguments[0], arguments.data());
      ::_exit(127);
    }
    int status = 0;
    if (pid_ < 0 || ::waitpid(pid_, &status, 0) != pid_ || !WIFSTOPPED(status)) {
      throw std::runtime_error(command[0] + " does not start");
    }
    ::ptrace(PTRACE_SETOPTIONS, pid_, nullptr, PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL);
    memory_ = ::open(("/proc/" + std::to_string(pid_) + "/mem").c_str(), O_RDWR | O_CLOEXEC);
    read_mappings();
    for (const Mapping& one : mappings_) {
      if (!one.file.empty() && one.file != "[heap]") {
        found_.bias = one.begin >= 0x500000000000 ? one.begin : 0;  // or it is at its addresses
        break;
      }
    }
    const uint64_t main = code_.address_of("main");
    if (main == 0) {
      throw std::runtime_error("no function main");
    }
    main_ = main + found_.bias;
    run_to(threads_[pid_], main_);
    ::ptrace(PTRACE_CONT, pid_, nullptr, nullptr);
  }

  void read_mappings() {
    mappings_.clear();
    std::ifstream maps("/proc/" + std::to_string(pid_) + "/maps");
    for (std::string line; std::getline(maps, line);) {
      Mapping one;
      char permissions[5] = {};
      char file[4096] = {};
      std::sscanf(line.c_str(), "%lx-%lx %4s %*s %*s %*s %4095[^\n]", &one.begin, &one.end,
                  permissions, file);
      one.writable = permissions[1] == 'w';
      one.file = file;
      mappings_.push_back(one);
    }
  }
  const Mapping* mapping(uint64_t address) const {
    for (const Mapping& one : mappings_) {
      if (address >= one.begin && address < one.end) {
        return &one;
      }
    }
    return nullptr;
  }

  void write_byte(uint64_t address, uint8_t byte) {
    if (::pwrite(memory_, &byte, 1, static_cast<off_t>(address)) != 1) {
      throw std::runtime_error("a breakpoint cannot be set");
    }
  }
  void add_breakpoint(uint64_t address) {
    Breakpoint& there = breakpoints_[address];
    if (there.users++ == 0) {
      read_memory(pid_, address, &there.byte, 1);
      write_byte(address, kInt3);
    }
  }
  void remove_breakpoint(uint64_t address) {
    Breakpoint& there = breakpoints_.at(address);
    if (--there.users == 0) {
      write_byte(address, there.byte);
      breakpoints_.erase(address);
    }
  }
  void run_to(Thread& thread, uint64_t address) {
    add_breakpoint(address);
    thread.resume_at = address;
  }
  void step_from_here(Thread& thread) {
    if (thread.resume_at != 0) {
      remove_breakpoint(thread.resume_at);
      thread.resume_at = 0;
    }
  }

  // Threads that run by themselves do not stop where the code is as it was: only one other than main
  // does, and it stops when there is another one.
  bool alone(int tid) const {
    return std::none_of(threads_.begin(), threads_.end(), [&](const auto& other) {
      return other.first != tid && other.first != pid_ && !other.second.free;
    });
  }
  void stop_the_others(int tid) {
    std::vector<int> running;
    for (const auto& [other, thread] : threads_) {
      if (other != tid && other != pid_ && thread.resume_at != 0) {
        running.push_back(other);
      }
    }
    for (const int other : running) {
      ::syscall(SYS_tgkill, pid_, other, SIGSTOP);
      int status = 0;
      if (::waitpid(other, &status, __WALL) == other) {
        stopped(other, status);
      }
    }
  }

  void stopped(int tid, int status) {
    // An instruction of one byte ends where a breakpoint in its place would have.
    const bool stepped_over = std::exchange(stepped_over_, 0) == tid;
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      found_.stacks.emplace_back(threads_[tid].lowest, threads_[tid].highest);
      threads_.erase(tid);
      if (tid == pid_) {
        found_.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
      return;
    }
    if (threads_.count(tid) == 0) {
      // The stop that its creation is. Before main there are the runtime's threads alone.
      threads_[tid].free = !in_main_;
      if (in_main_) {
        stop_the_others(tid);
      }
      go_on(tid, threads_[tid], 0);
      return;
    }
    Thread& thread = threads_[tid];
    const int signal = WSTOPSIG(status);
    if (status >> 8 == (SIGTRAP | (PTRACE_EVENT_CLONE << 8)) || thread.free) {
      go_on(tid, thread, thread.free && signal != SIGTRAP && signal != SIGSTOP ? signal : 0);
      return;
    }
    if (signal != SIGTRAP) {
      if (signal == SIGSTOP) {
        step_from_here(thread);
      }
      go_on(tid, thread, signal == SIGSTOP ? 0 : signal);
      return;
    }
    user_regs_struct registers{};
    ::ptrace(PTRACE_GETREGS, tid, nullptr, &registers);
    const bool at_breakpoint = !stepped_over && breakpoints_.count(registers.rip - 1) != 0;
    const bool own = at_breakpoint && registers.rip == thread.resume_at + 1;
    if (thread.to_any && at_breakpoint) {
      thread.to_any = false;
      for (const uint64_t entry : code_.functions()) {
        remove_breakpoint(entry + found_.bias);
      }
      --registers.rip;
      ::ptrace(PTRACE_SETREGS, tid, nullptr, &registers);
    } else if (at_breakpoint) {
      --registers.rip;
      ::ptrace(PTRACE_SETREGS, tid, nullptr, &registers);
    }
    if (own) {
      step_from_here(thread);
      if (!in_main_) {
        begin_main(registers);
      }
    }
    at(tid, thread, registers);
  }

  void begin_main(const user_regs_struct& registers) {
    in_main_ = true;
    main_caller_ = 0;
    read_memory(pid_, registers.rsp, &main_caller_, sizeof main_caller_);
    read_mappings();
    // Destructors of static variables follow there, too.
    Dl_info here{};
    ::dladdr(reinterpret_cast<void*>(&std::exit), &here);
    const auto library = std::find_if(mappings_.begin(), mappings_.end(), [&](const Mapping& one) {
      return one.file == std::filesystem::canonical(here.dli_fname);
    });
    if (library != mappings_.end()) {
      exit_ = library->begin + reinterpret_cast<uint64_t>(&std::exit) -
              reinterpret_cast<uint64_t>(here.dli_fbase);
      add_breakpoint(exit_);
    }
  }

  void stop_at_any(Thread& thread) {
    thread.to_any = true;
    for (const uint64_t entry : code_.functions()) {
      add_breakpoint(entry + found_.bias);
    }
  }

  void go_on(int tid, const Thread& thread, int signal) {
    const bool runs = thread.free || thread.to_any || thread.resume_at != 0;
    ::ptrace(runs ? PTRACE_CONT : PTRACE_SINGLESTEP, tid, nullptr, signal);
  }

  // The thread is about to execute what is there.
  void at(int tid, Thread& thread, const user_regs_struct& registers) {
    const uint64_t ip = registers.rip;
    ++found_.steps;
    ++thread.steps;
    returned_ = returned_ || (tid == pid_ && ip == main_caller_);
    if (tid == pid_ && exit_ != 0 && ip == exit_) {
      step_from_here(thread);
      remove_breakpoint(std::exchange(exit_, 0));
      returned_ = true;
      stop_at_any(thread);
    }
    const bool was_in_own_code =
        std::exchange(thread.in_own_code, code_.contains(ip - found_.bias));
    if (thread.in_own_code) {
      thread.seen_own_code = true;
      others_ran_ = others_ran_ || tid != pid_;
      ++found_.own_steps;
      const uint64_t top = registers.rsp;
      thread.lowest = std::min(thread.lowest, top - kRedZone);
      thread.highest = std::max(thread.highest, top);
      note(tid, registers);
      if (breakpoints_.count(ip) != 0) {
        step_over(tid, ip);
        return;
      }
    } else if (tid != pid_ && !thread.seen_own_code && is_of_runtime(thread, ip)) {
      thread.free = true;
    } else if (was_in_own_code && (tid == pid_ || (alone(tid) && comes_back(ip)))) {
      // What it calls runs by itself, where it is known where it comes back.
      uint64_t caller = 0;
      read_memory(pid_, registers.rsp, &caller, sizeof caller);
      if (code_.contains(caller - found_.bias)) {
        run_to(thread, caller);
      } else if (tid == pid_ && returned_) {
        stop_at_any(thread);  // destructors of static variables may follow
      }
    }
    go_on(tid, thread, 0);
  }

  bool is_of_runtime(const Thread& thread, uint64_t ip) const {
    return thread.steps > kStepsOfRuntime ||
           code_.function(ip - found_.bias).find(kFunctionOfRuntime) != std::string::npos;
  }

  // The runtime's hooks do; what throws or jumps does not.
  bool comes_back(uint64_t ip) const {
    const std::string name = code_.function(ip - found_.bias);
    return name.rfind("__tsan_", 0) == 0 || name.rfind("tsomon_runtime_", 0) == 0;
  }

  // Where another thread is to stop.
  void step_over(int tid, uint64_t ip) {
    write_byte(ip, breakpoints_.at(ip).byte);
    ::ptrace(PTRACE_SINGLESTEP, tid, nullptr, 0);
    int status = 0;
    const bool there = ::waitpid(tid, &status, __WALL) == tid;
    if (breakpoints_.count(ip) != 0) {
      write_byte(ip, kInt3);
    }
    if (there) {
      stepped_over_ = tid;
      stopped(tid, status);
    }
  }

  const x86::Instruction& instruction(uint64_t ip) {
    const auto known = instructions_.find(ip);
    if (known != instructions_.end()) {
      return known->second;
    }
    uint8_t bytes[x86::kMaxInstruction];
    size_t got = read_memory(pid_, ip, bytes, sizeof bytes);
    if (got == 0) {  // the page may end here
      got = read_memory(pid_, ip, bytes, 4096 - ip % 4096);
    }
    for (const auto& [at, breakpoint] : breakpoints_) {
      if (at >= ip && at < ip + got) {
        bytes[at - ip] = breakpoint.byte;
      }
    }
    const auto decoded = x86::decode(bytes, got, ip);
    if (!decoded) {
      throw std::runtime_error(decoded.error().to_string());
    }
    return instructions_.emplace(ip, *decoded).first->second;
  }

  void note(int tid, const user_regs_struct& registers) {
    const x86::RegisterFile file = register_file(registers);
    const x86::Instruction& code = instruction(registers.rip);
    for (const x86::Access& access : code) {
      if (access.repeat != x86::Repeat::kOnce && registers.rcx == 0) {
        continue;
      }
      const auto address = access.opaque ? std::nullopt : access.address.evaluate(file);
      if (!address || access.size == 0) {
        found_.unknown[registers.rip - found_.bias] = code_.function(registers.rip - found_.bias);
        continue;
      }
      const bool needed =
          is_shared(tid, *address, registers, access) && !access.conditional && !access.masked;
      if (access.kind != x86::AccessKind::kStore) {
        add(registers.rip, *address, access.size, false, needed);
      }
      if (access.kind != x86::AccessKind::kLoad) {
        add(registers.rip, *address, access.size, true, needed);
      }
    }
  }

  // Its stack and thread-local storage.
  bool is_mine(int tid, uint64_t address, const user_regs_struct& registers) const {
    if (tid != pid_) {
      return address >= registers.rsp - kRedZone && address < registers.fs_base + kDescriptorBytes;
    }
    const Mapping* const there = mapping(address);
    return there != nullptr && (there->file == "[stack]" || there == mapping(registers.fs_base));
  }

  bool is_shared(int tid, uint64_t address, const user_regs_struct& registers,
                 const x86::Access& access) const {
    if ((tid == pid_ && (!others_ran_ || returned_)) ||
        access.address.segment == x86::Register::kFsBase || is_mine(tid, address, registers)) {
      return false;
    }
    const Mapping* const there = mapping(address);
    return there == nullptr || there->writable;  // what was mapped later is
  }

  void add(uint64_t ip, uint64_t address, uint32_t size, bool store, bool needed) {
    const uint64_t pc = ip - found_.bias;
    auto [name, is_new] = names_.try_emplace(pc);
    if (is_new) {
      name->second = code_.function(pc);
    }
    for (uint64_t at = address; at < address + size; ++at) {
      AccessCount& count = found_.bytes[{name->second, at, store}];
      ++count.allowed;
      count.needed += needed ? 1 : 0;
      if (needed || count.pc == 0) {
        count.pc = pc;
        count.begin = address;
        count.end = address + size;
      }
    }
  }

  const OwnCode& code_;
  int pid_ = 0;
  std::unordered_map<int, Thread> threads_;
  std::vector<Mapping> mappings_;
  uint64_t main_ = 0;
  int stepped_over_ = 0;  // the thread that has just been stepped over one
  uint64_t main_caller_ = 0;
  uint64_t exit_ = 0;  // of the C library, until it is called
  bool in_main_ = false;
  bool others_ran_ = false;
  bool returned_ = false;  // from main
  int memory_ = -1;        // of the program
  std::map<uint64_t, Breakpoint> breakpoints_;
  std::unordered_map<uint64_t, x86::Instruction> instructions_;
  std::unordered_map<uint64_t, std::string> names_;
  SteppedAccesses found_;
};

}  // namespace

SteppedAccesses step_accesses(const std::vector<std::string>& command, const std::string& options,
                              const OwnCode& code) {
  return Stepper(command, options, code).run();
}

}  // namespace tsomon::testing
