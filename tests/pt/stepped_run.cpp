#include "tests/pt/stepped_run.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include <doctest/doctest.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "decoders/x86/dataflow.h"
#include "decoders/x86/decode.h"
#include "tests/accesses/registers.h"
#include "tests/monitor/folder.h"

namespace tsomon::test {
namespace {

using testing::read_memory;
using testing::register_file;

struct Thread {
  int tid = 0;
  uint32_t index = 0;
  bool in_kernel = false;  // stepping, in a system call that may block
  int signal = 0;          // to be delivered with the next step
  user_regs_struct registers{};
};

class Stepper {
 public:
  Stepper(const std::string& program, const StepOptions& options)
      : options_(options), random_(options.seed) {
    start(program);
  }

  SteppedRun run() {
    read_code();
    while (!finished_ && run_.steps.size() < options_.max_steps && !threads_.empty()) {
      quantum();
    }
    ::kill(pid_, SIGKILL);
    while (::waitpid(-1, nullptr, __WALL) > 0) {
    }
    return std::move(run_);
  }

 private:
  void start(const std::string& program) {
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      ::personality(ADDR_NO_RANDOMIZE);
      ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
      ::execl(program.c_str(), program.c_str(), nullptr);
      ::_exit(127);
    }
    int status = 0;
    REQUIRE(::waitpid(pid_, &status, 0) == pid_);
    REQUIRE(WIFSTOPPED(status));
    ::ptrace(PTRACE_SETOPTIONS, pid_, nullptr, PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL);
    // To the first breakpoint at full speed.
    do {
      ::ptrace(PTRACE_CONT, pid_, nullptr, nullptr);
      REQUIRE(::waitpid(pid_, &status, __WALL) == pid_);
      REQUIRE(WIFSTOPPED(status));
    } while (WSTOPSIG(status) != SIGTRAP);
    add_thread(pid_);
  }

  Thread& add_thread(int tid) {
    Thread& thread = threads_[tid];
    thread.tid = tid;
    thread.index = static_cast<uint32_t>(run_.threads.size());
    run_.threads.push_back(tid);
    return thread;
  }

  // Runs one thread for a while.
  void quantum() {
    wait_for_sleepers();
    std::vector<int> ready;
    for (const auto& [tid, thread] : threads_) {
      if (!thread.in_kernel) {
        ready.push_back(tid);
      }
    }
    if (ready.empty()) {
      ::usleep(100);
      return;
    }
    const int tid = ready[random_() % ready.size()];
    if (tid != last_thread_) {
      ++quantum_;
      last_thread_ = tid;
    }
    for (size_t left = 1 + random_() % 300; left != 0 && !finished_; --left) {
      const auto found = threads_.find(tid);
      if (found == threads_.end() || found->second.in_kernel) {
        return;
      }
      step(found->second);
    }
  }

  void wait_for_sleepers() {
    std::vector<int> sleeping;
    for (const auto& [tid, thread] : threads_) {
      if (thread.in_kernel) {
        sleeping.push_back(tid);
      }
    }
    for (const int tid : sleeping) {
      int status = 0;
      if (::waitpid(tid, &status, __WALL | WNOHANG) == tid) {
        threads_[tid].in_kernel = false;
        stopped(tid, status);
      }
    }
  }

  const x86::Instruction* instruction(uint64_t ip) {
    const auto known = run_.instructions.find(ip);
    if (known != run_.instructions.end()) {
      return &known->second;
    }
    uint8_t bytes[x86::kMaxInstruction];
    size_t got = read_memory(pid_, ip, bytes, sizeof bytes);
    if (got == 0) {  // the page may end here
      got = read_memory(pid_, ip, bytes, 4096 - ip % 4096);
    }
    const auto decoded = x86::decode(bytes, got, ip);
    REQUIRE(decoded);
    return &run_.instructions.emplace(ip, *decoded).first->second;
  }

  // Then it would not be delivered, and the step would go unnoticed.
  static bool blocked(int tid, int signal) {
    uint64_t mask = 0;
    ::ptrace(PTRACE_GETSIGMASK, tid, sizeof mask, &mask);
    return (mask >> (signal - 1) & 1) != 0;
  }

  void step(Thread& thread) {
    ::ptrace(PTRACE_GETREGS, thread.tid, nullptr, &thread.registers);
    const uint64_t ip = thread.registers.rip;
    if (thread.signal == 0 && options_.signal != 0 && thread.tid == pid_ && random_() % 1500 == 0 &&
        !blocked(thread.tid, options_.signal)) {
      thread.signal = options_.signal;
    }
    if (thread.signal != 0) {  // stops at the handler, nothing executed
      const int signal = std::exchange(thread.signal, 0);
      ::ptrace(PTRACE_SINGLESTEP, thread.tid, nullptr, signal);
      pushed_ = false;
      at_handler_ = true;
      wait(thread.tid);
      at_handler_ = false;
      return;
    }
    const x86::Instruction* code = instruction(ip);
    uint8_t first = 0;
    read_memory(pid_, ip, &first, 1);
    if (first == 0xCC) {
      finished_ = true;
      return;
    }
    Step made;
    made.ip = ip;
    made.thread = thread.index;
    made.quantum = quantum_;
    made.registers = register_file(thread.registers);
    const bool repeats = code->access_count != 0 && code->accesses[0].repeat != x86::Repeat::kOnce;
    const Step* last = last_of(thread.index);
    const bool again = repeats && last != nullptr && last->ip == ip && last->next == ip;
    const auto before = last_.find(thread.index);
    undo_ = before == last_.end() ? kNothing : before->second;
    pushed_ = !again;
    if (pushed_) {
      last_[thread.index] = run_.steps.size();
      run_.steps.push_back(made);
    }
    if (code->ptwrite) {
      thread.registers.rip = code->next();
      ::ptrace(PTRACE_SETREGS, thread.tid, nullptr, &thread.registers);
      last_of(thread.index)->next = code->next();
      return;
    }
    ::ptrace(PTRACE_SINGLESTEP, thread.tid, nullptr, 0);
    if (code->operation == x86::Operation::kSystemCall) {
      for (int tries = 0; tries < 50; ++tries) {
        int status = 0;
        if (::waitpid(thread.tid, &status, __WALL | WNOHANG) == thread.tid) {
          stopped(thread.tid, status);
          return;
        }
        ::usleep(20);
      }
      thread.in_kernel = true;
      return;
    }
    wait(thread.tid);
    if (options_.check_memory && !repeats) {
      check_memory(*code, made.registers);
    }
  }

  Step* last_of(uint32_t index) {
    const auto found = last_.find(index);
    return found == last_.end() ? nullptr : &run_.steps[found->second];
  }

  void wait(int tid) {
    int status = 0;
    REQUIRE(::waitpid(tid, &status, __WALL) == tid);
    stopped(tid, status);
  }

  void stopped(int tid, int status) {
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      threads_.erase(tid);
      return;
    }
    Thread& thread = threads_[tid];
    ::ptrace(PTRACE_GETREGS, tid, nullptr, &thread.registers);
    if (status >> 8 == (SIGTRAP | (PTRACE_EVENT_CLONE << 8))) {
      unsigned long child = 0;
      ::ptrace(PTRACE_GETEVENTMSG, tid, nullptr, &child);
      int child_status = 0;
      REQUIRE(::waitpid(static_cast<int>(child), &child_status, __WALL) == static_cast<int>(child));
      add_thread(static_cast<int>(child));
      ::ptrace(PTRACE_SINGLESTEP, tid, nullptr, 0);  // to the end of the system call
      wait(tid);
      return;
    }
    if (WSTOPSIG(status) != SIGTRAP) {
      thread.signal = WSTOPSIG(status) == SIGSTOP ? 0 : WSTOPSIG(status);
      Step* last = last_of(thread.index);
      if (pushed_ && last != nullptr && last->ip == thread.registers.rip) {  // not executed
        run_.steps.pop_back();
        if (undo_ == kNothing) {
          last_.erase(thread.index);
        } else {
          last_[thread.index] = undo_;
        }
      }
      pushed_ = false;
      return;
    }
    if (Step* last = last_of(thread.index); last != nullptr && !at_handler_) {
      last->next = thread.registers.rip;
    }
  }

  // The model against the memory: what it says was stored, and what was loaded.
  void check_memory(const x86::Instruction& code, const x86::RegisterFile& before) {
    const Thread* thread = nullptr;
    for (const auto& [tid, candidate] : threads_) {
      thread = tid == last_thread_ ? &candidate : thread;
    }
    if (thread == nullptr) {
      return;
    }
    const auto value_at = [&](const x86::Access& access) -> x86::Value {
      const auto range = evaluate(access, before);
      uint64_t value = 0;
      if (!range || range->size > 8 ||
          read_memory(pid_, range->address, &value, range->size) != range->size) {
        return std::nullopt;
      }
      return value;
    };
    for (const x86::Access& access : code) {
      x86::Value expected;
      if (access.kind == x86::AccessKind::kLoad && code.access_count == 1) {
        expected = loaded_value(code, register_file(thread->registers));
      } else if (access.kind == x86::AccessKind::kStore && !access.conditional) {
        expected = stored_value(code, before);
      }
      const x86::Value found = value_at(access);
      if (expected && found) {
        ++run_.memory_checks;
        run_.memory_errors += *expected != *found ? 1 : 0;
      }
    }
  }

  void read_code() {
    std::ifstream maps("/proc/" + std::to_string(pid_) + "/maps");
    for (std::string line; std::getline(maps, line);) {
      MappedCode code;
      uint64_t end = 0;
      char permissions[5] = {};
      char file[4096] = {};
      if (std::sscanf(line.c_str(), "%lx-%lx %4s %lx %*s %*s %4095[^\n]", &code.address, &end,
                      permissions, &code.offset, file) < 5 ||
          permissions[2] != 'x') {
        continue;
      }
      code.size = end - code.address;
      code.file = file;
      if (code.file == "[vdso]") {
        static const testing::Folder folder;  // until the tests are over
        std::string bytes(code.size, '\0');
        read_memory(pid_, code.address, bytes.data(), bytes.size());
        code.file = folder.write("vdso", bytes);
        code.offset = 0;
      }
      if (code.file.front() == '/') {
        run_.code.push_back(code);
      }
    }
  }

  StepOptions options_;
  std::mt19937_64 random_;
  int pid_ = 0;
  int last_thread_ = 0;
  uint32_t quantum_ = 0;
  bool finished_ = false;
  std::map<int, Thread> threads_;
  static constexpr size_t kNothing = ~size_t{0};

  std::map<uint32_t, size_t> last_;  // steps by thread
  size_t undo_ = kNothing;           // what `last_` was before the step under way
  bool pushed_ = false;
  bool at_handler_ = false;
  SteppedRun run_;
};

}  // namespace

SteppedRun step_through(const std::string& program, const StepOptions& options) {
  return Stepper(program, options).run();
}

}  // namespace tsomon::test
