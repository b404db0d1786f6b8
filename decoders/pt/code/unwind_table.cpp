#include "decoders/pt/code/unwind_table.h"

#include <cstring>
#include <string>
#include <tuple>
#include <utility>

namespace tsomon::pt {
namespace {

constexpr uint64_t kMostEntryBytes = uint64_t{1} << 16;  // of an entry
constexpr size_t kMostSites = 4096;
constexpr uint8_t kOmitted = 0xFF;
constexpr uint64_t kStackPointer = 7;  // as DWARF numbers the registers

// Reads values one after the other; what goes past the end is 0, and good() no longer holds.
class Cursor {
 public:
  Cursor(const std::vector<uint8_t>& bytes, uint64_t address) : bytes_(bytes), address_(address) {}

  bool good() const { return good_; }
  bool done() const { return !good_ || at_ == bytes_.size(); }
  uint64_t address() const { return address_ + at_; }
  void skip(uint64_t size) {
    good_ = good_ && size <= bytes_.size() - at_;
    at_ += good_ ? size : 0;
  }

  template <typename T>
  T get() {
    T value{};
    good_ = good_ && sizeof value <= bytes_.size() - at_;
    if (good_) {
      std::memcpy(&value, bytes_.data() + at_, sizeof value);
      at_ += sizeof value;
    }
    return value;
  }
  uint64_t unsigned_number() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 63; shift += 7) {
      const auto byte = get<uint8_t>();
      value |= uint64_t{byte & 0x7FU} << shift;
      if ((byte & 0x80) == 0) {
        return value;
      }
    }
    good_ = false;
    return 0;
  }
  int64_t signed_number() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 63; shift += 7) {
      const auto byte = get<uint8_t>();
      value |= uint64_t{byte & 0x7FU} << shift;
      if ((byte & 0x80) == 0) {
        const uint64_t sign = (byte & 0x40) != 0 ? ~uint64_t{0} << (shift + 7) : 0;
        return static_cast<int64_t>(value | sign);
      }
    }
    good_ = false;
    return 0;
  }
  // As DW_EH_PE_ says; `data`: what addresses may be relative to.
  uint64_t pointer(uint8_t encoding, uint64_t data = 0) {
    const uint64_t here = address();
    uint64_t value = 0;
    switch (encoding & 0x0F) {
      case 0x00:
      case 0x04:
      case 0x0C:
        value = get<uint64_t>();
        break;
      case 0x01:
        value = unsigned_number();
        break;
      case 0x03:
        value = get<uint32_t>();
        break;
      case 0x0B:
        value = static_cast<uint64_t>(int64_t{get<int32_t>()});
        break;
      default:
        good_ = false;
    }
    switch (encoding & 0xF0) {
      case 0x00:
        return value;
      case 0x10:
        return value == 0 ? 0 : here + value;
      case 0x30:
        return data + value;
      default:
        good_ = false;
        return 0;
    }
  }

 private:
  const std::vector<uint8_t>& bytes_;
  uint64_t address_;
  size_t at_ = 0;
  bool good_ = true;
};

// Where the frame's end is, as the instructions of the table tell it.
class FrameRule {
 public:
  explicit FrameRule(uint64_t code_step) : code_step_(code_step) {}

  // Runs up to what holds at `ip`, from `begin` on; false when it is not understood.
  bool run(Cursor& from, uint64_t begin, uint64_t ip) {
    uint64_t at = begin;
    std::vector<std::pair<uint64_t, int64_t>> kept;
    while (!from.done()) {
      const auto byte = from.get<uint8_t>();
      switch (byte & 0xC0) {
        case 0x40:
          at += (byte & 0x3FU) * code_step_;
          break;
        case 0x80:
          from.unsigned_number();
          break;
        case 0xC0:
          break;
        default:
          if (!other(byte, from, at, kept)) {
            return false;
          }
      }
      if (at > ip) {
        return true;
      }
    }
    return from.good();
  }
  std::optional<int64_t> from_stack_pointer() const {
    return base_ == kStackPointer ? std::optional(offset_) : std::nullopt;
  }

 private:
  bool other(uint8_t byte, Cursor& from, uint64_t& at,
             std::vector<std::pair<uint64_t, int64_t>>& kept) {
    switch (byte) {
      case 0x00:  // nop
        return true;
      case 0x02:  // advance
        at += from.get<uint8_t>() * code_step_;
        return true;
      case 0x03:
        at += from.get<uint16_t>() * code_step_;
        return true;
      case 0x04:
        at += from.get<uint32_t>() * code_step_;
        return true;
      case 0x05:  // where registers are
      case 0x09:
      case 0x14:
        from.unsigned_number();
        [[fallthrough]];
      case 0x06:
      case 0x07:
      case 0x08:
      case 0x2E:  // bytes of arguments
        from.unsigned_number();
        return true;
      case 0x11:
      case 0x15:
        from.unsigned_number();
        from.signed_number();
        return true;
      case 0x10:
      case 0x16:
        from.unsigned_number();
        from.skip(from.unsigned_number());
        return true;
      case 0x0A:
        kept.emplace_back(base_, offset_);
        return true;
      case 0x0B:
        if (kept.empty()) {
          return false;
        }
        std::tie(base_, offset_) = kept.back();
        kept.pop_back();
        return true;
      case 0x0C:  // the end of the frame
        base_ = from.unsigned_number();
        offset_ = static_cast<int64_t>(from.unsigned_number());
        return true;
      case 0x0D:
        base_ = from.unsigned_number();
        return true;
      case 0x0E:
        offset_ = static_cast<int64_t>(from.unsigned_number());
        return true;
      case 0x0F:
        from.skip(from.unsigned_number());
        base_ = ~uint64_t{0};
        return true;
      default:
        return false;
    }
  }

  uint64_t code_step_;
  uint64_t base_ = ~uint64_t{0};
  int64_t offset_ = 0;
};

}  // namespace

// The description of a function with what it shares with others.
struct UnwindTable::Entry {
  Function function;
  uint64_t code_step = 1;
  std::vector<uint8_t> shared;  // instructions
  std::vector<uint8_t> own;
};

UnwindTable::UnwindTable(Read read, uint64_t header) : read_(std::move(read)), header_(header) {
  std::vector<uint8_t> bytes(32);
  if (header == 0 || !read_(header, bytes.data(), bytes.size())) {
    return;
  }
  Cursor from(bytes, header);
  const auto version = from.get<uint8_t>();
  const auto entries = from.get<uint8_t>();
  const auto count = from.get<uint8_t>();
  const auto table = from.get<uint8_t>();
  from.pointer(entries, header);
  const uint64_t functions = from.pointer(count, header);
  // Pairs of signed distances from the header: nobody writes anything else.
  if (version == 1 && table == 0x3B && from.good()) {
    count_ = functions;
    table_ = from.address();
  }
}

std::optional<UnwindTable::Entry> UnwindTable::read_entry(uint64_t address) const {
  const auto read = [&](uint64_t at, std::vector<uint8_t>& to) {
    uint32_t size = 0;
    if (!read_(at, reinterpret_cast<uint8_t*>(&size), sizeof size) || size < 4 ||
        size > kMostEntryBytes) {
      return false;
    }
    to.resize(size);
    return read_(at + 4, to.data(), size);
  };
  std::vector<uint8_t> bytes;
  if (!read(address, bytes)) {
    return std::nullopt;
  }
  Cursor from(bytes, address + 4);
  const auto distance = from.get<uint32_t>();
  std::vector<uint8_t> shared;
  const uint64_t shared_at = address + 4 - distance;
  if (distance == 0 || !read(shared_at, shared)) {
    return std::nullopt;
  }
  Cursor common(shared, shared_at + 4);
  const auto id = common.get<uint32_t>();
  const auto version = common.get<uint8_t>();
  std::string augmentation;
  for (char letter = common.get<char>(); letter != 0; letter = common.get<char>()) {
    augmentation.push_back(letter);
  }
  Entry entry;
  entry.code_step = common.unsigned_number();
  common.signed_number();
  version == 1 ? common.get<uint8_t>() : common.unsigned_number();
  uint8_t pointers = 0;
  uint8_t sites = kOmitted;
  if (id != 0 || (version != 1 && version != 3) || augmentation.empty() || augmentation[0] != 'z') {
    return std::nullopt;
  }
  common.unsigned_number();
  for (size_t i = 1; i < augmentation.size(); ++i) {
    switch (augmentation[i]) {
      case 'R':
        pointers = common.get<uint8_t>();
        break;
      case 'L':
        sites = common.get<uint8_t>();
        break;
      case 'P': {
        const auto encoding = common.get<uint8_t>();
        common.pointer(encoding & 0x7F);
        break;
      }
      default:
        return std::nullopt;  // signal frames, too
    }
  }
  entry.function.entry = address;
  entry.function.begin = from.pointer(pointers);
  entry.function.end = entry.function.begin + from.pointer(pointers & 0x0F);
  const uint64_t more = from.unsigned_number();
  const uint64_t rest = from.address() + more;
  entry.function.call_sites = sites == kOmitted ? 0 : from.pointer(sites);
  if (!from.good() || !common.good() || entry.code_step == 0 || from.address() > rest ||
      rest > address + 4 + bytes.size()) {
    return std::nullopt;
  }
  const auto rest_of = [](const std::vector<uint8_t>& all, uint64_t behind) {
    return std::vector<uint8_t>(all.begin() + static_cast<ptrdiff_t>(behind), all.end());
  };
  entry.own = rest_of(bytes, rest - address - 4);
  entry.shared = rest_of(shared, common.address() - shared_at - 4);
  return entry;
}

std::optional<UnwindTable::Function> UnwindTable::find(uint64_t ip) const {
  struct Pair {
    int32_t function;
    int32_t entry;
  };
  uint64_t low = 0;
  uint64_t high = count_;
  Pair pair{};
  const auto read = [&](uint64_t at) {
    return read_(table_ + at * sizeof(Pair), reinterpret_cast<uint8_t*>(&pair), sizeof pair);
  };
  const auto behind = [&](int32_t distance) {
    return header_ + static_cast<uint64_t>(int64_t{distance});
  };
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    if (!read(middle)) {
      return std::nullopt;
    }
    (behind(pair.function) <= ip ? low : high) = middle;
  }
  if (count_ == 0 || !read(low)) {
    return std::nullopt;
  }
  const auto entry = read_entry(behind(pair.entry));
  if (!entry || ip < entry->function.begin || ip >= entry->function.end) {
    return std::nullopt;
  }
  return entry->function;
}

std::optional<int64_t> UnwindTable::frame_size(const Function& function, uint64_t ip) const {
  const auto entry = read_entry(function.entry);
  if (!entry) {
    return std::nullopt;
  }
  FrameRule rule(entry->code_step);
  Cursor shared(entry->shared, 0);
  Cursor own(entry->own, 0);
  if (!rule.run(shared, function.begin, ~uint64_t{0}) || !rule.run(own, function.begin, ip)) {
    return std::nullopt;
  }
  return rule.from_stack_pointer();
}

std::optional<std::vector<uint64_t>> UnwindTable::landing_pads(const Function& function) const {
  std::vector<uint64_t> pads;
  if (function.call_sites == 0) {
    return pads;
  }
  std::vector<uint8_t> bytes(32);
  while (!read_(function.call_sites, bytes.data(), bytes.size())) {
    bytes.pop_back();  // it may be the last one
    if (bytes.empty()) {
      return std::nullopt;
    }
  }
  Cursor head(bytes, function.call_sites);
  const auto start = head.get<uint8_t>();
  if (start != kOmitted) {
    return std::nullopt;  // another part's
  }
  if (head.get<uint8_t>() != kOmitted) {
    head.unsigned_number();
  }
  const auto encoding = head.get<uint8_t>();
  const uint64_t size = head.unsigned_number();
  if (!head.good() || size > kMostEntryBytes) {
    return std::nullopt;
  }
  std::vector<uint8_t> sites(size);
  if (!read_(head.address(), sites.data(), size)) {
    return std::nullopt;
  }
  Cursor from(sites, head.address());
  while (!from.done() && pads.size() < kMostSites) {
    from.pointer(encoding);
    from.pointer(encoding);
    const uint64_t pad = from.pointer(encoding);
    from.unsigned_number();
    if (pad != 0) {
      pads.push_back(function.begin + pad);
    }
  }
  return from.done() && from.good() ? std::optional(std::move(pads)) : std::nullopt;
}

}  // namespace tsomon::pt
