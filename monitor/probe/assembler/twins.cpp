#include "monitor/probe/assembler/twins.h"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <vector>

namespace tsomon::assembler {
namespace {

constexpr std::string_view kSuffix = ".tsomon";
constexpr std::string_view kWrapped[] = {
#include "wrapped_names.h"  // made of tools/tsomon-wrapped
};

bool begins(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

bool ends(std::string_view text, std::string_view with) {
  return text.size() >= with.size() && text.substr(text.size() - with.size()) == with;
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  return first == std::string_view::npos
             ? std::string_view()
             : text.substr(first, text.find_last_not_of(" \t\r") + 1 - first);
}

// The name of a label that is all there is in the line; empty: it is something else.
std::string_view label_in(std::string_view line) {
  const size_t colon = line.find(':');
  const bool is_label =
      colon != std::string_view::npos && colon > 0 && line.find_first_of(" \t#\"", 0) >= colon;
  return is_label ? line.substr(0, colon) : std::string_view();
}

template <typename Visit>
void for_each_line(std::string_view text, const Visit& visit) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    visit(text.substr(at, end - at));
    at = end + 1;
  }
}

class Twins {
 public:
  explicit Twins(std::string_view text) : text_(text) {
    for (const std::string_view name : kWrapped) {
      wrapped_.insert(name);
    }
  }

  std::optional<std::string> run() {
    find_functions();
    if (std::none_of(functions_.begin(), functions_.end(), is_twin)) {
      return std::nullopt;
    }
    result_.reserve(text_.size() + text_.size() / 8);
    for_each_line(text_, [&](std::string_view line) { copy(line); });
    if (entries_ > 0) {
      tell_module();
    }
    return std::move(result_);
  }

 private:
  void find_functions() {
    std::unordered_set<std::string_view> typed;
    for_each_line(text_, [&](std::string_view line) {
      const std::string_view statement = trimmed(line);
      if (begins(statement, ".type") && ends(statement, "@function")) {
        typed.insert(trimmed(statement.substr(5, statement.find(',') - 5)));
      } else if (const std::string_view label = label_in(line);
                 !label.empty() && !begins(label, ".L")) {
        labels_.insert(label);
        if (typed.count(label) != 0) {
          functions_.insert(label);
        }
      }
    });
  }

  void copy(std::string_view line) {
    const std::string_view statement = trimmed(line);
    if (in_asm_statement_) {
      in_asm_statement_ = !begins(statement, "#NO_APP");
    } else if (const std::string_view label = label_in(line); !label.empty()) {
      if (functions_.count(label) != 0) {
        in_function_ = true;
        in_twin_ = is_twin(label);
        const std::string twin = std::string(label) + std::string(kSuffix);
        waiting_ = in_twin_ || functions_.count(twin) != 0 ? label : std::string_view();
      } else if (begins_body(label)) {
        put_entry();
      }
    } else if (begins(statement, ".section") || begins(statement, ".text")) {
      section_ = statement;
    } else if (begins(statement, ".size")) {
      put_entry();  // without any instruction
      in_function_ = false;
    } else if (!statement.empty() && statement[0] != '.' &&
               (statement[0] != '#' || begins(statement, "#APP")) && statement != "endbr64") {
      put_entry();
      in_asm_statement_ = statement[0] == '#';
      if (in_function_ && put_call(statement)) {
        return;
      }
    }
    result_.append(line).append("\n");
  }

  // Something may jump there, so what stands at the entry comes before it.
  static bool begins_body(std::string_view label) {
    return !begins(label, ".LF") && !begins(label, ".Lfunc_begin");
  }

  void put_entry() {
    if (waiting_.empty()) {
      return;
    }
    if (in_twin_) {
      waiting_ = {};
      result_ += "\t.byte 0x0f, 0x1f, 0x44, 0, 0\n";  // nothing
      return;
    }
    const std::string name(waiting_);
    const std::string label = ".Ltsomon" + std::to_string(entries_++);
    waiting_ = {};
    result_ += label + ":\n\t.byte 0xa9\n\t.long " + name + std::string(kSuffix) + "-.-4\n";
    // The function's group, if it is in one.
    const size_t group = section_.find("@progbits,");
    const std::string_view in_group =
        begins(section_, ".section") && group != std::string_view::npos && ends(section_, ",comdat")
            ? section_.substr(group + std::string_view("@progbits,").size())
            : std::string_view();
    result_ += std::string("\t.pushsection tsomon_twins,\"ao") + (in_group.empty() ? "" : "G") +
               "\",@progbits," + name + (in_group.empty() ? "" : ",") + std::string(in_group) +
               "\n\t.long " + label + "-.\n\t.popsection\n";
  }

  // With another function to call, if it is a call that is to go elsewhere.
  bool put_call(std::string_view statement) {
    const size_t blank = statement.find_first_of(" \t");
    if (blank == std::string_view::npos) {
      return false;
    }
    const std::string_view word = statement.substr(0, blank);
    if (!begins(word, "call") && word[0] != 'j') {
      return false;
    }
    std::string_view target = trimmed(statement.substr(blank));
    const size_t comment = target.find_first_of(" \t#");
    target = target.substr(0, comment);
    const bool indirect = begins(target, "*");
    const size_t begin = indirect ? 1 : 0;
    const size_t end = std::min(target.find_first_of("@(", begin), target.size());
    const std::string_view name = target.substr(begin, end - begin);
    const std::string other = other_name(name);
    if (other.empty() || (indirect && !begins(target.substr(end), "@GOTPCREL"))) {
      return false;
    }
    result_.append("\t").append(word).append("\t").append(indirect ? "*" : "").append(other);
    result_.append(target.substr(end)).append("\n");
    return true;
  }

  std::string other_name(std::string_view name) const {
    constexpr std::string_view kOwn = "tsomon_runtime_mem";
    if (!in_twin_) {
      return begins(name, kOwn) ? std::string(name.substr(kOwn.size() - 3)) : std::string();
    }
    if (wrapped_.count(name) != 0 && labels_.count(name) == 0) {
      return "__wrap_" + std::string(name);
    }
    if (ends(name, kSuffix)) {
      const std::string_view plain = name.substr(0, name.size() - kSuffix.size());
      return labels_.count(plain) != 0 ? std::string(plain) : std::string();
    }
    return {};
  }

  // Once in a module, whatever the number of its objects.
  void tell_module() {
    for (const char* const what : {"twins_here", "twins_gone"}) {
      const std::string name = std::string("tsomon_module_") + what;
      const std::string runtime = std::string("tsomon_runtime_") + what;
      const bool at_start = ends(what, "here");
      result_ += "\t.section .text." + name + ",\"axG\",@progbits," + name + ",comdat\n" +
                 "\t.weak " + name + "\n\t.hidden " + name + "\n\t.type " + name + ", @function\n" +
                 name + ":\n\tleaq __start_tsomon_twins(%rip), %rdi\n" +
                 "\tleaq __stop_tsomon_twins(%rip), %rsi\n\tmovq " + runtime +
                 "@GOTPCREL(%rip), %rax\n\ttestq %rax, %rax\n\tje 1f\n\tjmp *%rax\n1:\tret\n" +
                 "\t.size " + name + ", .-" + name + "\n\t.weak " + runtime + "\n" + "\t.section " +
                 (at_start ? ".init_array.00001" : ".fini_array.00001") + ",\"awG\"," +
                 (at_start ? "@init_array" : "@fini_array") + "," + name +
                 ",comdat\n\t.align 8\n\t.quad " + name + "\n";
    }
    result_ += "\t.hidden __start_tsomon_twins\n\t.hidden __stop_tsomon_twins\n\t.text\n";
  }

  std::string_view text_;
  std::string result_;
  std::unordered_set<std::string_view> wrapped_;
  std::unordered_set<std::string_view> labels_;
  std::unordered_set<std::string_view> functions_;  // of the labels
  std::string_view section_ = ".text";
  std::string_view waiting_;  // a function whose entry is still to come
  bool in_function_ = false;
  bool in_twin_ = false;
  bool in_asm_statement_ = false;
  size_t entries_ = 0;
};

}  // namespace

bool is_twin(std::string_view function) {
  const size_t at = function.find(kSuffix);
  return at != std::string_view::npos && at > 0 &&
         (at + kSuffix.size() == function.size() || function[at + kSuffix.size()] == '.');
}

std::optional<std::string> with_twins(std::string_view text) { return Twins(text).run(); }

}  // namespace tsomon::assembler
