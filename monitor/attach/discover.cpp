#include "monitor/attach/discover.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <tuple>

#include <fmt/format.h>

#include "monitor/attach/elf_image.h"

namespace tsomon::attach {
namespace {

constexpr auto kPause = std::chrono::milliseconds(20);  // between two looks into the rings

struct Counts {
  uint64_t loads = 0;
  uint64_t stores = 0;
  std::set<uint32_t> threads;
  std::set<uint32_t> storing_threads;
  std::map<uint64_t, uint64_t> ips;
};

// Symbols of all modules that can be read, by their addresses in the process.
class Names {
 public:
  explicit Names(const Target& target) {
    for (const Module& module : target.modules()) {
      auto image = ElfImage::open(module.file, module.shown);
      if (!image) {
        continue;
      }
      for (const Mapping& mapping : module.code) {
        if (const auto address = (*image)->address_of(mapping.offset)) {
          add(module, **image, mapping.begin - *address);
          break;
        }
      }
    }
    if (auto mappings = read_mappings(target.pid())) {
      mappings_ = std::move(*mappings);
    }
  }

  std::string data(uint64_t address) const { return name(variables_, address, false); }
  std::string code(uint64_t address) const { return name(functions_, address, true); }

 private:
  struct Named {
    uint64_t end = 0;
    std::string name;
    std::string module;
  };
  using Table = std::map<uint64_t, Named>;  // by first address

  void add(const Module& module, const ElfImage& image, uint64_t bias) {
    for (const Symbol& symbol : image.symbols()) {
      if (symbol.size != 0) {
        const uint64_t begin = symbol.address + bias;
        (symbol.function ? functions_ : variables_)
            .emplace(begin, Named{begin + symbol.size, symbol.readable, module.name});
      }
    }
  }

  std::string name(const Table& table, uint64_t address, bool with_module) const {
    auto next = table.upper_bound(address);
    if (next != table.begin()) {
      const auto& [begin, named] = *--next;
      if (address < named.end) {
        return with_offset(named.name, address - begin) +
               (with_module ? fmt::format(" ({})", named.module) : "");
      }
    }
    for (const Mapping& mapping : mappings_) {
      if (address >= mapping.begin && address < mapping.end && !mapping.path.empty()) {
        // Of a file the place in the file, of anything else the place in the mapping.
        const std::string last = mapping.path.substr(mapping.path.rfind('/') + 1);
        return with_offset(last,
                           address - mapping.begin + (mapping.inode != 0 ? mapping.offset : 0));
      }
    }
    return fmt::format("0x{:x}", address);
  }

  static std::string with_offset(const std::string& name, uint64_t offset) {
    return offset == 0 ? name : fmt::format("{}+0x{:x}", name, offset);
  }

  Table variables_;
  Table functions_;
  std::vector<Mapping> mappings_;
};

}  // namespace

std::vector<SharedPlace> rank_shared_places(const std::vector<MemorySample>& samples,
                                            size_t limit) {
  std::map<uint64_t, Counts> counts;
  for (const MemorySample& sample : samples) {
    Counts& place = counts[sample.address / kPlaceBytes * kPlaceBytes];
    ++(sample.store ? place.stores : place.loads);
    ++place.ips[sample.ip];
    place.threads.insert(sample.thread);
    if (sample.store) {
      place.storing_threads.insert(sample.thread);
    }
  }
  std::vector<SharedPlace> places;
  for (const auto& [address, place] : counts) {
    if (place.threads.size() < 2 || place.stores == 0) {
      continue;
    }
    const auto busiest =
        std::max_element(place.ips.begin(), place.ips.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    places.push_back({address, place.loads, place.stores,
                      static_cast<uint32_t>(place.threads.size()),
                      static_cast<uint32_t>(place.storing_threads.size()), busiest->first});
  }
  std::sort(places.begin(), places.end(), [](const SharedPlace& a, const SharedPlace& b) {
    return std::tie(b.threads, b.stores, b.loads, a.address) <
           std::tie(a.threads, a.stores, a.loads, b.address);
  });
  places.resize(std::min(places.size(), limit));
  return places;
}

std::vector<Proposal> name_places(const Target& target, const std::vector<SharedPlace>& places) {
  const Names names(target);
  std::vector<Proposal> proposals;
  proposals.reserve(places.size());
  for (const SharedPlace& place : places) {
    proposals.push_back({place, fmt::format("0x{:x}:{}", place.address, kPlaceBytes),
                         names.data(place.address), names.code(place.busiest_ip)});
  }
  return proposals;
}

Result<Discovery> discover(const Target& target, double seconds, size_t limit) {
  auto sampler = MemorySampler::open(target.threads());
  if (!sampler) {
    return tl::unexpected<Error>(sampler.error());
  }
  std::vector<MemorySample> samples;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end && !target.ended()) {
    std::this_thread::sleep_for(kPause);
    (*sampler)->read(samples);
  }
  if (target.ended() || !target.same_program()) {
    return fail(ErrorKind::kUnreadable, "the process has ended, or runs another program now");
  }
  return Discovery{name_places(target, rank_shared_places(samples, limit)), (*sampler)->events(),
                   samples.size(), (*sampler)->lost()};
}

}  // namespace tsomon::attach
