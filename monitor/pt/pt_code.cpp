#include "monitor/pt/pt_code.h"

#include <algorithm>

#include "monitor/process/module_files.h"

namespace tsomon {
namespace {

// A process has fewer; damaged input may claim any number.
constexpr size_t kMostMappings = 8192;
constexpr size_t kMostSections = size_t{1} << 18;

}  // namespace

void PtCode::take_exec(uint32_t pid, uint64_t time, bool first_is_beginning) {
  Process& process = processes_[pid];
  process.mappings.clear();
  process.begin = process.forked || process.executed || !first_is_beginning ? time : 0;
  process.executed = true;
}

void PtCode::take_fork(const perf::Task& task, uint64_t time) {
  const bool reused = processes_.count(task.pid) != 0 && time != 0;
  std::vector<Section> inherited = processes_[task.parent_pid].mappings;
  Process& process = processes_[task.pid];
  if (time == 0 && !process.mappings.empty()) {
    return;  // perf tells of what is running already, in any order
  }
  sections_ += inherited.size();
  if (sections_ > kMostSections) {
    ++refused_;
    return;
  }
  process.forked = time != 0;
  process.begin = reused ? time : 0;
  process.mappings = std::move(inherited);
  for (Section& mapping : process.mappings) {
    mapping.from = reused ? time : mapping.from;
  }
}

void PtCode::take_mmap(const perf::Mmap& map, uint64_t time) {
  Process& process = processes_[map.pid];
  Section added;
  added.from = process.begin;
  added.code = {map.address, map.size, map.file_offset, std::string(map.path),
                std::string(map.build_id)};
  if (map.size == 0 || map.address + map.size < map.address) {
    return;
  }
  if (process.mappings.size() >= kMostMappings || ++sections_ > kMostSections) {
    ++refused_;
    process.mappings.clear();  // they may no longer be what is there
    return;
  }
  const bool known = !file_of(added.code).empty();
  auto& all = process.mappings;
  for (size_t i = all.size(); i-- != 0;) {
    const Section& older = all[i];
    if (added.code.begin >= older.end() || older.code.begin >= added.end()) {
      continue;
    }
    const bool same = older.code.begin == added.code.begin && older.code.size == added.code.size &&
                      older.code.file_offset == added.code.file_offset &&
                      older.code.path == added.code.path &&
                      older.code.build_id == added.code.build_id;
    if (same) {
      return;
    }
    added.from = std::max(added.from, time);
    if (!known) {
      all.erase(all.begin() + static_cast<ptrdiff_t>(i));
    }
  }
  all.push_back(std::move(added));
}

const std::string& PtCode::file_of(perf::CodeMapping& code) {
  if (code.build_id.empty() && !info_.build_ids.empty()) {
    if (build_ids_.empty()) {
      for (const perf::FileBuildId& entry : info_.build_ids) {
        build_ids_.emplace(entry.path, entry.id);
      }
    }
    if (const auto known = build_ids_.find(code.path); known != build_ids_.end()) {
      code.build_id = known->second;
    }
  }
  const auto [file, is_new] = files_.try_emplace({code.path, code.build_id});
  if (is_new) {
    file->second = find_code_file(code.path, code.build_id, search_);
  }
  return file->second;
}

std::vector<PtCode::Mapping> PtCode::finish(const std::set<int>& running) {
  std::vector<Mapping> all;
  for (auto& [pid, process] : processes_) {
    const int id = static_cast<int>(pid);
    if (running.count(id) == 0) {
      continue;
    }
    for (Section& section : process.mappings) {
      const std::string& file = file_of(section.code);
      all.push_back({id, section.from, section.code, file});
    }
  }
  return all;
}

}  // namespace tsomon
