#include "decoders/pt/values/value_flow.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "decoders/pt/packets/sched_switches.h"
#include "decoders/pt/values/ptwrite.h"
#include "decoders/x86/decode.h"
#include "tso/support/open_file.h"

namespace tsomon::pt {
namespace {

using Kind = PathEntry::Kind;

constexpr uint32_t kMostBehindValue = 64;  // after a value

// The bytes of the sections, read when they are needed first.
class SectionBytes {
 public:
  explicit SectionBytes(const Input& input) : input_(input), bytes_(input.code.size()) {}

  // The section that is mapped there at that time; one past all when there is none.
  size_t find(int process, uint64_t ip, int64_t time) const {
    size_t best = input_.code.size();
    for (size_t i = 0; i < input_.code.size(); ++i) {
      const CodeSection& section = input_.code[i];
      const bool there = section.process == process && section.from <= time &&
                         ip >= section.address && ip - section.address < section.size;
      if (there && (best == input_.code.size() || section.from >= input_.code[best].from)) {
        best = i;
      }
    }
    return best;
  }

  size_t read(size_t index, uint64_t address, uint8_t* to, size_t size) {
    const CodeSection& section = input_.code[index];
    const std::string& bytes = load(index);
    const uint64_t at = address - section.address;
    if (address < section.address || at >= bytes.size()) {
      return 0;
    }
    return bytes.copy(reinterpret_cast<char*>(to), size, at);
  }

 private:
  const std::string& load(size_t index) {
    auto& [loaded, bytes] = bytes_[index];
    if (!loaded) {
      loaded = true;
      const CodeSection& section = input_.code[index];
      std::ifstream file;
      if (is_regular_file(section.file)) {
        file.open(section.file, std::ios::binary | std::ios::ate);
      }
      const auto end = file ? static_cast<uint64_t>(std::max<std::streamoff>(file.tellg(), 0)) : 0;
      if (section.offset < end) {
        bytes.resize(std::min(section.size, end - section.offset));
        file.seekg(static_cast<std::streamoff>(section.offset));
        file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        bytes.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
      }
    }
    return bytes;
  }

  const Input& input_;
  std::vector<std::pair<bool, std::string>> bytes_;
};

class ValueFlow {
 public:
  explicit ValueFlow(const Input& input) : input_(input), bytes_(input), running_(input) {
    flow_.code.push_back(std::make_unique<CodeCache>());
  }

  Flow run() {
    for (const TraceStream& stream : input_.streams) {
      lost_ += stream.parts.size();
      for_each_part(stream, [&](std::string_view part) { read(stream, part); });
    }
    for (auto& [id, values] : threads_) {
      join(id, values);
    }
    report();
    return std::move(flow_);
  }

 private:
  struct Placed {
    PtwriteValue written;
    const CodeBlock* writes = nullptr;   // the PTWRITE
    const CodeBlock* follows = nullptr;  // null: a branch follows at once
  };
  using Ids = SchedSwitches::Ids;

  void read(const TraceStream& stream, std::string_view part) {
    PtwriteReader reader(part, input_.clock);
    std::vector<PtwriteValue> values;
    while (reader.next(values)) {
      for (const PtwriteValue& value : values) {
        lost_ += value.gap ? 1 : 0;
        add(stream, value);
      }
    }
    lost_ += reader.lost() ? 1 : 0;
  }

  void add(const TraceStream& stream, const PtwriteValue& value) {
    const Ids ids = running_.on(stream, value.lo, value.hi);
    if (ids.second == 0) {
      ++of_nobody_;
    } else if (value.ip == 0) {
      ++without_address_;
    } else if (Placed placed{value}; !find_code(ids.first, placed)) {
      ++without_code_;
    } else {
      threads_[ids].push_back(placed);
    }
  }

  bool find_code(int process, Placed& placed) {
    const uint64_t ip = placed.written.ip;
    const size_t section = bytes_.find(process, ip, placed.written.lo);
    if (section == input_.code.size()) {
      return false;
    }
    const auto [known, is_new] = counts_.try_emplace({section, ip}, Counts{});
    if (is_new) {
      known->second = count(section, ip);
    }
    if (known->second.follows == kNone) {
      return false;
    }
    const auto read = [&](uint64_t address, uint8_t* to, size_t size) {
      return bytes_.read(section, address, to, size);
    };
    CodeCache& cache = *flow_.code.front();
    placed.writes = cache.find(section, ip, 1, read);
    if (placed.writes != nullptr && known->second.follows != 0) {
      placed.follows = cache.find(section, known->second.next, known->second.follows, read);
    }
    return placed.writes != nullptr;
  }

  static constexpr uint32_t kNone = ~uint32_t{0};
  struct Counts {
    uint64_t next = 0;         // after the PTWRITE
    uint32_t follows = kNone;  // instructions; kNone: there is no PTWRITE
  };

  Counts count(size_t section, uint64_t ip) {
    Counts counts;
    for (uint32_t number = 0; number <= kMostBehindValue; ++number) {
      std::array<uint8_t, x86::kMaxInstruction> code{};
      const size_t size = bytes_.read(section, ip, code.data(), code.size());
      const auto instruction = x86::decode(code.data(), size, ip);
      if (!instruction || instruction->ptwrite != (number == 0)) {
        break;
      }
      ip = instruction->next();
      if (number == 0) {
        counts.next = ip;
      }
      counts.follows = number;
      if (instruction->branch != x86::Branch::kNone) {
        break;  // its own accesses take place
      }
    }
    return counts;
  }

  void join(const Ids& ids, std::vector<Placed>& values) {
    std::stable_sort(values.begin(), values.end(), [](const Placed& left, const Placed& right) {
      return left.written.lo < right.written.lo;
    });
    flow_.threads.push_back({ids.first, ids.second, {}});
    auto& entries = flow_.threads.back().entries;
    for (const Placed& placed : values) {
      const auto push = [&](Kind kind, const CodeBlock* block, int64_t hi) {
        entries.push_back({kind, false, {block}, placed.written.lo, hi});
        flow_.instructions += block == nullptr ? 0 : block->instructions.size();
      };
      push(Kind::kGap, nullptr, placed.written.hi);
      push(Kind::kBlock, placed.writes, placed.written.hi);
      push(Kind::kValue, nullptr, placed.written.hi);
      entries.back().value = placed.written.value;
      if (placed.follows != nullptr) {
        // Some time after the value: before the thread's next one.
        push(Kind::kBlock, placed.follows, kTimeMax);
      }
    }
  }

  void report() {
    const auto problem = [&](uint64_t count, const char* what) {
      if (count != 0) {
        flow_.problems.push_back(fmt::format("{} {}", count, what));
      }
    };
    flow_.problems.emplace_back("no branches were traced: only what follows a PTWRITE is known");
    problem(lost_, "times packets were lost");
    problem(of_nobody_, "values of which it cannot be told which thread wrote them");
    problem(without_address_, "values without the address of their PTWRITE (fup_on_ptw=1)");
    problem(without_code_, "values whose code is not known");
    flow_.gaps += lost_;
  }

  const Input& input_;
  SectionBytes bytes_;
  SchedSwitches running_;
  std::map<Ids, std::vector<Placed>> threads_;
  std::map<std::pair<size_t, uint64_t>, Counts> counts_;
  Flow flow_;
  uint64_t lost_ = 0;
  uint64_t of_nobody_ = 0;
  uint64_t without_address_ = 0;
  uint64_t without_code_ = 0;
};

}  // namespace

Flow decode_ptwrites(const Input& input) { return ValueFlow(input).run(); }

}  // namespace tsomon::pt
