// compare_accesses MAP CAPTURE PROGRAM [ARGUMENT...]
//
// Runs a program of the wrapper's one instruction at a time and compares what its own code accesses with
// what is recorded. MAP: of the linker (-Wl,-Map=MAP). Says what differs; exit status 1 if anything
// does, 2 if it could not be compared. What is counted and harmless: docs/guide/record.md, "What
// compilers add and leave out".
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <tuple>

#include <fmt/format.h>

#include "decoders/capture/reader.h"
#include "tests/accesses/own_code.h"
#include "tests/accesses/stepped_accesses.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

// Of hooks in front of an access: one that is recorded.
struct PlainAccess {
  std::string function;
  uint64_t address = 0;
  uint64_t size = 0;
  bool store = false;
  bool operator<(const PlainAccess& other) const {
    return std::tie(function, address, size, store) <
           std::tie(other.function, other.address, other.size, other.store);
  }
};

struct Recorded {
  std::map<AccessKey, uint64_t> bytes;
  std::map<PlainAccess, uint64_t> plain;  // the pc
};

enum class Hook { kOther, kPlain, kTable };

// kPlain leaves the access to the code that follows. kTable: so does a store of a pointer to a table of
// virtual functions, which is recorded as a load where it is there already.

Hook hook_of(const std::string& name) {
  if (name == "__tsan_vptr_update") {
    return Hook::kTable;
  }
  for (const char* const prefix :
       {"__tsan_read", "__tsan_write", "__tsan_unaligned", "__tsan_vptr"}) {
    if (name.rfind(prefix, 0) == 0) {
      return name.find("range") == std::string::npos ? Hook::kPlain : Hook::kOther;
    }
  }
  return Hook::kOther;
}

std::string hook_before(const OwnCode& code, const attach::ElfImage& image, uint64_t pc) {
  const std::vector<uint8_t> bytes = image.code({pc - 5, pc});
  if (bytes.size() != 5 || bytes[0] != 0xE8) {
    return "";
  }
  const uint32_t distance = bytes[1] | bytes[2] << 8 | bytes[3] << 16 | uint32_t{bytes[4]} << 24;
  return code.function(pc + static_cast<uint64_t>(static_cast<int32_t>(distance)));
}

Recorded recorded_accesses(const std::string& path, const OwnCode& code,
                           const attach::ElfImage& image, const SteppedAccesses& stepped) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  const auto capture = capture::read_capture(bytes);
  if (!capture) {
    throw std::runtime_error(capture.error().to_string());
  }
  for (const std::string& problem : capture->problems) {
    fmt::print("problem: {}\n", problem);
  }
  Recorded recorded;
  const Trace& trace = capture->trace;
  std::map<uint32_t, std::pair<std::string, Hook>> places;
  for (const Event& event : trace.events) {
    constexpr uint32_t kAccesses = kind_mask(EventKind::kRead) | kind_mask(EventKind::kWrite) |
                                   kind_mask(EventKind::kReadModifyWrite);
    if (!is(event, kAccesses) || event.size == 0 || event.location == Event::kNoLocation) {
      continue;
    }
    const uint64_t pc =
        std::strtoull(trace.symbols.location_text(event.location).c_str(), nullptr, 16) -
        stepped.bias;
    if (!code.contains(pc - 1)) {
      continue;
    }
    const auto [place, is_new] = places.try_emplace(event.location);
    if (is_new) {
      place->second = {code.function(pc - 1), hook_of(hook_before(code, image, pc))};
    }
    if (place->second.second == Hook::kPlain) {
      recorded.plain[{place->second.first, event.address, event.size,
                      event.kind() == EventKind::kWrite}] = pc;
    }
    // Blocks may be large; what nothing was done to is not asked about.
    const auto& [function, hook] = place->second;
    const auto last = stepped.bytes.lower_bound({function, event.address + event.size, false});
    for (auto at = stepped.bytes.lower_bound({function, event.address, false}); at != last; ++at) {
      if (event.kind() == EventKind::kReadModifyWrite || hook == Hook::kTable ||
          (event.kind() == EventKind::kWrite) == std::get<2>(at->first)) {
        ++recorded.bytes[at->first];
      }
    }
  }
  return recorded;
}

const char* name_of(bool store) { return store ? "store" : "load"; }

// What code does and no hook says. Bytes of one function that follow one another are one line.
uint64_t tell_missing(const SteppedAccesses& stepped, const Recorded& recorded, uint64_t* besides) {
  uint64_t count = 0;
  AccessKey last;
  for (const auto& [key, done] : stepped.bytes) {
    const auto found = recorded.bytes.find(key);
    const uint64_t times = found == recorded.bytes.end() ? 0 : found->second;
    const auto& [function, address, store] = key;
    if (done.needed <= times) {
      continue;
    }
    // Compilers may load a value once more instead of keeping it, and bytes next to it whose values
    // are dropped.
    bool beside = false;
    for (uint64_t at = done.begin; !store && times == 0 && at < done.end; ++at) {
      beside = beside || recorded.bytes.count({function, at, false}) != 0;
    }
    if (!store && (beside || done.needed <= 2 * times)) {
      ++*besides;
      continue;
    }
    if (AccessKey{function, address - 1, store} != last) {
      ++count;
      fmt::print("missing: {} at {:#x} in {} ({:#x}), {} of {} times\n", name_of(store), address,
                 function, done.pc, done.needed - times, done.needed);
    }
    last = key;
  }
  return count;
}

struct Harmless {
  uint64_t wider = 0;     // of an access that takes place other bytes are recorded, too
  uint64_t answered = 0;  // loads that the compiler answers from a store before it
  uint64_t own = 0;       // of a thread's own stack
};

// What hooks say and no code does.
uint64_t tell_extra(const SteppedAccesses& stepped, const Recorded& recorded, Harmless* harmless) {
  uint64_t count = 0;
  for (const auto& [access, pc] : recorded.plain) {
    uint64_t done = 0;
    uint64_t stored = 0;
    for (uint64_t at = access.address; at < access.address + access.size; ++at) {
      done += stepped.bytes.count({access.function, at, access.store});
      stored += stepped.bytes.count({access.function, at, true});
    }
    if (done == access.size) {
      continue;
    }
    const bool own =
        std::any_of(stepped.stacks.begin(), stepped.stacks.end(),
                    [&](const std::pair<uint64_t, uint64_t>& one) {
                      return access.address >= one.first && access.address < one.second;
                    });
    if (done != 0) {
      ++harmless->wider;
    } else if (!access.store && stored == access.size) {
      ++harmless->answered;
    } else if (own) {
      ++harmless->own;
    } else {
      ++count;
      fmt::print("extra: {} of {} bytes at {:#x} in {} ({:#x})\n", name_of(access.store),
                 access.size, access.address, access.function, pc);
    }
  }
  return count;
}

int compare(const std::string& map, const std::string& path,
            const std::vector<std::string>& command) {
  const OwnCode code(command[0], map);
  auto image = attach::ElfImage::open(command[0], command[0]);
  if (!image) {
    throw std::runtime_error(image.error().to_string());
  }
  const SteppedAccesses stepped =
      step_accesses(command, "output=" + path + ":clock=trust:spin=0:level=0:repeats=all", code);
  const Recorded recorded = recorded_accesses(path, code, **image, stepped);
  for (const auto& [pc, function] : stepped.unknown) {
    fmt::print("note: what an instruction of {} accesses is not known ({:#x})\n", function, pc);
  }
  const auto compared = std::count_if(stepped.bytes.begin(), stepped.bytes.end(),
                                      [](const auto& one) { return one.second.needed != 0; });
  uint64_t besides = 0;
  Harmless harmless;
  const uint64_t missing = tell_missing(stepped, recorded, &besides);
  const uint64_t extra = tell_extra(stepped, recorded, &harmless);
  fmt::print(
      "{} steps, {} of them in its own code, {} bytes compared: {} missing, {} extra ({} bytes "
      "loaded "
      "besides, {} accesses wider, {} loads answered, {} of own stacks); status {}\n",
      stepped.steps, stepped.own_steps, compared, missing, extra, besides, harmless.wider,
      harmless.answered, harmless.own, stepped.status);
  return missing + extra != 0 ? 1 : compared == 0 ? 2 : 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) {
    fmt::print(stderr, "usage: compare_accesses MAP CAPTURE PROGRAM [ARGUMENT...]\n");
    return 2;
  }
  try {
    return compare(arguments[1], arguments[2], {arguments + 3, arguments + count});
  } catch (const std::exception& error) {
    fmt::print(stderr, "compare_accesses: {}\n", error.what());
    return 2;
  }
}
