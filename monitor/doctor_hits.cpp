// What one hit costs: the same call in a child process, timed there with and without a probe.

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include <asm/perf_regs.h>
#include <fmt/format.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "monitor/attach/bpf_uprobes.h"
#include "monitor/descriptor.h"
#include "monitor/doctor_parts.h"

// Code whose instructions are known: the kernel carries a load out in a copy of it, with a second
// trap behind it, but emulates the `push` that most functions begin with.
asm(R"(
  .pushsection .text.tsomon_doctor_probed, "ax", @progbits
  .local tsomon_doctor_load
  .type tsomon_doctor_load, @function
tsomon_doctor_load:
  movq (%rdi), %rax
  ret
  .size tsomon_doctor_load, . - tsomon_doctor_load
  .local tsomon_doctor_entry
  .type tsomon_doctor_entry, @function
tsomon_doctor_entry:
  pushq %rbp
  popq %rbp
  ret
  .size tsomon_doctor_entry, . - tsomon_doctor_entry
  .popsection
)");

extern "C" {
[[gnu::visibility("hidden")]] void tsomon_doctor_load(const void* data);
[[gnu::visibility("hidden")]] void tsomon_doctor_entry(const void* data);
}

namespace tsomon::doctor {
namespace {

using Probed = void (*)(const void*);

constexpr int kCalls = 1000;
constexpr int kRounds = 5;
constexpr size_t kBpfRing = size_t{512} << 10;              // more than a round
constexpr auto kRoundsEnd = std::chrono::milliseconds(20);  // no further round after that

// What a breakpoint watches; the child has it at the same address.
alignas(8) uint64_t watched = 0;

int64_t monotonic() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// The child. It calls what it is sent the address of and answers with the nanoseconds.
class Caller {
 public:
  Caller() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      return;
    }
    socket_ = Descriptor(ends[0]);
    const Descriptor other(ends[1]);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      serve(ends[1]);
    }
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  ~Caller() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  pid_t pid() const { return pid_; }

  // Nanoseconds of one call, at best; `between` runs after each round.
  double time(Probed probed, const std::function<void()>& between) {
    int64_t best = -1;
    const auto end = std::chrono::steady_clock::now() + kRoundsEnd;
    for (int round = 0; round < kRounds; ++round) {
      int64_t elapsed = 0;
      if (::send(socket_.get(), &probed, sizeof probed, MSG_NOSIGNAL) != sizeof probed ||
          ::recv(socket_.get(), &elapsed, sizeof elapsed, MSG_WAITALL) != sizeof elapsed) {
        return -1;
      }
      best = best < 0 ? elapsed : std::min(best, elapsed);
      ++rounds_;
      between();
      if (std::chrono::steady_clock::now() > end) {
        break;
      }
    }
    return static_cast<double>(best) / kCalls;
  }
  uint64_t calls() const { return rounds_ * kCalls; }  // of all times
 private:
  [[noreturn]] static void serve(int socket) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Probed probed = nullptr;
    while (::recv(socket, &probed, sizeof probed, MSG_WAITALL) == sizeof probed) {
      const int64_t begin = monotonic();
      for (int i = 0; i < kCalls; ++i) {
        probed(&watched);
      }
      const int64_t elapsed = monotonic() - begin;
      if (::send(socket, &elapsed, sizeof elapsed, MSG_NOSIGNAL) != sizeof elapsed) {
        break;
      }
    }
    ::_exit(0);
  }

  Descriptor socket_;
  pid_t pid_ = -1;
  uint64_t rounds_ = 0;
};

// A perf event of the child that writes a sample with registers for every hit.
class SampledEvent {
 public:
  SampledEvent(perf_event_attr attributes, pid_t pid) {
    attributes.size = sizeof attributes;
    attributes.exclude_kernel = 1;
    attributes.exclude_hv = 1;
    attributes.sample_period = 1;
    attributes.sample_type =
        PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER;
    attributes.sample_regs_user =
        ((1ULL << (PERF_REG_X86_FLAGS + 1)) - 1) | (0xffULL << PERF_REG_X86_R8);
    fd_ = Descriptor(static_cast<int>(
        ::syscall(SYS_perf_event_open, &attributes, pid, -1, -1, PERF_FLAG_FD_CLOEXEC)));
    if (!fd_.is_open()) {
      error_ = errno;
      return;
    }
    void* const mapped = ::mmap(nullptr, kMapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    if (mapped == MAP_FAILED) {
      error_ = errno;
      return;
    }
    ring_ = static_cast<perf_event_mmap_page*>(mapped);
  }
  SampledEvent(const SampledEvent&) = delete;
  SampledEvent& operator=(const SampledEvent&) = delete;
  ~SampledEvent() {
    if (ring_ != nullptr) {
      ::munmap(ring_, kMapped);
    }
  }
  int error() const { return error_; }
  void discard() {
    std::atomic_ref<__u64> head(ring_->data_head);
    std::atomic_ref<__u64>(ring_->data_tail).store(head.load(std::memory_order_acquire));
  }
  uint64_t hits() const {
    uint64_t count = 0;
    return ::read(fd_.get(), &count, sizeof count) == sizeof count ? count : 0;
  }

 private:
  // All samples of a round, and no more than every user may lock.
  static constexpr size_t kMapped = size_t{4096} * (1 + 64);

  Descriptor fd_;
  perf_event_mmap_page* ring_ = nullptr;
  int error_ = 0;
};

// Of one way to be told of a hit at one place.
struct Cost {
  double nanoseconds = 0;  // of a hit
  std::string problem;     // when nothing was measured
  int error = 0;           // errno that goes with it
};

// Nanoseconds of a call; hits that were told and that took place.
Cost cost(double without, double with, uint64_t told, uint64_t hits) {
  if (without < 0 || with < 0) {
    return {0, "the process that was measured has gone", 0};
  }
  if (told != hits) {
    return {0, fmt::format("{} of {} hits were told", told, hits), 0};
  }
  return {std::max(with - without, 0.0), {}, 0};
}

Cost cost_of(Caller& caller, Probed probed, const perf_event_attr& attributes) {
  const double without = caller.time(probed, [] {});
  SampledEvent event(attributes, caller.pid());
  if (event.error() != 0) {
    return {0, fmt::format("cannot be opened: {}", std::strerror(event.error())), event.error()};
  }
  const uint64_t calls = caller.calls();
  const double with = caller.time(probed, [&] { event.discard(); });
  return cost(without, with, event.hits(), caller.calls() - calls);
}

Cost uprobe_cost(Caller& caller, Probed probed, bool at_return) {
  const std::optional<uint32_t> type = device_type("uprobe");
  const std::optional<CodePlace> place = code_place(reinterpret_cast<uint64_t>(probed));
  if (!type || !place) {
    return {0, "no uprobes in this kernel", 0};
  }
  perf_event_attr attributes{};
  attributes.type = *type;
  attributes.config = at_return ? 1 : 0;
  attributes.config1 = reinterpret_cast<uint64_t>(place->file.c_str());
  attributes.config2 = place->offset;
  return cost_of(caller, probed, attributes);
}

Cost breakpoint_cost(Caller& caller) {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_BREAKPOINT;
  attributes.bp_type = HW_BREAKPOINT_RW;
  attributes.bp_addr = reinterpret_cast<uint64_t>(&watched);
  attributes.bp_len = HW_BREAKPOINT_LEN_8;
  return cost_of(caller, tsomon_doctor_load, attributes);
}

// `costs` with the place of each; the first one is the figure for programs.
MachineFinding tell(std::string name, const std::vector<std::pair<const char*, Cost>>& costs,
                    std::string needed_by, const std::string& remedy) {
  std::string detail;
  for (const auto& [where, cost] : costs) {
    if (!cost.problem.empty()) {
      return finding(std::move(name), false, false, fmt::format("{}: {}", where, cost.problem),
                     std::move(needed_by), remedy_for(cost.error, remedy));
    }
    detail += fmt::format("{}{:.0f} ns {}", detail.empty() ? "" : ", ", cost.nanoseconds, where);
  }
  MachineFinding told =
      finding(std::move(name), true, false, std::move(detail), std::move(needed_by), {});
  told.nanoseconds = costs.front().second.nanoseconds;
  return told;
}

Cost bpf_cost(Caller& caller, attach::BpfUprobes& probes, Probed probed) {
  const std::optional<CodePlace> place = code_place(reinterpret_cast<uint64_t>(probed));
  if (!place) {
    return {0, "the code of this program was not found in its mappings", 0};
  }
  const double without = caller.time(probed, [] {});
  const auto link = probes.attach(caller.pid(), place->file, {{place->offset, 0, 0}});
  if (!link) {
    return {0, link.error().message, 0};
  }
  std::vector<attach::Hit> hits;
  uint64_t told = 0;
  const uint64_t calls = caller.calls();
  const double with = caller.time(probed, [&] {
    hits.clear();
    probes.read(hits);
    told += hits.size();
  });
  return cost(without, with, told, caller.calls() - calls);
}

MachineFinding examine_bpf_hits(Caller& caller) {
  const char* const name = "hit_cost_bpf";
  const char* const needed_by = "attaching: what a probe costs the program, through BPF";
  const auto probes = attach::BpfUprobes::create(kBpfRing);
  if (!probes) {
    // "what is wrong; the remedy"
    const std::string& message = probes.error().message;
    const size_t remedy = message.rfind("; ");
    return finding(name, false, false, message.substr(0, remedy), needed_by,
                   remedy == std::string::npos ? message : message.substr(remedy + 2));
  }
  return tell(name,
              {{"at a load", bpf_cost(caller, **probes, tsomon_doctor_load)},
               {"at a function's entry", bpf_cost(caller, **probes, tsomon_doctor_entry)}},
              needed_by, "use a kernel from 6.12 on");
}

}  // namespace

std::vector<MachineFinding> examine_hits() {
  Caller caller;
  const std::string uprobes = "use a kernel with CONFIG_UPROBE_EVENTS";
  return {tell("hit_cost_perf",
               {{"at a load", uprobe_cost(caller, tsomon_doctor_load, false)},
                {"at a function's entry", uprobe_cost(caller, tsomon_doctor_entry, false)}},
               "attaching: what a probe costs the program, through perf", uprobes),
          tell("hit_cost_perf_return",
               {{"at a function's return", uprobe_cost(caller, tsomon_doctor_entry, true)}},
               "attaching: what a probe on returns costs the program, through perf", uprobes),
          examine_bpf_hits(caller),
          tell("hit_cost_breakpoint", {{"at a load", breakpoint_cost(caller)}},
               "attaching: what a watched location costs the program",
               "let the virtual machine pass debug registers on")};
}

}  // namespace tsomon::doctor
