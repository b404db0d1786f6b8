#include "monitor/process/waiting_loops.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "monitor/process/function_code.h"

namespace tsomon {
namespace {

using x86::Instruction;
using x86::Operation;
using x86::Register;

// The hooks of atomic loads, as g++ and clang call them.
bool loads_atomically(std::string_view name) {
  return name.starts_with("__atomic_load_") ||
         (name.starts_with("__tsan_atomic") && name.ends_with("_load"));
}

// The hooks of plain stores do not store themselves.
bool stores_nothing(std::string_view name) {
  constexpr std::array<std::string_view, 7> kRest{"sched_yield",     "nanosleep", "clock_nanosleep",
                                                  "usleep",          "sleep",     "pthread_yield",
                                                  "__errno_location"};
  constexpr std::array<std::string_view, 7> kHooks{
      "__tsan_read",           "__tsan_write",
      "__tsan_unaligned_read", "__tsan_unaligned_write",
      "__tsan_volatile_read",  "__tsan_volatile_write",
      "__tsan_func_"};
  return loads_atomically(name) ||
         std::any_of(kHooks.begin(), kHooks.end(),
                     [&](std::string_view hook) { return name.starts_with(hook); }) ||
         std::find(kRest.begin(), kRest.end(), name) != kRest.end();
}

// What a register holds, seen from where the load returned.
struct Value {
  enum class Kind : uint8_t {
    kUnknown,
    kFixed,   // `offset`, the same every time
    kFrame,   // from the frame, `offset` from `of`: likewise, if nothing is stored there
    kOf,      // `offset` from what `of` held then
    kLoaded,  // depends on what was read
  };
  Kind kind = Kind::kUnknown;
  Register of = Register::kNone;
  int64_t offset = 0;

  bool operator==(const Value&) const = default;
};

bool leaves_flags(const Instruction& from) {
  switch (from.operation) {
    case Operation::kMove:
    case Operation::kMoveSigned:
    case Operation::kLea:
    case Operation::kPush:
    case Operation::kPop:
    case Operation::kExchange:
    case Operation::kSignFill:
    case Operation::kSwapBytes:
    case Operation::kNot:
      return true;
    case Operation::kClobber:
      return from.selects || (from.reads == 0 && from.writes == 0);
    default:
      return false;
  }
}

constexpr uint64_t kCall = 5;     // bytes of a direct one
constexpr size_t kMostLoops = 8;  // that one look may stand before
constexpr unsigned kGeneral = 16;
constexpr x86::RegisterMask kCalleeSaved =
    x86::mask_of(Register::kRbx) | x86::mask_of(Register::kRbp) | x86::mask_of(Register::kRsp) |
    x86::mask_of(Register::kR12) | x86::mask_of(Register::kR13) | x86::mask_of(Register::kR14) |
    x86::mask_of(Register::kR15);

// One way through the code.
struct Way {
  uint64_t at = 0;
  bool has_frame_pointer = false;
  std::array<Value, kGeneral> registers;
  bool flags_loaded = false;
  bool stored = false;  // to the frame
  // Where branches that depended on what was read would have gone else.
  std::vector<uint64_t> exits;

  bool decided() const { return !exits.empty(); }

  Value& value(Register name) { return registers[static_cast<unsigned>(name)]; }

  void after_call() {
    for (unsigned i = 0; i < kGeneral; ++i) {
      if ((kCalleeSaved & x86::mask_of(static_cast<Register>(i))) == 0) {
        registers[i] = {};
      }
    }
    flags_loaded = false;
  }

  Value of(const x86::Address& address) {
    if (address.constant()) {
      return {Value::Kind::kFixed, Register::kNone, address.displacement};
    }
    if (address.base == Register::kNone || address.index != Register::kNone ||
        address.segment != Register::kNone) {
      return {};
    }
    Value sum = value(address.base);
    sum.offset += address.displacement;
    return sum.kind == Value::Kind::kFixed || sum.kind == Value::Kind::kOf ? sum : Value();
  }

  // What the operand is, before the instruction.
  Value of(const Instruction& from, const x86::Operand& operand) {
    switch (operand.kind) {
      case x86::Operand::Kind::kRegister:
        return static_cast<unsigned>(operand.reg) < kGeneral ? value(operand.reg) : Value();
      case x86::Operand::Kind::kImmediate:
        return {Value::Kind::kFixed, Register::kNone, from.immediate};
      case x86::Operand::Kind::kAddress:
        return of(from.lea);
      case x86::Operand::Kind::kMemory: {
        const Value where = from.access_count == 0 ? Value() : of(from.accesses[0].address);
        const bool in_frame =
            where.kind == Value::Kind::kOf &&
            (where.of == Register::kRsp || (has_frame_pointer && where.of == Register::kRbp));
        return in_frame ? Value{Value::Kind::kFrame, where.of, where.offset} : Value();
      }
      default:
        return {};
    }
  }

  void execute(const Instruction& from) {
    const Value source = of(from, from.source);
    const bool depends = reads_loaded(from) || (from.selects && flags_loaded);
    const bool copies = (from.operation == Operation::kMove || from.operation == Operation::kLea) &&
                        from.destination.is_register();
    for (unsigned i = 0; i < kGeneral; ++i) {
      if ((from.writes & x86::mask_of(static_cast<Register>(i))) != 0) {
        registers[i] = depends ? Value{Value::Kind::kLoaded, Register::kNone, 0} : Value();
      }
    }
    if (copies && static_cast<unsigned>(from.destination.reg) < kGeneral) {
      Value& to = value(from.destination.reg);
      to = from.destination.size >= 8 || source.kind != Value::Kind::kOf ? source : Value();
    }
    flags_loaded = leaves_flags(from) ? flags_loaded : depends;
  }

  bool reads_loaded(const Instruction& from) const {
    for (unsigned i = 0; i < kGeneral; ++i) {
      if ((from.reads & x86::mask_of(static_cast<Register>(i))) != 0 &&
          registers[i].kind == Value::Kind::kLoaded) {
        return true;
      }
    }
    return false;
  }

  // What the call gets as its first argument has been the same the last time.
  bool same_argument() {
    const Value argument = value(Register::kRdi);
    if (argument.kind != Value::Kind::kOf) {
      return argument.kind == Value::Kind::kFixed ||
             (argument.kind == Value::Kind::kFrame && !stored);
    }
    return value(argument.of) == Value{Value::Kind::kOf, argument.of, 0};
  }
};

// Registers as they are where the way begins.
Way way_from(uint64_t address, const FunctionCode& code) {
  Way way;
  way.at = address;
  way.has_frame_pointer = code.has_frame_pointer();
  for (unsigned i = 0; i < kGeneral; ++i) {
    way.registers[i] = {Value::Kind::kOf, static_cast<Register>(i), 0};
  }
  return way;
}

Way way_behind_load(uint64_t returns_to, const FunctionCode& code) {
  Way way = way_from(returns_to, code);
  way.after_call();
  way.value(Register::kRax).kind = Value::Kind::kLoaded;
  return way;
}

bool stores(const Instruction& from) {
  return std::any_of(from.begin(), from.end(), [](const x86::Access& access) {
    return access.kind != x86::AccessKind::kLoad && !access.stack;
  });
}

}  // namespace

bool WaitingLoops::is_called(uint64_t function, bool (*what)(std::string_view name)) const {
  const std::vector<attach::Symbol>& all = image_.functions();
  const auto first = std::lower_bound(
      all.begin(), all.end(), function,
      [](const attach::Symbol& symbol, uint64_t wanted) { return symbol.address < wanted; });
  for (auto at = first; at != all.end() && at->address == function; ++at) {
    if (what(at->text().substr(0, at->text().find('@')))) {
      return true;
    }
  }
  return false;
}

bool WaitingLoops::stores_nothing_elsewhere(uint64_t function, unsigned calls,
                                            size_t* steps) const {
  const FunctionCode code(image_, function);
  if (calls == kMostCalls || code.begin() != function) {
    return false;
  }
  std::vector<uint64_t> ways{function};
  std::set<uint64_t> seen;
  while (!ways.empty()) {
    const uint64_t at = ways.back();
    ways.pop_back();
    if (!seen.insert(at).second) {
      continue;
    }
    const auto next = (*steps)++ < kMostSteps ? code.at(at) : std::nullopt;
    if (!next || code.stores_elsewhere(*next)) {
      return false;
    }
    switch (next->branch) {
      case x86::Branch::kReturn:
        continue;
      case x86::Branch::kNone:
        break;
      case x86::Branch::kConditional:
        ways.push_back(next->target);
        break;
      case x86::Branch::kJump:
        ways.push_back(next->target);
        continue;
      case x86::Branch::kCall:
        if (!is_called(next->target, stores_nothing) &&
            !stores_nothing_elsewhere(next->target, calls + 1, steps)) {
          return false;
        }
        break;
      default:
        return false;
    }
    ways.push_back(next->next());
  }
  return true;
}

// All ways from behind a load that store nothing elsewhere: at each later load that they come to `comes_to` is asked.
template <typename ComesTo>
void WaitingLoops::walk(const FunctionCode& code, uint64_t returns_to,
                        const ComesTo& comes_to) const {
  std::vector<Way> ways{way_behind_load(returns_to, code)};
  std::set<std::pair<uint64_t, bool>> seen;
  size_t steps = 0;  // of what is called
  while (!ways.empty() && seen.size() < kMostSteps) {
    Way way = std::move(ways.back());
    ways.pop_back();
    const auto next = seen.emplace(way.at, way.decided()).second ? code.at(way.at) : std::nullopt;
    if (!next || code.stores_elsewhere(*next)) {
      continue;
    }
    way.at = next->next();
    way.stored = way.stored || stores(*next);
    switch (next->branch) {
      case x86::Branch::kNone:
        way.execute(*next);
        ways.push_back(std::move(way));
        break;
      case x86::Branch::kJump:
        way.at = next->target;
        ways.push_back(std::move(way));
        break;
      case x86::Branch::kConditional: {
        Way taken = way;
        taken.at = next->target;
        if (way.flags_loaded) {
          way.exits.push_back(code.behind_jumps(taken.at));
          taken.exits.push_back(code.behind_jumps(way.at));
        }
        ways.push_back(std::move(way));
        ways.push_back(std::move(taken));
        break;
      }
      case x86::Branch::kCall: {
        const bool loads = is_called(next->target, loads_atomically);
        if (loads && way.decided()) {
          comes_to(way);
        }
        if (next->next() != returns_to && (loads || is_called(next->target, stores_nothing) ||
                                           stores_nothing_elsewhere(next->target, 0, &steps))) {
          way.after_call();
          ways.push_back(std::move(way));
        }
        break;
      }
      default:
        break;
    }
  }
}

std::set<uint64_t> WaitingLoops::exits_of_loop(const FunctionCode& code,
                                               uint64_t returns_to) const {
  std::set<uint64_t> exits;
  walk(code, returns_to, [&](Way& way) {
    if (way.at == returns_to && way.same_argument()) {
      exits.insert(way.exits.begin(), way.exits.end());
    }
  });
  return exits;
}

// The first look of a loop stands before it where the compiler has turned the loop round: it goes on into the loop, or to where the
// loop ends.
bool WaitingLoops::comes_before_loop(const FunctionCode& code, uint64_t returns_to) const {
  Way before = way_from(0, code);
  for (const Instruction& each : code.straight_to(returns_to - kCall)) {
    before.stored = before.stored || stores(each);
    before.execute(each);
  }
  const Value argument = before.value(Register::kRdi);
  // What is looked at there is what was looked at here.
  const auto same = [&](Way& way) {
    Value there = way.value(Register::kRdi);
    bool stored = before.stored;
    if (there.kind == Value::Kind::kOf) {
      const int64_t offset = there.offset;
      there = before.value(there.of);
      there.offset += offset;
      stored = stored || (there.kind == Value::Kind::kFrame && offset != 0);
    } else {
      stored = stored || way.stored;
    }
    return there == argument &&
           (there.kind == Value::Kind::kFixed || there.kind == Value::Kind::kOf ||
            (there.kind == Value::Kind::kFrame && !stored));
  };
  std::vector<std::pair<uint64_t, std::vector<uint64_t>>> loops;
  walk(code, returns_to, [&](Way& way) {
    if (way.at != returns_to && same(way)) {
      loops.emplace_back(way.at, way.exits);
    }
  });
  return std::any_of(loops.begin(), loops.begin() + std::min(loops.size(), kMostLoops),
                     [&](const auto& each) {
                       const std::set<uint64_t> exits = exits_of_loop(code, each.first);
                       return std::any_of(each.second.begin(), each.second.end(),
                                          [&](uint64_t exit) { return exits.count(exit) != 0; });
                     });
}

bool WaitingLoops::waits(uint64_t returns_to) const {
  const FunctionCode code(image_, returns_to - 1);
  const auto call = code.at(returns_to - kCall);
  return call && call->branch == x86::Branch::kCall && call->next() == returns_to &&
         is_called(call->target, loads_atomically) &&
         (!exits_of_loop(code, returns_to).empty() || comes_before_loop(code, returns_to));
}

}  // namespace tsomon
