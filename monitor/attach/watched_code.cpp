#include "monitor/attach/watched_code.h"

#include <algorithm>

#include "decoders/x86/decode.h"

namespace tsomon::attach {

bool WatchedCode::is_probed(uint32_t module, uint64_t address) const {
  return std::any_of(plan_.sites.begin(), plan_.sites.end(), [&](const Site& site) {
    return site.module == module &&
           std::any_of(site.actions.begin(), site.actions.end(), [&](const Action& action) {
             return action.kind == Action::Kind::kAccess && !action.fence &&
                    plan_.functions[action.function].code[action.instruction].address == address;
           });
  });
}

WatchedCode::Place WatchedCode::decode(uint64_t address) {
  Place place;
  const std::vector<Module>& all = target_.modules();
  for (uint32_t module = 0; module < all.size(); ++module) {
    for (const Mapping& mapping : all[module].code) {
      // The instruction may be the last of the mapping.
      if (address <= mapping.begin || address > mapping.end) {
        continue;
      }
      Code& code = modules_[module];
      if (code.elf == nullptr) {
        auto opened = ElfImage::open(all[module].file, all[module].shown);
        if (!opened) {
          return place;
        }
        code.elf = std::move(*opened);
        capture::Module whole;
        whole.path = all[module].shown;
        whole.end = UINT64_MAX;
        code.symboliser = std::make_unique<Symboliser>(std::vector<capture::Module>{whole});
      }
      const auto first = code.elf->address_of(mapping.offset);
      if (!first) {
        return place;
      }
      const uint64_t in_file = address - mapping.begin + *first;
      const Symbol* const symbol = symbol_around(code.elf->functions(), in_file - 1);
      const Range function = symbol != nullptr
                                 ? symbol->range()
                                 : code.elf->function_around(in_file - 1).value_or(Range());
      const std::vector<uint8_t> bytes = code.elf->code(function);
      for (size_t at = 0; at < bytes.size();) {
        const auto decoded = x86::decode(bytes.data() + at, bytes.size() - at, function.begin + at);
        if (!decoded) {
          return place;
        }
        const bool repeats = decoded->address == in_file && decoded->access_count != 0 &&
                             decoded->accesses[0].repeat != x86::Repeat::kOnce;
        if (decoded->next() == in_file || repeats) {
          place.accesses.assign(decoded->begin(), decoded->end());
          place.known = !place.accesses.empty();
          place.probed = is_probed(module, decoded->address);
          const SourcePlace& source = code.symboliser->place(decoded->address + 1);
          place.location = symbols_.intern_place(source.text, source.within);
          if (repeats || decoded->address >= in_file) {
            return place;
          }
        }
        if (decoded->address >= in_file) {
          return place;
        }
        at += decoded->length;
      }
      return place;
    }
  }
  // The kernel carries probed instructions out in a page of its own: their probe tells the access.
  if (const auto mappings = read_mappings(target_.pid())) {
    for (const Mapping& mapping : *mappings) {
      place.probed |=
          mapping.path == "[uprobes]" && mapping.begin <= address && address <= mapping.end;
    }
  }
  return place;
}

const WatchedCode::Place& WatchedCode::place_at(uint64_t address) {
  const auto [entry, is_new] = places_.try_emplace(address);
  if (is_new) {
    entry->second = decode(address);
  }
  return entry->second;
}

WatchedAccess WatchedCode::find(const Hit& hit) {
  WatchedAccess found;
  const Place& place = place_at(hit.ip);
  found.probed = place.probed;
  if (!place.known) {
    return found;
  }
  // Watch points are exact: the bytes that are watched are what conflicts.
  const WatchPoint& watch = plan_.watch[hit.source];
  found.address = watch.address;
  found.size = watch.size;
  found.location = place.location;
  bool loads = false;
  bool stores = false;
  for (const x86::Access& access : place.accesses) {
    loads |= access.kind == x86::AccessKind::kLoad;
    stores |= access.kind == x86::AccessKind::kStore;
    if (access.kind == x86::AccessKind::kLocked) {
      found.kind = x86::AccessKind::kLocked;
      return found;
    }
  }
  found.kind = loads ? x86::AccessKind::kLoad : x86::AccessKind::kStore;
  found.also_stores = loads && stores;
  return found;
}

}  // namespace tsomon::attach
