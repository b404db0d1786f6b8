#include "decoders/perf/spaces.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace tsomon::perf {

// Long lists must not be freed by recursion.
AddressSpaces::~AddressSpaces() {
  for (auto& space : spaces_) {
    std::shared_ptr<Node> node = std::move(space->newest);
    while (node != nullptr && node.use_count() == 1) {
      node = std::exchange(node->older, nullptr);
    }
  }
}

AddressSpaces::Space& AddressSpaces::of(uint32_t pid) {
  Space*& space = current_[pid];
  if (space == nullptr) {
    spaces_.push_back(std::make_unique<Space>());
    space = spaces_.back().get();
  }
  return *space;
}

void AddressSpaces::see(const Record& record) {
  switch (record.type) {
    case RecordType::kMmap:
    case RecordType::kMmap2:
      if (const auto map = parse_mmap(record); map && map->executable && map->pid != UINT32_MAX) {
        Space& space = of(map->pid);
        auto node = std::make_shared<Node>();
        node->mapping = {map->address, map->size, map->file_offset, std::string(map->path),
                         std::string(map->build_id)};
        node->older = std::move(space.newest);
        space.newest = std::move(node);
      }
      return;
    case RecordType::kComm:
      if (const auto comm = parse_comm(record); comm && comm->exec) {
        current_[comm->pid] = nullptr;
      }
      return;
    case RecordType::kFork:
      if (const auto task = parse_task(record); task && task->pid != task->parent_pid) {
        const std::shared_ptr<Node> inherited = of(task->parent_pid).newest;
        current_[task->pid] = nullptr;
        of(task->pid).newest = inherited;
      }
      return;
    default:
      return;
  }
}

std::optional<uint64_t> AddressSpaces::tagged(uint32_t pid, uint64_t address) {
  if (address >> 63 != 0) {
    return address;
  }
  if (address >> kTagShift != 0) {
    return std::nullopt;
  }
  Space& space = of(pid);
  if (!space.number) {
    if (numbers_ == kMaxSpaces) {
      return std::nullopt;
    }
    space.number = numbers_++;
  }
  return address | *space.number << kTagShift;
}

std::vector<CodeMapping> AddressSpaces::mappings(
    const std::vector<std::pair<std::string, std::string>>& build_ids_by_path) const {
  std::unordered_map<std::string, std::string> build_ids(build_ids_by_path.begin(),
                                                         build_ids_by_path.end());
  std::vector<CodeMapping> result;
  for (const auto& space : spaces_) {
    if (!space->number) {
      continue;
    }
    const size_t begin = result.size();
    for (const Node* node = space->newest.get(); node != nullptr; node = node->older.get()) {
      CodeMapping mapping = node->mapping;
      mapping.begin |= *space->number << kTagShift;
      if (mapping.build_id.empty()) {
        if (const auto known = build_ids.find(mapping.path); known != build_ids.end()) {
          mapping.build_id = known->second;
        }
      }
      result.push_back(std::move(mapping));
    }
    std::reverse(result.begin() + static_cast<ptrdiff_t>(begin), result.end());
  }
  return result;
}

}  // namespace tsomon::perf
