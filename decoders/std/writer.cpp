#include "decoders/std/writer.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "decoders/std/ops.h"
#include "decoders/std/text.h"
#include "tso/model/cancelled_units.h"
#include "tso/model/lock_order.h"
#include "tso/support/printable.h"

namespace tsomon {
namespace {

using namespace std_trace;

void put_escaped(unsigned char byte, std::string& out) {
  fmt::format_to(std::back_inserter(out), "%{:02X}", byte);
}

// Puts the first character, escaped if it could not be shown or if `special`; gives its bytes.
size_t put_character(std::string_view text, bool special, std::string& out) {
  const Character character = first_character(text);
  const std::string_view bytes = text.substr(0, character.bytes);
  if (character.harmful || special) {
    for (const char byte : bytes) {
      put_escaped(static_cast<unsigned char>(byte), out);
    }
  } else {
    out += bytes;
  }
  return character.bytes;
}

// Free text: only what would end the field or the line, or could not be shown.
void put_text(std::string_view text, std::string& out) {
  while (!text.empty()) {
    if (text[0] == '\t') {
      out += '\t';
      text.remove_prefix(1);
    } else {
      text.remove_prefix(put_character(text, text[0] == '|', out));
    }
  }
}

// A name that must stay itself and distinct from every other. '%' appears only in names that are
// escaped, and there it is escaped, too: so no two names give the same text. The lone '%' of the
// empty name is no escape of any other.
void put_name(std::string_view name, std::string& out) {
  constexpr std::string_view kSpecial = "|()=,;%#";
  if (name.empty()) {
    out += '%';
    return;
  }
  if (name == "-") {
    out += "%2D";
    return;
  }
  const bool like_range = parse_byte_range(name).has_value();
  while (!name.empty()) {
    const char c = name[0];
    const bool special = kSpecial.find(c) != std::string_view::npos || (like_range && c == '+') ||
                         static_cast<unsigned char>(c) == 0xEF;
    name.remove_prefix(put_character(name, special, out));
  }
}

// The tables may be incomplete in traces that were put together by hand: the id serves then, with
// a '%' that no name has before a letter.
void put_interned(const Interner& table, uint64_t id, char fallback, std::string& out) {
  if (id < table.size()) {
    put_name(table.text(static_cast<uint32_t>(id)), out);
  } else {
    fmt::format_to(std::back_inserter(out), "%{}{}", fallback, id);
  }
}

void put_location(const Symbols& symbols, LocationKey key, std::string& out) {
  if (key.size != 0) {
    fmt::format_to(std::back_inserter(out), "0x{:x}+{}", key.address, key.size);
  } else if (key.address < symbols.names.size()) {
    put_name(symbols.names.text(static_cast<uint32_t>(key.address)), out);
  } else {
    // A lock that is known by its address only.
    const std::string raw = fmt::format("0x{:x}", key.address);
    out += symbols.names.find(raw) == Interner::kNone ? raw : "%X" + raw;
  }
}

void put_label(const Symbols& symbols, uint64_t id, std::string& out) {
  if (id >= symbols.labels.size()) {
    return;
  }
  const std::string_view label = symbols.labels.text(static_cast<uint32_t>(id));
  put_text(unit_label(label), out);
  char separator = ';';
  for (const std::string_view set : unit_sets(label)) {
    out += separator;
    if (!set.empty()) {
      put_name(set, out);
    }
    separator = ',';
  }
}

const Op& op_of(EventKind kind) {
  if (kind == kCancelledBegin) {
    kind = EventKind::kUnitBegin;  // the cancel that follows says it
  }
  for (const Op& op : kOps) {
    if (op.kind == kind) {
      return op;
    }
  }
  return kOps.front();
}

std::array<std::string, kKindsWithCancels> op_names() {
  std::array<std::string, kKindsWithCancels> names;
  for (int kind = 0; kind < kKindsWithCancels; ++kind) {
    for (uint64_t word = op_of(static_cast<EventKind>(kind)).word; word != 0; word >>= 8) {
      names[static_cast<size_t>(kind)] += static_cast<char>(word & 0xFF);
    }
  }
  return names;
}

void put_values(const EventBlock& block, const Event& event, std::string& out) {
  const uint64_t mask =
      event.size == 0 || event.size >= 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * event.size)) - 1;
  const auto put = [&](std::optional<uint64_t> value) {
    if (value) {
      fmt::format_to(std::back_inserter(out), "{}{}", event.size > 8 ? "#" : "", *value & mask);
    }
  };
  const std::optional<uint64_t> read = block.read_value(event);
  const std::optional<uint64_t> written = block.write_value(event);
  const Op& op = op_of(event.kind());
  if ((op.reads && read) || (op.writes && written)) {
    out += '=';
    if (op.reads) {
      put(read);
    }
    if (op.reads && op.writes) {
      out += ',';
    }
    if (op.writes) {
      put(written);
    }
  }
}

}  // namespace

void StdWriter::write_headers(std::string& out) const {
  for (const AtomicSet& set : symbols_.sets) {
    out += "-|set(";
    put_name(set.name, out);
    char separator = ';';
    for (const LocationKey& member : set.members) {
      out += separator;
      put_location(symbols_, member, out);
      separator = ',';
    }
    out += set.members.empty() ? ";)|\n" : ")|\n";
  }
  if (!symbols_.initial_zero) {
    out += "-|init(unknown)|\n";
  }
  for (const InitialValue& initial : symbols_.initial_values) {
    out += "-|init(";
    put_location(symbols_, initial.location, out);
    fmt::format_to(std::back_inserter(out), "={})|\n", initial.value);
  }
}

void StdWriter::write_event(const EventBlock& block, const Event& event, std::string& out) {
  static const std::array<std::string, kKindsWithCancels> kNames = op_names();
  put_interned(symbols_.threads, event.thread, 'T', out);
  out += '|';
  out += kNames[static_cast<size_t>(event.kind()) % kKindsWithCancels];
  switch (op_of(event.kind()).form) {
    case OpForm::kLocation:
      out += '(';
      put_location(symbols_, {event.address, event.size}, out);
      put_values(block, event, out);
      out += ')';
      break;
    case OpForm::kThread:
      out += '(';
      put_interned(symbols_.threads, event.address, 'T', out);
      out += ')';
      break;
    case OpForm::kText:
      out += '(';
      if (event.address < symbols_.labels.size()) {
        put_text(symbols_.labels.text(static_cast<uint32_t>(event.address)), out);
      }
      out += ')';
      break;
    case OpForm::kBegin: {
      const size_t before = out.size();
      out += '(';
      put_label(symbols_, event.address, out);
      if (out.size() == before + 1) {
        out.resize(before);
      } else {
        out += ')';
      }
      break;
    }
    case OpForm::kObject:
    case OpForm::kAddress:
      fmt::format_to(std::back_inserter(out), "(0x{:x}", event.address);
      if (event.size != 0 && op_of(event.kind()).form == OpForm::kObject) {
        fmt::format_to(std::back_inserter(out), "+{}", static_cast<uint32_t>(event.size));
      } else {
        put_values(block, event, out);
      }
      out += ')';
      break;
    default:
      break;
  }
  out += '|';
  if ((event.location & Event::kNumericLocation) != 0 ||
      event.location < symbols_.locations.size()) {
    put_text(symbols_.place_text(event.location, '@'), out);
  }
  const int64_t lo = block.lo(event);
  const int64_t hi = block.hi(event);
  if (lo != place_ || hi != place_) {
    fmt::format_to(std::back_inserter(out), "|{}..{}{}", lo, hi,
                   is_lock_by_start(event) ? "!" : "");
  }
  out += '\n';
  ++place_;
}

void StdWriter::write(const EventBlock& block, std::string& out) {
  for (const Event& event : block.events) {
    write_event(block, event, out);
  }
}

void StdWriter::write_lost(uint64_t events, std::string& out) {
  fmt::format_to(std::back_inserter(out), "-|lost({})|\n", events);
}

void StdWriter::write_atomics(std::string& out) { out += "-|atomics()|\n"; }
void StdWriter::write_recorded_until_whole(std::string& out) { out += "-|recorded(ends)|\n"; }
void StdWriter::write_damage(Damage damage, bool orders, std::string& out) {
  if (damage != Damage::kNone || orders) {
    out += orders                    ? "-|damaged(orders)|\n"
           : damage == Damage::kEnds ? "-|damaged(ends)|\n"
                                     : "-|damaged()|\n";
  }
}
void StdWriter::write_until_whole(std::string& out) { out += "-|ends()|\n"; }
void StdWriter::write_whole(std::string& out) { out += "-|whole()|\n"; }

void StdWriter::write_may_cancel(std::string& out) { out += "-|cancels()|\n"; }

void StdWriter::write_loss(const Trace& trace, std::string& out) {
  if (!trace.complete) {
    write_lost(trace.lost_events, out);
  }
  if (trace.sampled) {
    out += "-|sampled()|\n";
  }
  for (const std::string_view name : trace.selection.names()) {
    fmt::format_to(std::back_inserter(out), "-|selected({})|\n", name);
  }
}

std::string write_std(const Trace& trace) {
  std::string out;
  StdWriter writer(trace.symbols);
  writer.write_headers(out);
  if (std::any_of(trace.events.begin(), trace.events.end(), [](const Event& event) {
        return event.atomic() && event.kind() != EventKind::kReadModifyWrite;
      })) {
    StdWriter::write_atomics(out);
  }
  writer.write(trace, out);
  StdWriter::write_loss(trace, out);
  return out;
}

}  // namespace tsomon
