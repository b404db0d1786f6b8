#include "monitor/attach/plan.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fnmatch.h>

#include "monitor/attach/planner.h"
#include "monitor/process/names.h"

namespace tsomon::attach {
namespace {

constexpr size_t kMaxFunctions = 1000;
constexpr std::string_view kCold = ".cold";

}  // namespace

Result<Plan> Planner::make() {
  plan_.notes.clear();
  plan_.missed.clear();
  const size_t sites_before = plan_.sites.size();
  if (auto added = add_named_locks(); !added) {
    return tl::unexpected<Error>(added.error());
  }
  const size_t locks = plan_.functions.size();
  if (auto added = add_names(); !added) {
    return tl::unexpected<Error>(added.error());
  }
  const size_t asked = plan_.functions.size();
  for (auto i = static_cast<uint32_t>(locks); i < asked; ++i) {
    if (auto probed = probe_function(i); !probed) {
      if (!plan_.functions[i].by_pattern) {
        return tl::unexpected<Error>(probed.error());
      }
      skip(i, probed.error().message);
    }
  }
  if (skipped_ != 0) {
    plan_.notes.push_back(fmt::format("{} of {} functions cannot be probed and were skipped: {}",
                                      skipped_, asked - locks, why_skipped_));
  }
  if (is_first_plan() && !request_.later && plan_.accesses == 0 && plan_.watch.empty()) {
    return fail(ErrorKind::kUsage,
                "nothing that touches shared memory is watched: name functions with --unit or "
                "--accesses, or locations with --watch" +
                    (skipped_ == 0 ? std::string() : " (" + plan_.notes.back() + ")"));
  }
  if (request_.locks) {
    add_locks();
  }
  if (plan_.sites.size() > kMaxSites) {
    return fail(ErrorKind::kUsage,
                fmt::format("more than {} probes; name fewer functions", kMaxSites));
  }
  if (request_.values) {
    for (size_t i = sites_before; i < plan_.sites.size(); ++i) {
      choose_memory(plan_.sites[i]);
    }
  }
  return std::move(plan_);
}

// A function that only a pattern means.
void Planner::skip(uint32_t index, const std::string& why) {
  constexpr size_t kSaid = 3;
  plan_.functions[index].unit = false;
  plan_.functions[index].accesses = false;
  if (++skipped_ <= kSaid) {
    why_skipped_ += (why_skipped_.empty() ? "" : "; ") + why;
  } else if (skipped_ == kSaid + 1) {
    why_skipped_ += "; ...";
  }
}

std::string Planner::similar_names(const std::string& name, bool functions) {
  std::vector<std::string> names;
  for (uint32_t module = first_; module < target_.modules().size(); ++module) {
    if (auto elf = image(module)) {
      for (const Symbol& symbol : functions ? (*elf)->functions() : (*elf)->variables()) {
        if (symbol.size != 0) {
          names.push_back(symbol.readable());
        }
      }
    }
  }
  const std::vector<std::string> similar = similar_to(name, std::move(names));
  return similar.empty() ? std::string() : fmt::format("; similar: {}", fmt::join(similar, ", "));
}

Result<bool> Planner::add_names() {
  const auto settled = [&](const std::string& text) {
    return !is_first_plan() && plan_.settled.count(text) != 0;
  };
  for (const std::string& text : request_.units) {
    if (settled(text)) {
      continue;
    }
    if (auto added = add_unit(text); !added) {
      return added;
    }
  }
  for (const std::string& text : request_.accesses) {
    if (settled(text)) {
      continue;
    }
    auto name = parse_code_name(text);
    if (!name) {
      return tl::unexpected<Error>(name.error());
    }
    if (auto added = add_functions(*name, text, false, true); !added) {
      return added;
    }
  }
  if (is_first_plan()) {
    for (const std::string& text : request_.watch) {
      if (auto added = add_watch(text); !added) {
        return added;
      }
    }
  }
  return true;
}

Result<bool> Planner::not_found(const std::string& text, const std::string& message) {
  if (!is_first_plan()) {
    return true;
  }
  if (!request_.later) {
    return fail(ErrorKind::kUsage, message + "; of a module that is loaded later: --later");
  }
  plan_.notes.push_back(
      fmt::format("{}: in no module yet; looked for in those that are loaded later", text));
  return true;
}

Result<ElfImage*> Planner::image(uint32_t module) {
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
uint64_t Planner::bias(uint32_t module, const ElfImage& elf) const {
  const Module& mapped = target_.modules()[module];
  for (const Mapping& mapping : mapped.code) {
    if (const auto address = elf.address_of(mapping.offset)) {
      return mapping.begin - *address;
    }
  }
  return 0;
}

Result<bool> Planner::add_unit(const std::string& text) {
  auto name = parse_code_name(text);
  if (!name) {
    return tl::unexpected<Error>(name.error());
  }
  if (name->kind == CodeName::Kind::kMarkers) {
    return add_marker_unit(*name, text);
  }
  return add_functions(*name, text, true, request_.unit_accesses);
}

Result<bool> Planner::add_marker_unit(const CodeName& name, const std::string& text) {
  std::string seen;
  for (uint32_t module = first_; module < target_.modules().size(); ++module) {
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
    plan_.settled.insert(text);
    return true;
  }
  return not_found(text, fmt::format("{}: no module of the process has these markers; there are:{}",
                                     text, seen.empty() ? " none" : seen));
}

void Planner::marker_site(uint32_t module, const ElfImage& elf, const Marker& marker,
                          Action::Kind kind, uint32_t label) {
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
Result<bool> Planner::add_functions(const CodeName& name, const std::string& text, bool unit,
                                    bool accesses) {
  size_t found = 0;
  std::string problem;
  for (uint32_t module = first_; module < target_.modules().size(); ++module) {
    const Module& from = target_.modules()[module];
    if (!name.module.empty() && ::fnmatch(name.module.c_str(), from.name.c_str(), 0) != 0) {
      continue;
    }
    if (name.kind == CodeName::Kind::kMemory && from.code.empty()) {
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
    // Of a function that the executable has, it is the executable's.
    if (found != 0 &&
        (name.kind != CodeName::Kind::kPattern || (name.module.empty() && module == 0))) {
      plan_.settled.insert(text);
      break;
    }
  }
  if (plan_.functions.size() > kMaxFunctions) {
    return fail(ErrorKind::kUsage,
                fmt::format("{}: more than {} functions; be more particular", text, kMaxFunctions));
  }
  if (found == 0) {
    return not_found(
        text,
        fmt::format("{}: no such function{}{}; `nm -C` or `objdump -d` list what there is, "
                    "and a stripped module takes MODULE+0xADDRESS{}",
                    text, name.module.empty() ? " in any module of the process" : "",
                    similar_names(name.first, true), problem.empty() ? "" : " (" + problem + ")"));
  }
  return true;
}

size_t Planner::add_matching(uint32_t module, const ElfImage& elf, const std::string& pattern,
                             bool unit, bool accesses) {
  size_t found = 0;
  for (const Symbol& symbol : elf.functions()) {
    if (symbol.size == 0 || symbol.text().find(kCold) != std::string_view::npos ||
        !symbol.matches(pattern)) {
      continue;
    }
    std::vector<Range> ranges{symbol.range()};
    for (const Symbol& part : elf.functions()) {
      if (part.size != 0 && part.text().starts_with(symbol.text()) &&
          part.text().substr(symbol.text().size()).starts_with(kCold)) {
        ranges.push_back(part.range());
      }
    }
    add_function(module, symbol.readable(), ranges, unit, accesses,
                 pattern.find_first_of("*?[") != std::string::npos);
    ++found;
  }
  return found;
}

size_t Planner::add_addressed(uint32_t module, const ElfImage& elf, const CodeName& name, bool unit,
                              bool accesses) {
  const uint64_t moved = name.kind == CodeName::Kind::kMemory ? bias(module, elf) : 0;
  Range range{name.begin - moved, name.end == 0 ? 0 : name.end - moved};
  std::string called = fmt::format("{}+0x{:x}", target_.modules()[module].name, range.begin);
  for (const Symbol& symbol : elf.functions()) {
    if (symbol.address == range.begin && symbol.size != 0) {
      range.end = range.end == 0 ? symbol.range().end : range.end;
      called = symbol.readable();
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
  add_function(module, called, {range}, unit, accesses, false);
  return 1;
}

void Planner::add_function(uint32_t module, const std::string& name,
                           const std::vector<Range>& ranges, bool unit, bool accesses,
                           bool by_pattern) {
  if (named_locks_.contains({module, ranges.front().begin})) {
    return;
  }
  const auto [known, is_new] = by_entry_.try_emplace({module, ranges.front().begin},
                                                     static_cast<uint32_t>(plan_.functions.size()));
  if (is_new) {
    PlannedFunction function;
    function.name = name;
    function.module = module;
    function.ranges = ranges;
    function.by_pattern = true;
    plan_.functions.push_back(std::move(function));
  }
  plan_.functions[known->second].unit |= unit;
  plan_.functions[known->second].accesses |= accesses;
  plan_.functions[known->second].by_pattern &= by_pattern;
}

Result<bool> Planner::add_watch(const std::string& text) {
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
      if (!elf || target_.modules()[module].code.empty()) {
        continue;
      }
      for (const Symbol& symbol : (*elf)->variables()) {
        if (symbol.text() == name->symbol || symbol.readable() == name->symbol) {
          address = symbol.address + bias(module, **elf);
          size = size == 0 ? symbol.size : size;
          found = true;
          break;
        }
      }
    }
    if (!found) {
      return fail(ErrorKind::kUsage,
                  fmt::format("{}: no module of the process has a variable of this name{}", text,
                              similar_names(name->symbol, false)));
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

bool Site::only_accesses() const {
  return std::all_of(actions.begin(), actions.end(),
                     [](const Action& action) { return action.kind == Action::Kind::kAccess; });
}

Result<Plan> make_plan(const Target& target, const PlanRequest& request, Symbols& symbols) {
  return Planner(target, request, symbols, Plan(), 0).make();
}

Result<Plan> extend_plan(Plan plan, uint32_t first, const Target& target,
                         const PlanRequest& request, Symbols& symbols) {
  TSOMON_CHECK(first != 0, "the executable is in the first plan");
  return Planner(target, request, symbols, std::move(plan), first).make();
}

bool has_units(const Plan& plan, size_t first) {
  const auto begin = plan.sites.begin() + static_cast<std::ptrdiff_t>(first);
  return std::any_of(begin, plan.sites.end(), [](const Site& site) {
    return std::any_of(site.actions.begin(), site.actions.end(), [](const Action& action) {
      return action.kind == Action::Kind::kEnter || action.kind == Action::Kind::kBegin;
    });
  });
}

}  // namespace tsomon::attach
