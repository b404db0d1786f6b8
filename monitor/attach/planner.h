// Makes a plan (plan.h): names to functions (plan.cpp), functions to probes (plan_probes.cpp).
//
// Thread-safety: none; everything passed in must live on.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "monitor/attach/plan.h"
#include "monitor/process/names.h"
#include "monitor/process/symbols.h"

namespace tsomon::attach {

struct LockFunction;

class Planner {
 public:
  // Adds to `plan` what the modules from `first` on have.
  Planner(const Target& target, const PlanRequest& request, Symbols& symbols, Plan plan,
          uint32_t first)
      : target_(target),
        request_(request),
        symbols_(symbols),
        plan_(std::move(plan)),
        first_(first),
        images_(target.modules().size()) {}
  Result<Plan> make();

 private:
  bool is_first_plan() const { return first_ == 0; }
  Result<bool> add_names();
  // Nobody has it: an error, unless it may come later.
  Result<bool> not_found(const std::string& text, const std::string& message);

  // Names.
  Result<ElfImage*> image(uint32_t module);
  // Of one module: file addresses and addresses in memory differ by this.
  uint64_t bias(uint32_t module, const ElfImage& elf) const;
  std::string text_name(uint32_t module) const { return target_.modules()[module].name; }
  Result<bool> add_unit(const std::string& text);
  Result<bool> add_marker_unit(const CodeName& name, const std::string& text);
  void marker_site(uint32_t module, const ElfImage& elf, const Marker& marker, Action::Kind kind,
                   uint32_t label);
  // Marks functions; their code is looked at later.
  Result<bool> add_functions(const CodeName& name, const std::string& text, bool unit,
                             bool accesses);
  void skip(uint32_t index, const std::string& why);
  // "; similar: a, b", or nothing.
  std::string similar_names(const std::string& name, bool functions);
  size_t add_matching(uint32_t module, const ElfImage& elf, const std::string& pattern, bool unit,
                      bool accesses);
  size_t add_addressed(uint32_t module, const ElfImage& elf, const CodeName& name, bool unit,
                       bool accesses);
  void add_function(uint32_t module, const std::string& name, const std::vector<Range>& ranges,
                    bool unit, bool accesses, bool by_pattern);
  Result<bool> add_watch(const std::string& text);

  // Probes.
  // False when a byte is met that is no instruction: what stands there is perhaps data.
  bool decode(PlannedFunction& function, const ElfImage& elf, uint64_t& bad);
  static uint64_t key_of(uint32_t module) { return static_cast<uint64_t>(module) << 56; }
  bool probeable(uint32_t module, uint64_t address) const;
  uint32_t location(uint32_t module, const x86::Instruction& instruction);
  Result<bool> probe_function(uint32_t index);
  Result<bool> bound_unit(uint32_t index, const ElfImage& elf, const std::string& group);
  void add_accesses(uint32_t index, const ElfImage& elf, const std::string& group);
  // Finds a probe that tells the accesses of instruction i.
  void place(uint32_t index, uint32_t i, const ElfImage& elf, const std::string& group,
             const std::set<uint64_t>& targets, std::vector<Action>& actions);
  // Whether the registers at code[from] say what the accesses of code[to] need.
  static bool known_at(const std::vector<x86::Instruction>& code, uint32_t from, uint32_t to,
                       const std::vector<Action>& actions);
  // A probe after instruction i, where a register holds what it has read.
  void look_behind(uint32_t index, uint32_t i, const ElfImage& elf, const std::string& group);
  // Says which location's contents are read at a hit.
  void choose_memory(Site& site) const;
  bool add_action(uint32_t function, uint32_t instruction, const ElfImage& elf,
                  const std::string& group, const Action& action);
  Site* site_at(uint32_t module, const ElfImage& elf, uint64_t address, const std::string& group);
  void add_locks();
  Result<bool> add_named_locks();
  size_t add_named_locks(uint32_t module, const ElfImage& elf, const std::string& pattern,
                         std::optional<bool> releases);
  void add_lock(uint32_t module, const ElfImage& elf, const Symbol& symbol,
                const LockFunction& lock);

  const Target& target_;
  const PlanRequest& request_;
  Symbols& symbols_;
  Plan plan_;
  uint32_t first_;
  std::vector<std::unique_ptr<ElfImage>> images_;
  std::map<uint32_t, std::unique_ptr<Symboliser>> symbolisers_;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> by_entry_;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> by_address_;
  std::map<std::pair<uint32_t, std::string>, uint32_t> by_group_;
  std::map<uint64_t, bool> probeable_;
  std::set<std::pair<uint32_t, uint64_t>> named_locks_;  // by module and entry
  size_t skipped_ = 0;       // functions that match a pattern and cannot be probed
  std::string why_skipped_;  // the first ones
};

}  // namespace tsomon::attach
