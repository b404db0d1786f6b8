#include "decoders/capture/names.h"

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace tsomon::capture {
namespace {

// Thread names appear in text traces between '|' and '('.
std::string printable(std::string_view name) {
  std::string text(name);
  for (char& c : text) {
    const bool plain = c > ' ' && c != 0x7F && c != '|' && c != '(' && c != ')' && c != '#';
    c = plain ? c : '_';
  }
  return text;
}

}  // namespace

void Names::set_thread_name(uint32_t number, std::string_view name) {
  thread_names_[number] = printable(name);
}

ThreadId Names::thread(uint64_t number) {
  const auto [entry, is_new] = threads_.try_emplace(number, 0);
  if (is_new) {
    std::string text = fmt::format("T{}", number);
    if (const auto name = thread_names_.find(number);
        name != thread_names_.end() && !name->second.empty()) {
      text += "-" + name->second;
    }
    entry->second = symbols_->threads.intern(text);
  }
  return entry->second;
}

uint32_t Names::label(uint64_t id) {
  const auto [entry, is_new] = label_ids_.try_emplace(id, 0);
  if (is_new) {
    const auto text = labels_.find(id);
    undefined_labels_ += text == labels_.end() ? 1 : 0;
    entry->second = symbols_->labels.intern(text == labels_.end() ? fmt::format("label#{}", id)
                                                                  : std::string_view(text->second));
  }
  return entry->second;
}

uint32_t Names::location(uint64_t pc) {
  if (pc == 0) {
    return Event::kNoLocation;
  }
  Recent& recent = recent_[(pc ^ (pc >> 10)) % recent_.size()];
  if (recent.pc != pc) {
    const auto [entry, is_new] = locations_.try_emplace(pc, 0);
    if (is_new) {
      entry->second = symbols_->intern_location(fmt::format("0x{:x}", pc));
    }
    recent = {pc, entry->second};
  }
  return recent.id;
}

}  // namespace tsomon::capture
