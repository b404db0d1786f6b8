#include "monitor/attach/bpf_uprobes.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "monitor/perf_events/perf_event.h"
#include "monitor/process/elf_image.h"
#include "monitor/process/target.h"

namespace tsomon::attach {
namespace {

// Newer than the headers of the distribution.
constexpr uint32_t kAttachUprobeMulti = 48;  // BPF_TRACE_UPROBE_MULTI

// The part of union bpf_attr that BPF_LINK_CREATE reads for uprobes.
struct LinkAttributes {
  uint32_t program = 0;
  uint32_t target = 0;
  uint32_t attach_type = kAttachUprobeMulti;
  uint32_t flags = 0;
  uint64_t path = 0;
  uint64_t offsets = 0;
  uint64_t counters = 0;
  uint64_t cookies = 0;
  uint32_t count = 0;
  uint32_t uprobe_flags = 0;
  uint32_t pid = 0;
  uint32_t unused = 0;
};
static_assert(sizeof(LinkAttributes) == 64);

// What the program writes for a hit.
constexpr size_t kSavedRegisters = 21;  // struct pt_regs of x86-64
struct RingRecord {
  uint64_t time;
  uint64_t process_and_thread;
  uint64_t source;
  uint64_t registers[kSavedRegisters];
  uint64_t memory;
  uint64_t memory_read;  // 1: it could be
};
static_assert(sizeof(RingRecord) == 208);

// pt_regs: r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs flags rsp ss
constexpr size_t kRip = 16;
constexpr size_t kFlags = 18;
constexpr std::array<uint8_t, 16> kPlaceOfRegister = {10, 11, 12, 5, 19, 4, 13, 14,
                                                      9,  8,  7,  6, 3,  2, 1,  0};

// The cookie of a probe: its number, and where in pt_regs the parts of an address are.
constexpr unsigned kSourceBits = 18;
constexpr unsigned kBaseAt = 18;
constexpr unsigned kIndexAt = 23;
constexpr unsigned kShiftAt = 28;
constexpr unsigned kSizeAt = 30;
constexpr unsigned kDisplacementAt = 32;
constexpr uint64_t kNoPlace = 31;
constexpr uint32_t kSourceMask = (1U << kSourceBits) - 1;

uint64_t place_of(x86::Register name) {
  const auto number = static_cast<size_t>(name);
  return number < kPlaceOfRegister.size() ? kPlaceOfRegister[number] : kNoPlace;
}

uint64_t cookie_of(const ProbePlace& place) {
  TSOMON_CHECK(place.source <= kSourceMask, "the number of a probe fits");
  const MemoryOperand& memory = place.memory;
  if (memory.size == 0) {
    return place.source | kNoPlace << kBaseAt;
  }
  const uint64_t size = memory.size == 8 ? 3 : memory.size == 4 ? 2 : memory.size == 2 ? 1 : 0;
  return place.source | (memory.relative ? kRip : place_of(memory.base)) << kBaseAt |
         place_of(memory.index) << kIndexAt | uint64_t{memory.shift} << kShiftAt | size << kSizeAt |
         uint64_t{static_cast<uint32_t>(memory.displacement)} << kDisplacementAt;
}

long bpf(int command, void* attributes, size_t size) {
  return ::syscall(SYS_bpf, command, attributes, size);
}

constexpr uint8_t kLoadWide = BPF_DW;         // BPF_LD, BPF_IMM: 0
constexpr uint8_t kAddImmediate = BPF_ALU64;  // BPF_ADD, BPF_K: 0
constexpr uint8_t kAddValue = 0;              // BPF_ADD

class Assembler {
 public:
  void add(uint8_t code, uint8_t destination, uint8_t source, int16_t offset, int32_t immediate) {
    bpf_insn instruction{};
    instruction.code = code;
    instruction.dst_reg = destination & 15U;
    instruction.src_reg = source & 15U;
    instruction.off = offset;
    instruction.imm = immediate;
    code_.push_back(instruction);
  }
  void move(uint8_t destination, uint8_t source) {
    add(BPF_ALU64 | BPF_MOV | BPF_X, destination, source, 0, 0);
  }
  void set(uint8_t destination, int32_t value) {
    add(BPF_ALU64 | BPF_MOV | BPF_K, destination, 0, 0, value);
  }
  void map(uint8_t destination, int fd) {
    add(kLoadWide, destination, BPF_PSEUDO_MAP_FD, 0, fd);
    add(0, 0, 0, 0, 0);
  }
  void set_wide(uint8_t destination, uint64_t value) {
    add(kLoadWide, destination, 0, 0, static_cast<int32_t>(value));
    add(0, 0, 0, 0, static_cast<int32_t>(value >> 32));
  }
  void call(int32_t helper) { add(BPF_JMP | BPF_CALL, 0, 0, 0, helper); }
  void load(uint8_t destination, uint8_t from, size_t offset) {
    add(BPF_LDX | BPF_MEM | BPF_DW, destination, from, static_cast<int16_t>(offset), 0);
  }
  void store(uint8_t to, size_t offset, uint8_t source) {
    add(BPF_STX | BPF_MEM | BPF_DW, to, source, static_cast<int16_t>(offset), 0);
  }
  void change(uint8_t operation, uint8_t destination, int32_t by) {
    add(static_cast<uint8_t>(BPF_ALU64 | operation | BPF_K), destination, 0, 0, by);
  }
  void change_by(uint8_t operation, uint8_t destination, uint8_t by) {
    add(static_cast<uint8_t>(BPF_ALU64 | operation | BPF_X), destination, by, 0, 0);
  }
  size_t jump_if_above(uint8_t tested, int32_t limit) {
    add(BPF_JMP | BPF_JGT | BPF_K, tested, 0, 0, limit);
    return code_.size() - 1;
  }
  size_t jump_if_not_zero(uint8_t tested) {
    add(BPF_JMP | BPF_JNE | BPF_K, tested, 0, 0, 0);
    return code_.size() - 1;
  }
  void exit() {
    set(BPF_REG_0, 0);
    add(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
  }
  // Jumps when the register is 0; land() makes the next instruction the target.
  size_t jump_if_zero(uint8_t tested) {
    add(BPF_JMP | BPF_JEQ | BPF_K, tested, 0, 0, 0);
    return code_.size() - 1;
  }
  void land(size_t jump) { code_[jump].off = static_cast<int16_t>(code_.size() - jump - 1); }
  const std::vector<bpf_insn>& code() const { return code_; }

 private:
  std::vector<bpf_insn> code_;
};

// Reads the location that the cookie describes into the record.
void read_memory(Assembler& a, uint8_t record, uint8_t cookie) {
  const auto field = [&](uint8_t to, unsigned at, uint32_t mask) {
    a.move(to, cookie);
    a.change(BPF_RSH, to, static_cast<int32_t>(at));
    a.change(BPF_AND, to, static_cast<int32_t>(mask));
  };
  // The register whose place is in `place`, of those that the record has.
  const auto load_register = [&](uint8_t to, uint8_t place) {
    a.change(BPF_LSH, place, 3);
    a.change_by(kAddValue, place, record);
    a.load(to, place, offsetof(RingRecord, registers));
  };
  a.set(BPF_REG_1, 0);
  a.store(record, offsetof(RingRecord, memory), BPF_REG_1);
  a.store(record, offsetof(RingRecord, memory_read), BPF_REG_1);
  field(BPF_REG_1, kBaseAt, 31);
  const size_t nothing = a.jump_if_above(BPF_REG_1, kSavedRegisters - 1);
  load_register(BPF_REG_3, BPF_REG_1);
  field(BPF_REG_1, kIndexAt, 31);
  const size_t no_index = a.jump_if_above(BPF_REG_1, kSavedRegisters - 1);
  load_register(BPF_REG_2, BPF_REG_1);
  field(BPF_REG_1, kShiftAt, 3);
  a.change_by(BPF_LSH, BPF_REG_2, BPF_REG_1);
  a.change_by(kAddValue, BPF_REG_3, BPF_REG_2);
  a.land(no_index);
  a.move(BPF_REG_1, cookie);
  a.change(BPF_ARSH, BPF_REG_1, kDisplacementAt);
  a.change_by(kAddValue, BPF_REG_3, BPF_REG_1);
  field(BPF_REG_1, kSizeAt, 3);
  a.set(BPF_REG_2, 1);
  a.change_by(BPF_LSH, BPF_REG_2, BPF_REG_1);
  a.change(BPF_AND, BPF_REG_2, 15);  // as it is; the kernel wants to see it
  a.move(BPF_REG_1, record);
  a.change(kAddValue, BPF_REG_1, offsetof(RingRecord, memory));
  a.call(BPF_FUNC_probe_read_user);
  const size_t unread = a.jump_if_not_zero(BPF_REG_0);
  a.set(BPF_REG_1, 1);
  a.store(record, offsetof(RingRecord, memory_read), BPF_REG_1);
  a.land(unread);
  a.land(nothing);
}

// `numbers`: the namespace that threads are numbered in; nothing: the first one.
std::vector<bpf_insn> assemble(int ring, int counter, const std::optional<PidNamespace>& numbers) {
  constexpr uint8_t kContext = BPF_REG_6;
  constexpr uint8_t kRecord = BPF_REG_7;
  constexpr uint8_t kTime = BPF_REG_8;
  constexpr uint8_t kCookie = BPF_REG_9;
  constexpr int32_t kGetAttachCookie = 174;
  constexpr int32_t kNoWakeup = 1;  // BPF_RB_NO_WAKEUP: the reader looks by itself
  Assembler a;
  a.move(kContext, BPF_REG_1);
  a.call(BPF_FUNC_ktime_get_ns);
  a.move(kTime, BPF_REG_0);
  a.map(BPF_REG_1, ring);
  a.set(BPF_REG_2, sizeof(RingRecord));
  a.set(BPF_REG_3, 0);
  a.call(BPF_FUNC_ringbuf_reserve);
  const size_t full = a.jump_if_zero(BPF_REG_0);
  a.move(kRecord, BPF_REG_0);
  a.store(kRecord, offsetof(RingRecord, time), kTime);
  if (numbers) {
    a.set_wide(BPF_REG_1, numbers->device);
    a.set_wide(BPF_REG_2, numbers->inode);
    a.move(BPF_REG_3, kRecord);
    a.add(kAddImmediate, BPF_REG_3, 0, 0, offsetof(RingRecord, process_and_thread));
    a.set(BPF_REG_4, sizeof(RingRecord::process_and_thread));
    a.call(BPF_FUNC_get_ns_current_pid_tgid);
  } else {
    a.call(BPF_FUNC_get_current_pid_tgid);
    a.store(kRecord, offsetof(RingRecord, process_and_thread), BPF_REG_0);
  }
  a.move(BPF_REG_1, kContext);
  a.call(kGetAttachCookie);
  a.move(kCookie, BPF_REG_0);
  a.store(kRecord, offsetof(RingRecord, source), kCookie);
  for (size_t i = 0; i < kSavedRegisters; ++i) {
    a.load(BPF_REG_1, kContext, 8 * i);
    a.store(kRecord, offsetof(RingRecord, registers) + 8 * i, BPF_REG_1);
  }
  read_memory(a, kRecord, kCookie);
  a.move(BPF_REG_1, kRecord);
  a.set(BPF_REG_2, kNoWakeup);
  a.call(BPF_FUNC_ringbuf_submit);
  a.exit();
  a.land(full);
  // counter[0] += 1
  a.add(BPF_ST | BPF_MEM | BPF_W, BPF_REG_10, 0, -4, 0);
  a.map(BPF_REG_1, counter);
  a.move(BPF_REG_2, BPF_REG_10);
  a.add(kAddImmediate, BPF_REG_2, 0, 0, -4);
  a.call(BPF_FUNC_map_lookup_elem);
  const size_t absent = a.jump_if_zero(BPF_REG_0);
  a.set(BPF_REG_1, 1);
  a.add(BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_0, BPF_REG_1, 0, BPF_ADD);
  a.land(absent);
  a.exit();
  return a.code();
}

tl::unexpected<Error> bpf_refused(const char* what, int error) {
  return fail(ErrorKind::kEnvironment,
              fmt::format("{}: {}; {}", what, std::strerror(error),
                          error == EPERM || error == EACCES
                              ? "run as root, or with CAP_BPF and CAP_PERFMON"
                              : "use a kernel from 6.12 on with CONFIG_BPF_SYSCALL and "
                                "CONFIG_UPROBE_EVENTS"));
}

// A place for probes of our own. The kernel does not probe every instruction; it does this one.
__attribute__((noinline)) void probed_for_trial() { asm volatile("nop" : : : "memory"); }

}  // namespace

int64_t hit_clock() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

Result<std::unique_ptr<BpfUprobes>> BpfUprobes::create(size_t ring_bytes) {
  std::unique_ptr<BpfUprobes> probes(new BpfUprobes);
  if (auto loaded = probes->load(ring_bytes); !loaded) {
    return tl::unexpected<Error>(loaded.error());
  }
  if (auto tried = probes->try_on_self(); !tried) {
    return tl::unexpected<Error>(tried.error());
  }
  return probes;
}

BpfUprobes::~BpfUprobes() {
  if (consumer_ != nullptr) {
    ::munmap(consumer_, kPage);
  }
  if (producer_ != nullptr) {
    ::munmap(const_cast<char*>(producer_), kPage + 2 * ring_bytes_);
  }
  if (lost_ != nullptr) {
    ::munmap(const_cast<uint64_t*>(lost_), kPage);
  }
}

Result<bool> BpfUprobes::load(size_t ring_bytes) {
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.map_type = BPF_MAP_TYPE_RINGBUF;
  attributes.max_entries = static_cast<uint32_t>(ring_bytes);
  ring_ = Descriptor(static_cast<int>(bpf(BPF_MAP_CREATE, &attributes, sizeof attributes)));
  if (!ring_.is_open()) {
    return bpf_refused("a BPF ring cannot be created", errno);
  }
  std::memset(&attributes, 0, sizeof attributes);
  attributes.map_type = BPF_MAP_TYPE_ARRAY;
  attributes.key_size = 4;
  attributes.value_size = 8;
  attributes.max_entries = 1;
  attributes.map_flags = BPF_F_MMAPABLE;
  counter_ = Descriptor(static_cast<int>(bpf(BPF_MAP_CREATE, &attributes, sizeof attributes)));
  if (!counter_.is_open()) {
    return bpf_refused("a BPF map cannot be created", errno);
  }
  const std::vector<bpf_insn> code = assemble(ring_.get(), counter_.get(), nested_pid_namespace());
  std::memset(&attributes, 0, sizeof attributes);
  attributes.prog_type = BPF_PROG_TYPE_KPROBE;
  attributes.expected_attach_type = static_cast<bpf_attach_type>(kAttachUprobeMulti);
  attributes.insns = reinterpret_cast<uint64_t>(code.data());
  attributes.insn_cnt = static_cast<uint32_t>(code.size());
  attributes.license = reinterpret_cast<uint64_t>("GPL");
  program_ = Descriptor(static_cast<int>(bpf(BPF_PROG_LOAD, &attributes, sizeof attributes)));
  if (!program_.is_open()) {
    return bpf_refused("the BPF program for uprobes cannot be loaded", errno);
  }
  ring_bytes_ = ring_bytes;
  void* const consumer = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, ring_.get(), 0);
  consumer_ = consumer == MAP_FAILED ? nullptr : static_cast<uint64_t*>(consumer);
  void* const producer =
      ::mmap(nullptr, kPage + 2 * ring_bytes, PROT_READ, MAP_SHARED, ring_.get(), kPage);
  producer_ = producer == MAP_FAILED ? nullptr : static_cast<const char*>(producer);
  void* const lost = ::mmap(nullptr, kPage, PROT_READ, MAP_SHARED, counter_.get(), 0);
  lost_ = lost == MAP_FAILED ? nullptr : static_cast<const uint64_t*>(lost);
  if (consumer_ == nullptr || producer_ == nullptr || lost_ == nullptr) {
    return bpf_refused("the BPF ring cannot be mapped", errno);
  }
  return true;
}

Result<ProbeHold> BpfUprobes::attach(pid_t pid, const std::string& file,
                                     const std::vector<ProbePlace>& places, int* refused) {
  std::vector<uint64_t> offsets;
  std::vector<uint64_t> counters;
  std::vector<uint64_t> cookies;
  bool counted = false;
  for (const ProbePlace& place : places) {
    offsets.push_back(place.offset);
    counters.push_back(place.semaphore);
    cookies.push_back(cookie_of(place));
    counted |= place.semaphore != 0;
  }
  LinkAttributes link;
  link.program = static_cast<uint32_t>(program_.get());
  link.path = reinterpret_cast<uint64_t>(file.c_str());
  link.offsets = reinterpret_cast<uint64_t>(offsets.data());
  link.counters = counted ? reinterpret_cast<uint64_t>(counters.data()) : 0;
  link.cookies = reinterpret_cast<uint64_t>(cookies.data());
  link.count = static_cast<uint32_t>(places.size());
  link.pid = static_cast<uint32_t>(pid);
  Descriptor created(static_cast<int>(bpf(BPF_LINK_CREATE, &link, sizeof link)));
  if (!created.is_open()) {
    const int error = errno;
    if (refused != nullptr) {
      *refused = error;
    }
    return bpf_refused("uprobes cannot be set", error);
  }
  return ProbeHold(std::make_shared<Descriptor>(std::move(created)));
}

void BpfUprobes::read(std::vector<Hit>& hits) {
  constexpr uint32_t kBusy = 1U << 31;
  constexpr uint32_t kDiscarded = 1U << 30;
  constexpr size_t kHeader = 8;
  const char* const data = producer_ + kPage;
  const uint64_t until =
      __atomic_load_n(reinterpret_cast<const uint64_t*>(producer_), __ATOMIC_ACQUIRE);
  uint64_t at = __atomic_load_n(consumer_, __ATOMIC_RELAXED);
  while (at < until) {
    const char* const header = data + (at & (ring_bytes_ - 1));
    const uint32_t length =
        __atomic_load_n(reinterpret_cast<const uint32_t*>(header), __ATOMIC_ACQUIRE);
    if ((length & kBusy) != 0) {
      break;  // being written
    }
    const uint32_t size = length & ~(kBusy | kDiscarded);
    if ((length & kDiscarded) == 0 && size == sizeof(RingRecord)) {
      RingRecord record;
      std::memcpy(&record, header + kHeader, sizeof record);
      Hit hit;
      hit.time = static_cast<int64_t>(record.time);
      hit.thread = static_cast<uint32_t>(record.process_and_thread);
      hit.source = static_cast<uint32_t>(record.source) & kSourceMask;
      hit.ip = record.registers[kRip];
      for (size_t i = 0; i < kPlaceOfRegister.size(); ++i) {
        hit.registers.set(static_cast<x86::Register>(i), record.registers[kPlaceOfRegister[i]]);
      }
      hit.registers.set(x86::Register::kDirection, (record.registers[kFlags] >> 10) & 1);
      if (record.memory_read != 0) {
        hit.memory = record.memory;
      }
      hits.push_back(hit);
    }
    at += (kHeader + size + 7) & ~uint64_t{7};
  }
  __atomic_store_n(consumer_, at, __ATOMIC_RELEASE);
}

uint64_t BpfUprobes::lost() const { return __atomic_load_n(lost_, __ATOMIC_RELAXED); }

Result<bool> BpfUprobes::try_on_self() {
  const auto mappings = read_mappings(::getpid());
  if (!mappings) {
    return tl::unexpected<Error>(mappings.error());
  }
  const auto address = reinterpret_cast<uint64_t>(&probed_for_trial);
  for (const Mapping& mapping : *mappings) {
    if (address < mapping.begin || address >= mapping.end) {
      continue;
    }
    const auto link = attach(::getpid(), "/proc/self/exe",
                             {{address - mapping.begin + mapping.offset, 0, 0, {}}}, nullptr);
    if (!link) {
      return tl::unexpected<Error>(link.error());
    }
    probed_for_trial();
    std::thread([] { probed_for_trial(); }).join();
    std::vector<Hit> hits;
    read(hits);
    if (hits.size() == 2 && hits[0].thread == static_cast<uint32_t>(::gettid()) &&
        hits[0].thread != hits[1].thread && hits[0].ip == address) {
      return true;
    }
    return fail(ErrorKind::kEnvironment,
                fmt::format("a uprobe told {} of 2 calls on two threads; use a kernel from 6.12 on",
                            hits.size()));
  }
  return fail(ErrorKind::kEnvironment, "the code of this program was not found in its mappings");
}

}  // namespace tsomon::attach
