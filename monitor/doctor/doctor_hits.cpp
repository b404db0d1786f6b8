// What one hit costs: the same call in a child process, timed there with and without a probe.

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
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
#include "monitor/doctor/doctor_parts.h"
#include "monitor/perf_events/remedy.h"
#include "monitor/process/descriptor.h"

// Code whose instructions are known: the kernel carries a load out in a copy of it, with a second
// trap after it, but emulates the `push` that most functions begin with. One place for each
// measurement, so that none has to wait for the probe of another to be gone.
#define TSOMON_DOCTOR_PLACE(name, code)               \
  asm(".pushsection .text\n"                          \
      ".local " #name                                 \
      "\n"                                            \
      ".type " #name ", @function\n" #name ":\n" code \
      "  ret\n"                                       \
      ".size " #name ", . - " #name                   \
      "\n"                                            \
      ".popsection");                                 \
  extern "C" [[gnu::visibility("hidden")]] void name(const void* data)

#define TSOMON_DOCTOR_LOAD "  movq (%rdi), %rax\n"
#define TSOMON_DOCTOR_ENTRY "  pushq %rbp\n  popq %rbp\n"

TSOMON_DOCTOR_PLACE(tsomon_doctor_perf_load, TSOMON_DOCTOR_LOAD);
TSOMON_DOCTOR_PLACE(tsomon_doctor_perf_entry, TSOMON_DOCTOR_ENTRY);
TSOMON_DOCTOR_PLACE(tsomon_doctor_perf_return, TSOMON_DOCTOR_ENTRY);
TSOMON_DOCTOR_PLACE(tsomon_doctor_watched_load, TSOMON_DOCTOR_LOAD);
TSOMON_DOCTOR_PLACE(tsomon_doctor_bpf_load, TSOMON_DOCTOR_LOAD);
TSOMON_DOCTOR_PLACE(tsomon_doctor_bpf_entry, TSOMON_DOCTOR_ENTRY);

namespace tsomon::doctor {
namespace {

using Probed = void (*)(const void*);

constexpr int kCalls = 300;
constexpr int kRounds = 5;
constexpr size_t kBpfRing = size_t{128} << 10;             // more than a round
constexpr auto kRoundsEnd = std::chrono::milliseconds(8);  // no further round after that

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
  static constexpr size_t kMapped = size_t{4096} * (1 + 32);

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
  if (told == 0) {
    return {0, fmt::format("accepted but never reported: none of {} hits was", hits), 0};
  }
  if (told != hits) {
    return {0, fmt::format("{} of {} hits were reported", told, hits), 0};
  }
  return {std::max(with - without, 0.0), {}, 0};
}

// Removing a probe waits for all processors, for tens of milliseconds: those waits run beside what
// follows.
class Removals {
 public:
  Removals() = default;
  Removals(const Removals&) = delete;
  Removals& operator=(const Removals&) = delete;
  ~Removals() {
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }
  template <typename Probe>
  void add(Probe probe) {
    threads_.emplace_back([gone = std::move(probe)]() mutable { Probe(std::move(gone)); });
  }

 private:
  std::vector<std::thread> threads_;
};

struct Bench {
  Caller caller;  // before the first thread is there: it forks
  Removals removals;
};

Cost sampled_cost(Bench& bench, Probed probed, const perf_event_attr& attributes) {
  Caller& caller = bench.caller;
  const double without = caller.time(probed, [] {});
  auto event = std::make_unique<SampledEvent>(attributes, caller.pid());
  if (event->error() != 0) {
    return {0, fmt::format("cannot be opened: {}", std::strerror(event->error())), event->error()};
  }
  const uint64_t calls = caller.calls();
  const double with = caller.time(probed, [&] { event->discard(); });
  const uint64_t told = event->hits();
  bench.removals.add(std::move(event));
  return cost(without, with, told, caller.calls() - calls);
}

Cost uprobe_cost(Bench& bench, Probed probed, bool at_return) {
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
  return sampled_cost(bench, probed, attributes);
}

Cost breakpoint_cost(Bench& bench) {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_BREAKPOINT;
  attributes.bp_type = HW_BREAKPOINT_RW;
  attributes.bp_addr = reinterpret_cast<uint64_t>(&watched);
  attributes.bp_len = HW_BREAKPOINT_LEN_8;
  return sampled_cost(bench, tsomon_doctor_watched_load, attributes);
}

Cost bpf_cost(Bench& bench, attach::Uprobes& probes, Probed probed) {
  Caller& caller = bench.caller;
  const std::optional<CodePlace> place = code_place(reinterpret_cast<uint64_t>(probed));
  if (!place) {
    return {0, "the code of this program was not found in its mappings", 0};
  }
  const double without = caller.time(probed, [] {});
  auto link = probes.attach(caller.pid(), place->file, {{place->offset, 0, 0, {}}});
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
  bench.removals.add(std::move(*link));
  return cost(without, with, told, caller.calls() - calls);
}

// `costs` with the place of each; the first one is the figure for programs.
MachineFinding cost_finding(std::string name,
                            const std::vector<std::pair<const char*, Cost>>& costs,
                            std::string needed_by, std::string (*remedy)(int)) {
  std::string detail;
  for (const auto& [where, cost] : costs) {
    if (!cost.problem.empty()) {
      return finding(std::move(name), false, false, fmt::format("{}: {}", where, cost.problem),
                     std::move(needed_by), remedy(cost.error));
    }
    detail += fmt::format("{}{:.0f} ns {}", detail.empty() ? "" : ", ", cost.nanoseconds, where);
  }
  MachineFinding told =
      finding(std::move(name), true, false, std::move(detail), std::move(needed_by), {});
  told.nanoseconds = costs.front().second.nanoseconds;
  return told;
}

MachineFinding examine_bpf_hits(Bench& bench) {
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
  return cost_finding(
      name,
      {{"at a load", bpf_cost(bench, **probes, tsomon_doctor_bpf_load)},
       {"at a function's entry", bpf_cost(bench, **probes, tsomon_doctor_bpf_entry)}},
      needed_by, [](int) -> std::string { return "use a kernel from 6.12 on"; });
}

}  // namespace

std::vector<MachineFinding> examine_hits() {
  Bench bench;
  return {
      cost_finding("hit_cost_perf",
                   {{"at a load", uprobe_cost(bench, tsomon_doctor_perf_load, false)},
                    {"at a function's entry", uprobe_cost(bench, tsomon_doctor_perf_entry, false)}},
                   "attaching: what a probe costs the program, through perf", uprobe_remedy),
      cost_finding(
          "hit_cost_perf_return",
          {{"at a function's return", uprobe_cost(bench, tsomon_doctor_perf_return, true)}},
          "attaching: what a probe on returns costs the program, through perf", uprobe_remedy),
      examine_bpf_hits(bench),
      cost_finding("hit_cost_breakpoint", {{"at a load", breakpoint_cost(bench)}},
                   "attaching: what a watched location costs the program", [](int error) {
                     return perf_remedy(error, "let the virtual machine pass debug registers on");
                   })};
}

}  // namespace tsomon::doctor
