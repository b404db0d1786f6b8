#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fnmatch.h>

#include "decoders/x86/dataflow.h"
#include "decoders/x86/decode.h"
#include "monitor/attach/planner.h"
#include "monitor/probe/function_name.h"
#include "monitor/probe/lock_name.h"

namespace tsomon::attach {

struct LockFunction {
  std::string_view name;
  LockRole role;
  LockResult result = LockResult::kZero;
};

namespace {

using x86::Instruction;
using x86::Register;

constexpr size_t kMaxCarried = 4;  // instructions between a probe and the access that it tells

// The kernel refuses uprobes on instructions with these prefixes.
bool can_be_probed(const uint8_t* bytes, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    switch (bytes[i]) {
      case 0xF0:  // lock
      case 0x26:  // es, cs, ss, ds
      case 0x2E:
      case 0x36:
      case 0x3E:
        return false;
      case 0x66:
      case 0x67:
      case 0xF2:
      case 0xF3:
      case 0x64:
      case 0x65:
        break;
      default:
        return true;
    }
  }
  return true;
}

// Code begins with `push rbp; mov rbp, rsp`, as it may be after endbr64.
bool has_frame_pointer(const std::vector<Instruction>& code) {
  for (size_t i = 0; i < std::min<size_t>(code.size(), 4); ++i) {
    if (code[i].operation == x86::Operation::kMove && code[i].destination.is_register() &&
        code[i].destination.reg == Register::kRbp && code[i].source.is_register() &&
        code[i].source.reg == Register::kRsp) {
      return true;
    }
  }
  return false;
}

constexpr LockFunction kLockFunctions[] = {
    {"pthread_mutex_lock", LockRole::kAcquire},
    {"pthread_mutex_trylock", LockRole::kAcquire},
    {"pthread_mutex_timedlock", LockRole::kAcquire},
    {"pthread_mutex_clocklock", LockRole::kAcquire},
    {"pthread_mutex_unlock", LockRole::kRelease},
    {"pthread_rwlock_rdlock", LockRole::kAcquireShared},
    {"pthread_rwlock_tryrdlock", LockRole::kAcquireShared},
    {"pthread_rwlock_timedrdlock", LockRole::kAcquireShared},
    {"pthread_rwlock_clockrdlock", LockRole::kAcquireShared},
    {"pthread_rwlock_wrlock", LockRole::kAcquire},
    {"pthread_rwlock_trywrlock", LockRole::kAcquire},
    {"pthread_rwlock_timedwrlock", LockRole::kAcquire},
    {"pthread_rwlock_clockwrlock", LockRole::kAcquire},
    {"pthread_rwlock_unlock", LockRole::kReleaseEither},
    {"pthread_spin_trylock", LockRole::kAcquire},
    {"pthread_spin_unlock", LockRole::kRelease},
    {"pthread_cond_wait", LockRole::kWait},
    {"pthread_cond_timedwait", LockRole::kWait},
    {"pthread_cond_clockwait", LockRole::kWait},
};

}  // namespace

uint32_t Planner::location(uint32_t module, const Instruction& instruction) {
  auto& symboliser = symbolisers_[module];
  const Module& from = target_.modules()[module];
  if (symboliser == nullptr) {
    capture::Module whole;
    whole.path = from.shown;
    whole.end = UINT64_MAX;
    symboliser = std::make_unique<Symboliser>(std::vector<capture::Module>{whole});
  }
  SourcePlace place = symboliser->place(instruction.address + 1);
  std::string& text = place.text;
  // The name of an open descriptor says nothing.
  const std::string base = from.shown.substr(from.shown.rfind('/') + 1);
  if (base != from.name) {
    if (text.rfind(base + "+0x", 0) == 0) {
      text = fmt::format("{}+0x{:x}", from.name, instruction.address);
    } else if (text.size() > base.size() &&
               text.compare(text.size() - base.size() - 1, std::string::npos, " " + base) == 0) {
      text.replace(text.size() - base.size(), base.size(), from.name);
    }
  }
  place.module = from.path;
  const uint32_t location = symbols_.intern_place(text, place.within);
  add_place(place, &plan_.places);
  return location;
}

// False when a byte is met that is no instruction: what stands there is perhaps data.
bool Planner::decode(PlannedFunction& function, const ElfImage& elf, uint64_t& bad) {
  for (const Range& range : function.ranges) {
    const std::vector<uint8_t> bytes = elf.code(range);
    for (size_t at = 0; at < bytes.size();) {
      const auto decoded = x86::decode(bytes.data() + at, bytes.size() - at, range.begin + at);
      if (!decoded) {
        bad = range.begin + at;
        return false;
      }
      probeable_[decoded->address + key_of(function.module)] =
          can_be_probed(bytes.data() + at, decoded->length);
      function.code.push_back(*decoded);
      at += decoded->length;
    }
    if (bytes.empty()) {
      bad = range.begin;
      return false;
    }
  }
  return true;
}

bool Planner::probeable(uint32_t module, uint64_t address) const {
  const auto found = probeable_.find(address + key_of(module));
  return found != probeable_.end() && found->second;
}

Result<bool> Planner::probe_function(uint32_t index) {
  PlannedFunction& function = plan_.functions[index];
  ElfImage& elf = **image(function.module);
  uint64_t bad = 0;
  if (!decode(function, elf, bad)) {
    return fail(ErrorKind::kUsage,
                fmt::format("{}: {}+0x{:x} is not an instruction: the function cannot be probed",
                            function.name, text_name(function.module), bad));
  }
  const std::string group = request_.group_by_function ? function.name : text_name(function.module);
  if (function.unit) {
    if (auto bounded = bound_unit(index, elf, group); !bounded) {
      return bounded;
    }
  }
  if (function.accesses) {
    add_accesses(index, elf, group);
  }
  return true;
}

Result<bool> Planner::bound_unit(uint32_t index, const ElfImage& elf, const std::string& group) {
  const PlannedFunction& function = plan_.functions[index];
  if (!probeable(function.module, function.code.front().address)) {
    return fail(ErrorKind::kUsage,
                fmt::format("{}: begins with an instruction that the kernel does not probe (a "
                            "LOCK or segment prefix); choose its callers",
                            function.name));
  }
  Action enter;
  enter.kind = Action::Kind::kEnter;
  enter.function = index;
  enter.label = symbols_.labels.intern(function.name);
  if (!add_action(index, 0, elf, group, enter)) {
    return fail(ErrorKind::kUsage, function.name + ": its code is not in the file");
  }
  size_t returns = 0;
  for (uint32_t i = 0; i < function.code.size(); ++i) {
    if (function.code[i].branch == x86::Branch::kReturn) {
      Action leave;
      leave.kind = Action::Kind::kLeave;
      add_action(index, i, elf, group, leave);
      ++returns;
    }
  }
  if (returns == 0) {
    plan_.notes.push_back(
        fmt::format("{}: has no return of its own: it ends when a later hit of "
                    "its thread shows that it was left",
                    function.name));
  }
  return true;
}

void Planner::add_accesses(uint32_t index, const ElfImage& elf, const std::string& group) {
  const PlannedFunction& function = plan_.functions[index];
  const bool frame = has_frame_pointer(function.code);
  std::set<uint64_t> targets;
  for (const Instruction& instruction : function.code) {
    if (instruction.branch == x86::Branch::kConditional ||
        instruction.branch == x86::Branch::kJump) {
      targets.insert(instruction.target);
    }
  }
  for (uint32_t i = 0; i < function.code.size(); ++i) {
    const Instruction& instruction = function.code[i];
    std::vector<Action> actions;
    bool unknown = instruction.unlisted_stores;
    for (const x86::Access& access : instruction) {
      Action action;
      action.access = access;
      action.function = index;
      action.instruction = i;
      const bool own = access.stack_relative() ||
                       (frame && access.address.base == Register::kRbp) ||
                       access.address.segment != Register::kNone;
      action.fence = own && access.kind == x86::AccessKind::kLocked;
      if (own && !action.fence) {
        continue;
      }
      if (!action.fence && (access.opaque || access.size == 0 || access.masked ||
                            (access.conditional && access.repeat == x86::Repeat::kOnce))) {
        unknown = true;
        continue;
      }
      actions.push_back(action);
    }
    if (instruction.ordering == x86::Ordering::kFull) {
      Action action;
      action.fence = true;
      action.function = index;
      action.instruction = i;
      actions.push_back(action);
    }
    if (unknown) {
      plan_.notes.push_back(
          fmt::format("{}: an access at {}+0x{:x} is not seen: its address or size is not in the "
                      "general registers",
                      function.name, text_name(function.module), instruction.address));
    }
    if (actions.empty()) {
      continue;
    }
    const uint32_t where = location(function.module, instruction);
    for (Action& action : actions) {
      action.location = where;
    }
    ++plan_.accesses;
    place(index, i, elf, group, targets, actions);
    if (request_.values && instruction.locked()) {
      look_behind(index, i, elf, group);
    }
  }
}

// Finds a probe that tells the accesses of instruction i.
void Planner::place(uint32_t index, uint32_t i, const ElfImage& elf, const std::string& group,
                    const std::set<uint64_t>& targets, std::vector<Action>& actions) {
  const PlannedFunction& function = plan_.functions[index];
  const std::vector<Instruction>& code = function.code;
  if (probeable(function.module, code[i].address)) {
    for (const Action& action : actions) {
      add_action(index, i, elf, group, action);
    }
    return;
  }
  uint32_t at = i;
  for (size_t steps = 1; steps <= kMaxCarried && at != 0; ++steps) {
    // Whatever comes to code[at] has come through code[at - 1].
    if (targets.count(code[at].address) != 0 || code[at - 1].next() != code[at].address ||
        code[at - 1].branch != x86::Branch::kNone) {
      break;
    }
    --at;
    if (code[at].access_count != 0 && code[at].accesses[0].repeat != x86::Repeat::kOnce) {
      break;
    }
    if (probeable(function.module, code[at].address) && known_at(code, at, i, actions)) {
      for (const Action& action : actions) {
        add_action(index, at, elf, group, action);
      }
      return;
    }
  }
  if (i + 1 < code.size() && code[i].next() == code[i + 1].address &&
      targets.count(code[i + 1].address) == 0 && code[i].branch == x86::Branch::kNone &&
      probeable(function.module, code[i + 1].address) &&
      std::all_of(actions.begin(), actions.end(), [&](const Action& action) {
        return action.fence || (action.access.address.registers() & code[i].writes) == 0;
      })) {
    for (Action& action : actions) {
      action.after = true;
      add_action(index, i + 1, elf, group, action);
    }
    return;
  }
  plan_.missed.push_back(
      fmt::format("{}: the locked instruction at {}+0x{:x} cannot be told by any probe",
                  function.name, text_name(function.module), code[i].address));
}

void Planner::look_behind(uint32_t index, uint32_t i, const ElfImage& elf,
                          const std::string& group) {
  const PlannedFunction& function = plan_.functions[index];
  const std::vector<Instruction>& code = function.code;
  x86::RegisterFile all;
  all.known = x86::kAllRegisters;
  if (i + 1 == code.size() || code[i].next() != code[i + 1].address ||
      !probeable(function.module, code[i + 1].address) || !x86::loaded_value(code[i], all)) {
    return;
  }
  if (Site* const site = site_at(function.module, elf, code[i + 1].address, group)) {
    site->function = index;
    site->instruction = i + 1;
  }
}

void Planner::choose_memory(Site& site) const {
  for (uint32_t i = 0; i < site.actions.size(); ++i) {
    const Action& action = site.actions[i];
    const x86::Access& access = action.access;
    const x86::Address& address = access.address;
    if (action.kind != Action::Kind::kAccess || action.fence || action.after ||
        access.kind == x86::AccessKind::kStore || access.repeat != x86::Repeat::kOnce ||
        !address.wide || address.segment != Register::kNone ||
        (access.size != 1 && access.size != 2 && access.size != 4 && access.size != 8)) {
      continue;
    }
    const std::vector<Instruction>& code = plan_.functions[action.function].code;
    bool same = true;  // from the probe to the instruction the location and its contents
    for (uint32_t at = site.instruction; at < action.instruction; ++at) {
      same &= (code[at].writes & address.registers()) == 0 && !code[at].unlisted_stores &&
              std::all_of(code[at].begin(), code[at].end(), [](const x86::Access& other) {
                return other.kind == x86::AccessKind::kLoad;
              });
    }
    MemoryOperand operand;
    operand.base = address.base;
    operand.index = address.index;
    operand.shift = address.scale == 8 ? 3 : address.scale == 4 ? 2 : address.scale == 2 ? 1 : 0;
    operand.relative = address.constant();
    operand.size = static_cast<uint8_t>(access.size);
    const auto displacement =
        address.displacement - (operand.relative ? static_cast<int64_t>(site.address) : 0);
    operand.displacement = static_cast<int32_t>(displacement);
    if (!same || operand.displacement != displacement) {
      continue;
    }
    site.memory = operand;
    site.memory_action = i;
    // Rather of an instruction that leaves what it has read in no register.
    x86::RegisterFile all;
    all.known = x86::kAllRegisters;
    if (!x86::loaded_value(code[action.instruction], all)) {
      return;
    }
  }
}

// Whether the registers at code[from] say what the accesses of code[to] need.
bool Planner::known_at(const std::vector<Instruction>& code, uint32_t from, uint32_t to,
                       const std::vector<Action>& actions) {
  x86::RegisterFile registers;
  registers.known = x86::kAllRegisters;
  for (uint32_t i = from; i < to; ++i) {
    x86::step_forward(code[i], registers);
  }
  return std::all_of(actions.begin(), actions.end(), [&](const Action& action) {
    return action.fence || (action.access.address.registers() & ~registers.known) == 0;
  });
}

bool Planner::add_action(uint32_t function, uint32_t instruction, const ElfImage& elf,
                         const std::string& group, const Action& action) {
  const PlannedFunction& owner = plan_.functions[function];
  Site* site = site_at(owner.module, elf, owner.code[instruction].address, group);
  if (site == nullptr) {
    return false;
  }
  site->function = function;
  site->instruction = instruction;
  // What has happened before the probe comes before everything that the probe is for.
  if (action.after) {
    site->actions.insert(site->actions.begin(), action);
  } else {
    site->actions.push_back(action);
  }
  return true;
}

Site* Planner::site_at(uint32_t module, const ElfImage& elf, uint64_t address,
                       const std::string& group) {
  const auto offset = elf.offset_of(address);
  if (!offset) {
    return nullptr;
  }
  const auto [known, is_new] =
      by_address_.try_emplace({module, address}, static_cast<uint32_t>(plan_.sites.size()));
  if (is_new) {
    const auto [number, new_group] =
        by_group_.try_emplace({module, group}, static_cast<uint32_t>(plan_.groups.size()));
    if (new_group) {
      Group added;
      added.name = group;
      added.module = module;
      plan_.groups.push_back(std::move(added));
    }
    plan_.groups[number->second].sites.push_back(known->second);
    Site site;
    site.module = module;
    site.group = number->second;
    site.address = address;
    site.offset = *offset;
    plan_.sites.push_back(std::move(site));
  }
  return &plan_.sites[known->second];
}

void Planner::add_locks() {
  for (uint32_t module = first_; module < target_.modules().size(); ++module) {
    const std::string& name = target_.modules()[module].name;
    if (module != 0 && name.rfind("libc.so", 0) != 0 && name.rfind("libpthread", 0) != 0 &&
        name.rfind("libc-", 0) != 0) {
      continue;
    }
    auto elf = image(module);
    if (!elf) {
      continue;
    }
    std::set<uint64_t> done;
    for (const LockFunction& lock : kLockFunctions) {
      for (const Symbol& symbol : (*elf)->functions()) {
        if (symbol.size != 0 && lock.name == symbol.text().substr(0, symbol.text().find('@')) &&
            done.insert(symbol.address).second) {
          add_lock(module, **elf, symbol, lock);
        }
      }
    }
  }
}

// What is asked for with a name: the functions that match it, everywhere.
Result<bool> Planner::add_named_locks() {
  for (const std::string& text : request_.named_locks) {
    const size_t slash = text.find('/');
    const std::string first = text.substr(0, slash);
    size_t found = 0;
    for (uint32_t module = first_; module < target_.modules().size(); ++module) {
      const auto elf = image(module);
      if (!elf) {
        continue;
      }
      if (slash == std::string::npos) {
        found += add_named_locks(module, **elf, first, std::nullopt);
      } else {
        const size_t acquires = add_named_locks(module, **elf, first, false);
        const size_t releases = add_named_locks(module, **elf, text.substr(slash + 1), true);
        found += std::min(acquires, releases);
      }
    }
    if (found == 0) {
      if (auto missing = not_found(
              text, fmt::format("{}: no such functions of a lock in any module of the process{}",
                                text, similar_names(first, true)));
          !missing) {
        return missing;
      }
    }
  }
  return true;
}

size_t Planner::add_named_locks(uint32_t module, const ElfImage& elf, const std::string& pattern,
                                std::optional<bool> releases) {
  size_t found = 0;
  for (const Symbol& symbol : elf.functions()) {
    const bool part = symbol.text().find(".cold") != std::string_view::npos ||
                      symbol.text().find(".part") != std::string_view::npos;
    if (part || symbol.size == 0) {
      continue;
    }
    const std::string readable = symbol.readable();
    const std::string plain = readable.substr(0, probe::name_length(readable.c_str()));
    if (!symbol.matches(pattern) && ::fnmatch(pattern.c_str(), plain.c_str(), 0) != 0) {
      continue;
    }
    ++found;
    if (!named_locks_.insert({module, symbol.address}).second) {
      continue;
    }
    const probe::LockName name = probe::lock_name(plain.c_str());
    LockFunction lock{plain, LockRole::kAcquire, LockResult::kAlways};
    if (releases.value_or(name.releases)) {
      lock.role = LockRole::kReleaseEither;
    } else {
      lock.role = name.shared ? LockRole::kAcquireShared : LockRole::kAcquire;
      lock.result = name.tries ? LockResult::kNonZero : LockResult::kAlways;
    }
    add_lock(module, elf, symbol, lock);
  }
  return found;
}

void Planner::add_lock(uint32_t module, const ElfImage& elf, const Symbol& symbol,
                       const LockFunction& lock) {
  PlannedFunction function;
  function.name = std::string(lock.name);
  function.module = module;
  function.ranges = {symbol.range()};
  uint64_t bad = 0;
  if (!decode(function, elf, bad) || !probeable(module, symbol.address)) {
    plan_.notes.push_back(
        fmt::format("{} cannot be probed: what it locks is not known to be "
                    "ordered",
                    lock.name));
    return;
  }
  const auto index = static_cast<uint32_t>(plan_.functions.size());
  plan_.functions.push_back(std::move(function));
  const std::string group = "locks of " + text_name(module);
  // The C library's timed ones end in a function that is shared; the others are seen whole.
  if (!is_release(lock.role) && named_locks_.count({module, symbol.address}) != 0 &&
      std::none_of(plan_.functions[index].code.begin(), plan_.functions[index].code.end(),
                   [](const Instruction& one) { return one.branch == x86::Branch::kReturn; })) {
    plan_.missed.push_back(fmt::format(
        "{} does not return by itself: when it has acquired a lock is not known", lock.name));
  }
  Action enter;
  enter.kind = Action::Kind::kLock;
  enter.role = lock.role;
  enter.result = lock.result;
  add_action(index, 0, elf, group, enter);
  if (!is_release(lock.role)) {
    const std::vector<Instruction>& code = plan_.functions[index].code;
    for (uint32_t i = 0; i < code.size(); ++i) {
      if (code[i].branch == x86::Branch::kReturn) {
        Action leave;
        leave.kind = Action::Kind::kLockReturn;
        leave.role = lock.role;
        leave.result = lock.result;
        add_action(index, i, elf, group, leave);
      }
    }
  }
  plan_.groups[plan_.sites[by_address_.at({module, symbol.address})].group].locks = true;
}

}  // namespace tsomon::attach
