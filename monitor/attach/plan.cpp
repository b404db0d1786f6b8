#include "monitor/attach/plan.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fnmatch.h>

#include "decoders/x86/dataflow.h"
#include "decoders/x86/decode.h"
#include "monitor/attach/names.h"
#include "monitor/symbols.h"

namespace tsomon::attach {
namespace {

using x86::Instruction;
using x86::Register;

constexpr size_t kMaxFunctions = 1000;
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

struct LockFunction {
  const char* name;
  LockRole role;
};
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

class Planner {
 public:
  Planner(const Target& target, const PlanRequest& request, Symbols& symbols)
      : target_(target), request_(request), symbols_(symbols), images_(target.modules().size()) {}

  Result<Plan> make() {
    for (const std::string& text : request_.units) {
      if (auto added = add_unit(text); !added) {
        return tl::unexpected<Error>(added.error());
      }
    }
    for (const std::string& text : request_.accesses) {
      auto name = parse_code_name(text);
      if (!name) {
        return tl::unexpected<Error>(name.error());
      }
      if (auto added = add_functions(*name, text, false, true); !added) {
        return tl::unexpected<Error>(added.error());
      }
    }
    for (const std::string& text : request_.watch) {
      if (auto added = add_watch(text); !added) {
        return tl::unexpected<Error>(added.error());
      }
    }
    const size_t asked = plan_.functions.size();
    for (uint32_t i = 0; i < asked; ++i) {
      if (auto probed = probe_function(i); !probed) {
        return tl::unexpected<Error>(probed.error());
      }
    }
    if (plan_.accesses == 0 && plan_.watch.empty()) {
      return fail(ErrorKind::kUsage,
                  "nothing that touches shared memory is watched: name functions with --unit or "
                  "--accesses, or locations with --watch");
    }
    if (request_.locks) {
      add_locks();
    }
    return std::move(plan_);
  }

 private:
  Result<ElfImage*> image(uint32_t module) {
    if (images_[module] == nullptr) {
      const Module& from = target_.modules()[module];
      auto opened = ElfImage::open(from.file, from.shown);
      if (!opened) {
        return tl::unexpected<Error>(opened.error());
      }
      images_[module] = std::move(*opened);
    }
    return images_[module].get();
  }

  // Of one module: file addresses and addresses in memory differ by this.
  uint64_t bias(uint32_t module, const ElfImage& elf) const {
    const Module& mapped = target_.modules()[module];
    for (const Mapping& mapping : mapped.code) {
      if (const auto address = elf.address_of(mapping.offset)) {
        return mapping.begin - *address;
      }
    }
    return 0;
  }

  uint32_t location(uint32_t module, const Instruction& instruction) {
    auto& symboliser = symbolisers_[module];
    const Module& from = target_.modules()[module];
    if (symboliser == nullptr) {
      capture::Module whole;
      whole.path = from.shown;
      whole.end = UINT64_MAX;
      symboliser = std::make_unique<Symboliser>(std::vector<capture::Module>{whole});
    }
    std::string text = symboliser->text(instruction.address + 1);
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
    return symbols_.intern_location(text);
  }

  Result<bool> add_unit(const std::string& text) {
    auto name = parse_code_name(text);
    if (!name) {
      return tl::unexpected<Error>(name.error());
    }
    if (name->kind == CodeName::Kind::kMarkers) {
      return add_marker_unit(*name, text);
    }
    return add_functions(*name, text, true, request_.unit_accesses);
  }

  Result<bool> add_marker_unit(const CodeName& name, const std::string& text) {
    std::string seen;
    for (uint32_t module = 0; module < target_.modules().size(); ++module) {
      auto elf = image(module);
      if (!elf) {
        continue;
      }
      size_t begins = 0;
      size_t ends = 0;
      for (const Marker& marker : (*elf)->markers()) {
        seen += fmt::format(" {}:{}", marker.provider, marker.name);
        begins += marker.provider == name.provider && marker.name == name.first ? 1 : 0;
        ends += marker.provider == name.provider && marker.name == name.last ? 1 : 0;
      }
      if (begins == 0 || ends == 0) {
        continue;
      }
      const uint32_t label =
          symbols_.labels.intern(fmt::format("{}:{}..{}", name.provider, name.first, name.last));
      for (const Marker& marker : (*elf)->markers()) {
        if (marker.provider != name.provider) {
          continue;
        }
        // The end first: where one name is both, a unit ends and the next begins.
        if (marker.name == name.last) {
          marker_site(module, **elf, marker, Action::Kind::kEnd, label);
        }
        if (marker.name == name.first) {
          marker_site(module, **elf, marker, Action::Kind::kBegin, label);
        }
      }
      return true;
    }
    return fail(ErrorKind::kUsage,
                fmt::format("{}: no module of the process has these markers; there are:{}", text,
                            seen.empty() ? " none" : seen));
  }

  void marker_site(uint32_t module, const ElfImage& elf, const Marker& marker, Action::Kind kind,
                   uint32_t label) {
    Site* site = site_at(module, elf, marker.address, text_name(module));
    if (site == nullptr) {
      plan_.missed.push_back(
          fmt::format("marker {}:{} lies outside the file's code", marker.provider, marker.name));
      return;
    }
    if (marker.semaphore != 0) {
      site->semaphore = elf.offset_of(marker.semaphore).value_or(0);
    }
    Action action;
    action.kind = kind;
    action.label = label;
    site->actions.push_back(action);
  }

  // Marks functions; their code is looked at later.
  Result<bool> add_functions(const CodeName& name, const std::string& text, bool unit,
                             bool accesses) {
    size_t found = 0;
    std::string problem;
    for (uint32_t module = 0; module < target_.modules().size(); ++module) {
      const Module& from = target_.modules()[module];
      if (!name.module.empty() && ::fnmatch(name.module.c_str(), from.name.c_str(), 0) != 0) {
        continue;
      }
      auto elf = image(module);
      if (!elf) {
        problem = elf.error().to_string();
        continue;
      }
      found += name.kind == CodeName::Kind::kPattern
                   ? add_matching(module, **elf, name.first, unit, accesses)
                   : add_addressed(module, **elf, name, unit, accesses);
      if (found != 0 && name.kind != CodeName::Kind::kPattern) {
        break;
      }
      if (found != 0 && name.module.empty() && module == 0) {
        break;
      }
    }
    if (plan_.functions.size() > kMaxFunctions) {
      return fail(ErrorKind::kUsage, fmt::format("{}: more than {} functions; be more particular",
                                                 text, kMaxFunctions));
    }
    if (found == 0) {
      return fail(ErrorKind::kUsage,
                  fmt::format("{}: no such function{}; `nm -C` or `objdump -d` list what there is, "
                              "and a stripped module takes MODULE+0xADDRESS{}",
                              text, name.module.empty() ? " in any module of the process" : "",
                              problem.empty() ? "" : " (" + problem + ")"));
    }
    return true;
  }

  size_t add_matching(uint32_t module, const ElfImage& elf, const std::string& pattern, bool unit,
                      bool accesses) {
    size_t found = 0;
    for (const Symbol& symbol : elf.symbols()) {
      const bool cold = symbol.name.find(".cold") != std::string::npos;
      if (!symbol.function || cold || symbol.size == 0 ||
          (::fnmatch(pattern.c_str(), symbol.readable.c_str(), 0) != 0 &&
           ::fnmatch(pattern.c_str(), symbol.name.c_str(), 0) != 0)) {
        continue;
      }
      std::vector<Range> ranges{{symbol.address, symbol.address + symbol.size}};
      for (const Symbol& part : elf.symbols()) {
        if (part.function && part.size != 0 && part.name.rfind(symbol.name + ".cold", 0) == 0) {
          ranges.push_back({part.address, part.address + part.size});
        }
      }
      add_function(module, symbol.readable, ranges, unit, accesses);
      ++found;
    }
    return found;
  }

  size_t add_addressed(uint32_t module, const ElfImage& elf, const CodeName& name, bool unit,
                       bool accesses) {
    const uint64_t moved = name.kind == CodeName::Kind::kMemory ? bias(module, elf) : 0;
    Range range{name.begin - moved, name.end == 0 ? 0 : name.end - moved};
    std::string called = fmt::format("{}+0x{:x}", target_.modules()[module].name, range.begin);
    for (const Symbol& symbol : elf.symbols()) {
      if (symbol.function && symbol.address == range.begin && symbol.size != 0) {
        range.end = range.end == 0 ? symbol.address + symbol.size : range.end;
        called = symbol.readable;
      }
    }
    if (range.end == 0) {
      const auto frame = elf.function_around(range.begin);
      if (frame && frame->begin == range.begin) {
        range.end = frame->end;
      }
    }
    if (range.end <= range.begin || elf.code(range).empty()) {
      return 0;
    }
    add_function(module, called, {range}, unit, accesses);
    return 1;
  }

  void add_function(uint32_t module, const std::string& name, const std::vector<Range>& ranges,
                    bool unit, bool accesses) {
    const auto [known, is_new] = by_entry_.try_emplace(
        {module, ranges.front().begin}, static_cast<uint32_t>(plan_.functions.size()));
    if (is_new) {
      PlannedFunction function;
      function.name = name;
      function.module = module;
      function.ranges = ranges;
      plan_.functions.push_back(std::move(function));
    }
    plan_.functions[known->second].unit |= unit;
    plan_.functions[known->second].accesses |= accesses;
  }

  // False when a byte is met that is no instruction: what stands there is perhaps data.
  bool decode(PlannedFunction& function, const ElfImage& elf, uint64_t& bad) {
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

  static uint64_t key_of(uint32_t module) { return static_cast<uint64_t>(module) << 56; }
  bool probeable(uint32_t module, uint64_t address) const {
    const auto found = probeable_.find(address + key_of(module));
    return found != probeable_.end() && found->second;
  }

  std::string text_name(uint32_t module) const { return target_.modules()[module].name; }

  Result<bool> probe_function(uint32_t index) {
    PlannedFunction& function = plan_.functions[index];
    ElfImage& elf = **image(function.module);
    uint64_t bad = 0;
    if (!decode(function, elf, bad)) {
      return fail(ErrorKind::kUsage,
                  fmt::format("{}: {}+0x{:x} is not an instruction: the function cannot be probed",
                              function.name, text_name(function.module), bad));
    }
    const std::string group =
        request_.group_by_function ? function.name : text_name(function.module);
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

  Result<bool> bound_unit(uint32_t index, const ElfImage& elf, const std::string& group) {
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

  void add_accesses(uint32_t index, const ElfImage& elf, const std::string& group) {
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
    }
  }

  // Finds a probe that tells the accesses of instruction i.
  void place(uint32_t index, uint32_t i, const ElfImage& elf, const std::string& group,
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

  // Whether the registers at code[from] say what the accesses of code[to] need.
  static bool known_at(const std::vector<Instruction>& code, uint32_t from, uint32_t to,
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

  bool add_action(uint32_t function, uint32_t instruction, const ElfImage& elf,
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

  Site* site_at(uint32_t module, const ElfImage& elf, uint64_t address, const std::string& group) {
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

  void add_locks() {
    for (uint32_t module = 0; module < target_.modules().size(); ++module) {
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
        for (const Symbol& symbol : (*elf)->symbols()) {
          if (symbol.function && symbol.size != 0 &&
              lock.name == symbol.name.substr(0, symbol.name.find('@')) &&
              done.insert(symbol.address).second) {
            add_lock(module, **elf, symbol, lock);
          }
        }
      }
    }
  }

  void add_lock(uint32_t module, const ElfImage& elf, const Symbol& symbol,
                const LockFunction& lock) {
    PlannedFunction function;
    function.name = lock.name;
    function.module = module;
    function.ranges = {{symbol.address, symbol.address + symbol.size}};
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
    Action enter;
    enter.kind = Action::Kind::kLock;
    enter.role = lock.role;
    add_action(index, 0, elf, group, enter);
    if (!is_release(lock.role)) {
      const std::vector<Instruction>& code = plan_.functions[index].code;
      for (uint32_t i = 0; i < code.size(); ++i) {
        if (code[i].branch == x86::Branch::kReturn) {
          Action leave;
          leave.kind = Action::Kind::kLockReturn;
          leave.role = lock.role;
          add_action(index, i, elf, group, leave);
        }
      }
    }
    plan_.groups[plan_.sites[by_address_.at({module, symbol.address})].group].locks = true;
  }

  Result<bool> add_watch(const std::string& text) {
    auto name = parse_watch_name(text);
    if (!name) {
      return tl::unexpected<Error>(name.error());
    }
    uint64_t address = name->address;
    uint64_t size = name->size;
    if (!name->symbol.empty()) {
      bool found = false;
      for (uint32_t module = 0; module < target_.modules().size() && !found; ++module) {
        auto elf = image(module);
        if (!elf) {
          continue;
        }
        for (const Symbol& symbol : (*elf)->symbols()) {
          if (!symbol.function &&
              (symbol.name == name->symbol || symbol.readable == name->symbol)) {
            address = symbol.address + bias(module, **elf);
            size = size == 0 ? symbol.size : size;
            found = true;
            break;
          }
        }
      }
      if (!found) {
        return fail(ErrorKind::kUsage,
                    fmt::format("{}: no module of the process has a variable of this name", text));
      }
    }
    size = size == 0 ? 8 : size;
    // As many watch points as it takes: each covers 1, 2, 4 or 8 aligned bytes.
    for (uint64_t at = address; at < address + size;) {
      uint32_t part = 8;
      while (part > 1 && (at % part != 0 || at + part > address + size)) {
        part /= 2;
      }
      plan_.watch.push_back({text, at, part});
      at += part;
      if (plan_.watch.size() > kMaxWatchPoints) {
        return fail(ErrorKind::kUsage,
                    fmt::format("{}: takes more than the {} watch points of a processor (aligned "
                                "pieces of 8 bytes); watch less",
                                text, kMaxWatchPoints));
      }
    }
    return true;
  }

  const Target& target_;
  const PlanRequest& request_;
  Symbols& symbols_;
  Plan plan_;
  std::vector<std::unique_ptr<ElfImage>> images_;
  std::map<uint32_t, std::unique_ptr<Symboliser>> symbolisers_;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> by_entry_;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> by_address_;
  std::map<std::pair<uint32_t, std::string>, uint32_t> by_group_;
  std::map<uint64_t, bool> probeable_;
};

}  // namespace

bool Site::only_accesses() const {
  return std::all_of(actions.begin(), actions.end(),
                     [](const Action& action) { return action.kind == Action::Kind::kAccess; });
}

Result<Plan> make_plan(const Target& target, const PlanRequest& request, Symbols& symbols) {
  return Planner(target, request, symbols).make();
}

}  // namespace tsomon::attach
