// Probes on a real process, once through BPF and once through perf.
#ifndef TSOMON_SANITIZED  // the process is forked from this one and has threads of its own

#include "monitor/attach/uprobes.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <thread>

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/attach/bpf_uprobes.h"
#include "monitor/attach/perf_uprobes.h"
#include "monitor/process/target.h"

asm(R"(
  .pushsection .text
  .local tsomon_test_probed
  .type tsomon_test_probed, @function
tsomon_test_probed:
  movq (%rdi), %rax
  movq %rsi, 8(%rdi)
  ret
  .size tsomon_test_probed, . - tsomon_test_probed
  .popsection
)");
extern "C" [[gnu::visibility("hidden")]] void tsomon_test_probed(void* data, uint64_t number);

namespace tsomon::attach {
namespace {

constexpr uint64_t kStore = 3;  // the second instruction of the function
constexpr uint32_t kLoadSource = 70;
constexpr uint32_t kStoreSource = 71;

struct Orders {                    // in memory that both processes have
  std::atomic<uint64_t> round{0};  // odd: the threads that are there begin
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> done{0};
};

// Two threads that wait for orders. In each round each calls the function, and starts a thread that
// calls it as often.
class Callers {
 public:
  Callers() {
    void* const memory =
        ::mmap(nullptr, sizeof(Orders), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    orders_ = new (memory) Orders;
    pid_ = ::fork();
    if (pid_ == 0) {
      std::thread other([this] { serve(); });
      serve();
    }
  }
  Callers(const Callers&) = delete;
  Callers& operator=(const Callers&) = delete;
  ~Callers() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::munmap(orders_, sizeof(Orders));
  }
  pid_t pid() const { return pid_; }

  static constexpr uint64_t kThreads = 4;
  // Each of four threads calls the function so often, with numbers from 1.
  void call(uint64_t times, const std::function<void()>& meanwhile) {
    orders_->calls = times;
    orders_->done = 0;
    orders_->round.fetch_add(1);
    while (orders_->done.load() != kThreads) {
      meanwhile();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  [[noreturn]] void serve() {
    for (uint64_t round = 1;; ++round) {
      while (orders_->round.load() < round) {
        ::usleep(500);
      }
      const uint64_t times = orders_->calls;
      const auto work = [times] {
        uint64_t data[2] = {};
        for (uint64_t i = 1; i <= times; ++i) {
          tsomon_test_probed(data, i);
        }
      };
      std::thread started(work);
      work();
      started.join();
      orders_->done.fetch_add(2);
    }
  }

  Orders* orders_ = nullptr;
  pid_t pid_ = -1;
};

// Where the function is, in memory and in the file.
struct Place {
  uint64_t address = reinterpret_cast<uint64_t>(&tsomon_test_probed);
  uint64_t offset = 0;
  Place() {
    const auto mappings = read_mappings(::getpid());
    REQUIRE(mappings);
    for (const Mapping& mapping : *mappings) {
      if (address >= mapping.begin && address < mapping.end) {
        offset = address - mapping.begin + mapping.offset;
      }
    }
    REQUIRE(offset != 0);
  }
};

bool code_is_as_here(pid_t pid, const Place& place) {
  char code[8] = {};
  std::ifstream memory("/proc/" + std::to_string(pid) + "/mem", std::ios::binary);
  memory.seekg(static_cast<std::streamoff>(place.address));
  memory.read(code, sizeof code);
  return memory && std::memcmp(code, reinterpret_cast<const void*>(place.address), 8) == 0;
}

using Create = std::function<Result<std::unique_ptr<Uprobes>>(pid_t, size_t ring)>;

Result<std::unique_ptr<Uprobes>> create_bpf(pid_t, size_t ring) {
  auto created = BpfUprobes::create(ring);
  if (!created) {
    return tl::unexpected<Error>(created.error());
  }
  return std::unique_ptr<Uprobes>(std::move(*created));
}

// Each thread's hits are those of its calls, one after the other.
void check_hits(std::vector<Hit> hits, const Place& place, uint64_t times) {
  std::stable_sort(hits.begin(), hits.end(),
                   [](const Hit& a, const Hit& b) { return a.time < b.time; });
  std::map<uint32_t, std::vector<Hit>> threads;
  for (const Hit& hit : hits) {
    threads[hit.thread].push_back(hit);
  }
  CHECK(threads.size() == Callers::kThreads);
  for (const auto& thread : threads) {
    CAPTURE(thread.first);
    const std::vector<Hit>& own = thread.second;
    REQUIRE(own.size() == 2 * times);
    uint64_t wrong = 0;
    for (size_t i = 0; i < own.size(); ++i) {
      const bool store = i % 2 == 1;
      const x86::RegisterFile& registers = own[i].registers;
      const bool right =
          own[i].source == (store ? kStoreSource : kLoadSource) &&
          own[i].ip == place.address + (store ? kStore : 0) && own[i].kind == Hit::Kind::kProbe &&
          registers.get(x86::Register::kRsi) == i / 2 + 1 &&
          registers.get(x86::Register::kRdi) == own[0].registers.get(x86::Register::kRdi) &&
          registers.get(x86::Register::kRsp) == own[0].registers.get(x86::Register::kRsp) &&
          registers.get(x86::Register::kDirection) == 0U;
      wrong += right ? 0 : 1;
    }
    CHECK(wrong == 0);
  }
}

void check_source(const Create& create) {
  const Place place;
  Callers callers;
  auto probes = create(callers.pid(), size_t{4} << 20);
  if (!probes) {
    CHECK(probes.error().kind == ErrorKind::kEnvironment);
    MESSAGE(probes.error().message);
    return;
  }
  const std::string file = "/proc/" + std::to_string(callers.pid()) + "/exe";
  const std::vector<ProbePlace> load = {{place.offset, 0, kLoadSource, {}}};
  const std::vector<ProbePlace> store = {{place.offset + kStore, 0, kStoreSource, {}}};
  const std::vector<ProbePlace> both = {load[0], store[0]};
  std::vector<Hit> hits;
  const auto read = [&] { (*probes)->read(hits); };
  callers.call(1, read);  // both threads are there

  SUBCASE("all hits of threads that are there and that come, in one piece") {
    auto hold = (*probes)->attach(callers.pid(), file, both, nullptr);
    REQUIRE(hold);
    CHECK_FALSE(code_is_as_here(callers.pid(), place));
    callers.call(1000, read);
    hold->reset();
    read();
    CHECK((*probes)->lost() == 0);
    check_hits(hits, place, 1000);
    CHECK(code_is_as_here(callers.pid(), place));
    hits.clear();
    callers.call(100, read);
    CHECK(hits.empty());
  }
  SUBCASE("in two pieces, of which one goes") {
    auto first = (*probes)->attach(callers.pid(), file, load, nullptr);
    auto second = (*probes)->attach(callers.pid(), file, store, nullptr);
    REQUIRE(first);
    REQUIRE(second);
    callers.call(200, read);
    read();
    check_hits(hits, place, 200);
    hits.clear();
    first->reset();
    callers.call(50, read);
    read();
    CHECK(hits.size() == 50 * Callers::kThreads);
    CHECK(std::all_of(hits.begin(), hits.end(),
                      [](const Hit& hit) { return hit.source == kStoreSource; }));
    second->reset();
    CHECK(code_is_as_here(callers.pid(), place));
  }
  SUBCASE("a program that has gone takes nothing with it") {
    auto hold = (*probes)->attach(callers.pid(), file, both, nullptr);
    REQUIRE(hold);
    callers.call(10, read);
    read();
    ::kill(callers.pid(), SIGKILL);
    hold->reset();
    read();
    check_hits(hits, place, 10);
  }
  SUBCASE("what cannot be probed is refused with the number of the error") {
    int refused = 0;
    CHECK_FALSE((*probes)->attach(callers.pid(), "/nothing/there", both, &refused));
    CHECK(refused == ENOENT);
    CHECK(code_is_as_here(callers.pid(), place));
  }
}

void check_loss(const Create& create) {
  const Place place;
  Callers callers;
  auto probes = create(callers.pid(), size_t{16} << 10);
  if (!probes) {
    return;
  }
  const std::string file = "/proc/" + std::to_string(callers.pid()) + "/exe";
  auto hold = (*probes)->attach(callers.pid(), file, {{place.offset, 0, kLoadSource, {}}}, nullptr);
  REQUIRE(hold);
  callers.call(500, [] {});
  std::vector<Hit> hits;
  (*probes)->read(hits);
  hold->reset();
  CHECK(hits.size() < 500 * Callers::kThreads);
  CHECK((*probes)->lost() > 0);
}

// What is read from memory by number, of 8 bytes and less.
uint8_t numbers[1024];

// Contents as the program itself has them.
void check_memory() {
  for (size_t i = 0; i < sizeof numbers; ++i) {
    numbers[i] = static_cast<uint8_t>(i * 37 + i / 256);
  }
  const Place place;
  Callers callers;
  auto probes = create_bpf(callers.pid(), size_t{4} << 20);
  if (!probes) {
    return;
  }
  CHECK((*probes)->reads_memory());
  const std::string file = "/proc/" + std::to_string(callers.pid()) + "/exe";
  std::vector<Hit> hits;
  const auto read = [&] { (*probes)->read(hits); };
  const auto hits_with = [&](const MemoryOperand& memory) {
    hits.clear();
    auto hold = (*probes)->attach(callers.pid(), file,
                                  {{place.offset + kStore, 0, kStoreSource, memory}}, nullptr);
    REQUIRE(hold);
    callers.call(100, read);
    hold->reset();
    read();
    REQUIRE(hits.size() == 100 * Callers::kThreads);
  };
  const auto rsi = [](const Hit& hit) { return hit.registers.value(x86::Register::kRsi); };
  for (uint8_t shift = 0; shift < 4; ++shift) {
    CAPTURE(shift);
    MemoryOperand memory;
    memory.relative = true;
    memory.displacement = static_cast<int32_t>(reinterpret_cast<int64_t>(numbers) -
                                               static_cast<int64_t>(place.address + kStore));
    memory.index = x86::Register::kRsi;
    memory.shift = shift;
    memory.size = static_cast<uint8_t>(1 << shift);
    hits_with(memory);
    for (const Hit& hit : hits) {
      uint64_t expected = 0;
      std::memcpy(&expected, numbers + (rsi(hit) << shift), memory.size);
      REQUIRE(hit.source == kStoreSource);
      REQUIRE(hit.memory == expected);
    }
  }
  MemoryOperand written;  // what the probed store has left there the time before
  written.base = x86::Register::kRdi;
  written.displacement = 8;
  written.size = 8;
  hits_with(written);
  CHECK(std::all_of(hits.begin(), hits.end(),
                    [&](const Hit& hit) { return hit.memory == rsi(hit) - 1; }));
  MemoryOperand nowhere;
  nowhere.base = x86::Register::kRsi;
  nowhere.displacement = -1;
  nowhere.size = 4;
  hits_with(nowhere);
  CHECK(std::none_of(hits.begin(), hits.end(), [](const Hit& hit) { return hit.memory; }));
  hits_with({});
  CHECK(std::none_of(hits.begin(), hits.end(), [](const Hit& hit) { return hit.memory; }));
}

}  // namespace

TEST_CASE("uprobes: contents of memory") { check_memory(); }

TEST_CASE("uprobes: through BPF") { check_source(create_bpf); }

TEST_CASE("uprobes: through perf") {
  check_source([](pid_t pid, size_t ring) { return create_perf_uprobes(pid, ring); });
}

TEST_CASE("uprobes: hits that find no room are counted") {
  check_loss(create_bpf);
  check_loss([](pid_t pid, size_t ring) { return create_perf_uprobes(pid, ring); });
}

}  // namespace tsomon::attach

#endif
