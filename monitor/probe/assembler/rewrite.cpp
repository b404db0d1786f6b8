#include "monitor/probe/assembler/rewrite.h"

#include <array>
#include <cctype>
#include <map>
#include <set>
#include <vector>

#include "monitor/probe/assembler/instruction.h"
#include "monitor/probe/assembler/twins.h"

namespace tsomon::assembler {
namespace {

bool begins(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}
bool contains(std::string_view text, std::string_view what) {
  return text.find(what) != std::string_view::npos;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    text.remove_suffix(1);
  }
  return text;
}

std::string_view first_word(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])) == 0) {
    ++at;
  }
  return text.substr(0, at);
}

// The text within the first pair of quotation marks.
std::string_view quoted(std::string_view text) {
  const size_t begin = text.find('"');
  const size_t end = begin == std::string_view::npos ? begin : text.find('"', begin + 1);
  return end == std::string_view::npos ? std::string_view()
                                       : text.substr(begin + 1, end - begin - 1);
}

// Statements of the assembler: separated by line ends and semicolons, without comments.
std::vector<std::string> statements_of(std::string_view text) {
  std::vector<std::string> statements(1);
  bool in_quotes = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_quotes) {
      statements.back() += c;
      if (c == '\\' && at + 1 < text.size()) {
        statements.back() += text[++at];
      } else if (c == '"') {
        in_quotes = false;
      }
    } else if (c == '#') {
      while (at + 1 < text.size() && text[at + 1] != '\n') {
        ++at;
      }
    } else if (c == '/' && at + 1 < text.size() && text[at + 1] == '*') {
      const size_t end = text.find("*/", at + 2);
      at = end == std::string_view::npos ? text.size() : end + 1;
      statements.back() += ' ';
    } else if (c == '\n' || c == ';') {
      statements.emplace_back();
    } else {
      in_quotes = c == '"';
      statements.back() += c;
    }
  }
  return statements;
}

// The label in front of a statement, with its colon; empty: none.
std::string_view label_of(std::string_view statement) {
  size_t at = 0;
  while (at < statement.size() && (std::isalnum(static_cast<unsigned char>(statement[at])) != 0 ||
                                   contains("_.$@", statement.substr(at, 1)))) {
    ++at;
  }
  return at > 0 && at < statement.size() && statement[at] == ':' ? statement.substr(0, at + 1)
                                                                 : std::string_view();
}

bool is_prefix(std::string_view word) {
  constexpr std::array<std::string_view, 12> kPrefixes = {
      "lock",   "rep",     "repe", "repz",     "repne",    "repnz",
      "data16", "notrack", "bnd",  "xacquire", "xrelease", "ds"};
  for (const std::string_view prefix : kPrefixes) {
    if (word == prefix) {
      return true;
    }
  }
  return false;
}

class Rewriter {
 public:
  Rewriter(std::string_view text, Rewrite how)
      : text_(text), how_(how), only_in_twins_(contains(text, ".tsomon:")) {}

  std::string run() {
    size_t at = 0;
    while (at < text_.size()) {
      const size_t found = find_block(at);
      copy_compiled(text_.substr(at, found - at));
      if (found == text_.size()) {
        break;
      }
      const size_t begin = text_.find('\n', found) + 1;
      size_t end = text_.find("#NO_APP", begin);
      end = end == std::string_view::npos ? text_.size() : end;
      result_ += "#APP\n";
      if (only_in_twins_ && !in_twin_) {
        result_ += text_.substr(begin, end - begin);
      } else {
        block(text_.substr(begin, end - begin));
      }
      at = end;
    }
    return std::move(result_);
  }

 private:
  size_t find_block(size_t at) const {
    for (;;) {
      const size_t found = text_.find("#APP\n", at);
      if (found == std::string_view::npos) {
        return text_.size();
      }
      if (found == 0 || text_[found - 1] == '\n' || text_[found - 1] == '\t') {
        return found;
      }
      at = found + 1;
    }
  }

  // Of what the compiler wrote only places in the source and the syntax are of interest.
  void copy_compiled(std::string_view text) {
    result_ += text;
    if (only_in_twins_) {
      note_function(text);
    }
    for (size_t at = 0; (at = text.find("\t.", at)) != std::string_view::npos; ++at) {
      const std::string_view line = text.substr(at + 1, text.find('\n', at) - at - 1);
      if (begins(line, ".loc")) {
        location_ = line;
      } else if (begins(line, ".file")) {
        note_file(line);
      } else if (begins(line, ".intel_syntax")) {
        intel_ = true;
      } else if (begins(line, ".att_syntax")) {
        intel_ = false;
      }
    }
  }

  // The last one that begins or ends there.
  void note_function(std::string_view text) {
    for (size_t end = text.size(); end > 0;) {
      const size_t before = text.rfind('\n', end - 1);
      const size_t begin = before == std::string_view::npos ? 0 : before + 1;
      const std::string_view line = text.substr(begin, end - begin);
      const std::string_view label = label_of(line);
      if (begins(line, "\t.size\t") || (!label.empty() && !begins(label, ".L"))) {
        in_twin_ = !label.empty() && is_twin(label.substr(0, label.size() - 1));
        return;
      }
      end = begin == 0 ? 0 : begin - 1;
    }
  }

  // .file 3 "folder" "name"
  void note_file(std::string_view line) {
    const int number = std::atoi(std::string(trimmed(line.substr(5))).c_str());
    std::string_view name = quoted(line);
    const size_t first_end = line.find('"', line.find('"') + 1);
    if (first_end != std::string_view::npos) {
      const std::string_view second = quoted(line.substr(first_end + 1));
      if (!second.empty() && !contains(line.substr(first_end), " md5 \"")) {
        name = second;
      }
    }
    files_[number] = name;
  }

  // g++ says the place of each asm statement: # 27 "file.c" 1
  void block(std::string_view text) {
    std::string place;
    size_t begin = 0;
    size_t at = 0;
    while (at <= text.size()) {
      const size_t end = std::min(text.find('\n', at), text.size());
      const std::string_view line = trimmed(text.substr(at, end - at));
      const bool is_marker = begins(line, "# ") && line.size() > 2 && line[2] >= '0' &&
                             line[2] <= '9' && contains(line, "\"");
      if (is_marker || end == text.size()) {
        asm_statement(text.substr(begin, (is_marker ? at : end) - begin),
                      place.empty() ? place_by_location() : place);
        begin = std::min(end + 1, text.size());
      }
      if (is_marker) {
        result_.append(line).append("\n");
        place = line[2] == '0'
                    ? place
                    : std::string(quoted(line)) + ":" + std::string(first_word(line.substr(2)));
      }
      at = end + 1;
    }
  }

  std::string place_by_location() const {
    int file = 0;
    int line = 0;
    if (std::sscanf(location_.c_str(), ".loc %d %d", &file, &line) != 2) {
      return "?";
    }
    const auto name = files_.find(file);
    return (name == files_.end() ? "?" : name->second) + ":" + std::to_string(line);
  }

  void asm_statement(std::string_view text, const std::string& place) {
    const std::vector<std::string> statements = statements_of(text);
    bool anything = false;
    const char* whole = nullptr;
    for (const std::string& each : statements) {
      std::string_view statement = trimmed(each);
      for (std::string_view label; !(label = label_of(statement)).empty();) {
        statement = trimmed(statement.substr(label.size()));
      }
      anything = anything || !statement.empty();
      const std::string_view word = first_word(statement);
      if (begins(word, "loop") || word == "jrcxz" || word == "jecxz" ||
          contains(statement, " .+") || contains(statement, " .-") || contains(statement, "\t.+") ||
          contains(statement, "\t.-") || contains(statement, ". +") || contains(statement, ". -")) {
        whole = "its length counts";
      } else if (word == ".rept" || word == ".irp" || word == ".irpc" ||
                 macros_.count(std::string(word)) != 0) {
        whole = "a macro";
      } else if (word == ".intel_syntax") {
        whole = "Intel's syntax";
      } else if (word == ".att_syntax") {
        whole = whole == nullptr ? nullptr : whole;
      }
    }
    if (intel_ && anything) {
      whole = "Intel's syntax";
    }
    if (whole != nullptr) {
      if (is_code_) {
        std::string shown;
        for (const std::string& each : statements) {
          if (!trimmed(each).empty()) {
            shown = trimmed(each);
            break;
          }
        }
        unknown(place, shown);
      }
      result_ += text;
      end_line();
      return;
    }
    pending_.clear();
    downwards_ = false;
    for (const std::string& each : statements) {
      one(trimmed(each), place);
    }
    flush_prefixes();
  }

  void end_line() {
    if (!result_.empty() && result_.back() != '\n') {
      result_ += '\n';
    }
  }

  void put(std::string_view statement) { result_.append("\t").append(statement).append("\n"); }

  void flush_prefixes() {
    if (!pending_.empty()) {
      put(pending_);
      pending_.clear();
    }
  }

  void one(std::string_view statement, const std::string& place) {
    for (std::string_view label; !(label = label_of(statement)).empty();) {
      result_.append(label).append("\n");
      statement = trimmed(statement.substr(label.size()));
    }
    if (statement.empty()) {
      return;
    }
    if (in_macro_) {
      put(statement);
      in_macro_ = !begins(statement, ".endm");
      return;
    }
    if (statement[0] == '.') {
      flush_prefixes();
      directive(statement, place);
      return;
    }
    const std::string_view word = first_word(statement);
    if (word.size() == statement.size() && is_prefix(word)) {
      pending_.append(word).append(" ");
      return;
    }
    std::string prefixes = std::move(pending_);
    pending_.clear();
    while (is_prefix(first_word(statement)) && first_word(statement).size() < statement.size()) {
      prefixes.append(first_word(statement)).append(" ");
      statement = trimmed(statement.substr(first_word(statement).size()));
    }
    const size_t equals = statement.find('=');
    if (!is_code_ ||
        (equals != std::string_view::npos && statement.find_first_of(" \t(") >= equals - 1)) {
      put(prefixes + std::string(statement));
      return;
    }
    instruction(statement, prefixes, place);
  }

  static bool is_code_section(std::string_view line) {
    const std::string_view name = trimmed(line.substr(first_word(line).size()));
    return begins(name, ".text") || begins(name, "\".text") || contains(line, "\"ax") ||
           contains(line, "x\"");
  }

  void directive(std::string_view line, const std::string& place) {
    const std::string_view word = first_word(line);
    if (word == ".macro") {
      const std::string_view name = first_word(trimmed(line.substr(word.size())));
      macros_.insert(std::string(name.substr(0, name.find(','))));
      in_macro_ = true;
    } else if (word == ".pushsection") {
      sections_.push_back(is_code_);
      is_code_ = is_code_section(line);
    } else if (word == ".popsection") {
      if (!sections_.empty()) {
        is_code_ = sections_.back();
        sections_.pop_back();
      }
    } else if (word == ".section") {
      was_code_ = is_code_;
      is_code_ = is_code_section(line);
    } else if (word == ".previous") {
      std::swap(is_code_, was_code_);
    } else if (word == ".text" || word == ".data" || word == ".bss") {
      was_code_ = is_code_;
      is_code_ = word == ".text";
    } else if (is_code_ &&
               (word == ".byte" || word == ".long" || word == ".int" || word == ".quad" ||
                word == ".word" || word == ".short" || word == ".value" || word == ".insn")) {
      std::string bytes;
      for (const char c : line.substr(word.size())) {
        if (std::isspace(static_cast<unsigned char>(c)) == 0) {
          bytes += static_cast<char>(std::tolower(c));
        }
      }
      if (bytes != "0xf3,0x90" && bytes != "0x90" && bytes != "0xcc") {
        unknown(place, line);
      }
    }
    put(line);
  }

  void instruction(std::string_view text, const std::string& prefixes, const std::string& place) {
    const Instruction what = understand(text, prefixes);
    if (text == "std" || text == "cld") {
      downwards_ = text == "std";
    }
    if (what.kind == SiteKind::kNothing) {
      return put(prefixes + std::string(text));
    }
    if (what.kind == SiteKind::kUnknown || how_ == Rewrite::kPlacesOnly) {
      unknown(place, prefixes + std::string(text));
      return put(prefixes + std::string(text));
    }
    SiteWord word;
    word.kind = what.kind;
    word.size = what.size;
    word.change = what.change;
    word.segment = what.segment;
    word.repeated = contains(prefixes, "rep ");
    word.downwards = downwards_;
    word.bit_register =
        what.has_bit_register() ? 1 + static_cast<uint32_t>(register_number(what.bit_register)) : 0;
    switch (what.kind) {
      case SiteKind::kLoad:
        open(what, word);
        on_temporary(text, what);
        break;
      case SiteKind::kStore:
        lower();
        on_temporary(text, what);
        address(what);
        word.stays = true;
        call(word);
        raise();
        return put(prefixes + std::string(text));
      case SiteKind::kChange:
        word.kind = SiteKind::kLoad;
        open(what, word);
        on_temporary(text, what);
        // The area has the whole address.
        word.kind = SiteKind::kStore;
        word.bit_register = 0;
        word.segment = Segment::kNone;
        call(word);
        break;
      case SiteKind::kLocked:
        open(what, word);
        on_temporary(text, what);
        word.kind = SiteKind::kLockedEnd;
        call(word);
        break;
      case SiteKind::kCopy:
      case SiteKind::kFill:
        lower();
        call(word);
        break;
      case SiteKind::kCompareExchange16:
        open(what, word);
        break;
      default:
        if (what.operand.empty()) {
          lower();
          call(word);
        } else {
          open(what, word);
        }
        raise();
        return put(prefixes + std::string(text));
    }
    raise();
  }

  void lower() { put("leaq -" + std::to_string(kArea) + "(%rsp), %rsp"); }
  void raise() { put("leaq " + std::to_string(kArea) + "(%rsp), %rsp"); }

  void open(const Instruction& what, const SiteWord& word) {
    lower();
    address(what);
    call(word);
  }

  void address(const Instruction& what) {
    const std::string shift = what.by_stack_pointer ? std::to_string(kArea) + "+" : "";
    const std::string scratch = std::to_string(kScratch) + "(%rsp)";
    put("movq %rax, " + scratch);
    const bool plain = shift.empty() || what.operand.find('(') != 0;
    put("leaq " + (plain ? shift : std::to_string(kArea)) + what.operand + ", %rax");
    put("movq %rax, (%rsp)");
    put("movq " + scratch + ", %rax");
  }

  void call(const SiteWord& word) {
    put("movq $" + std::to_string(pack(word)) + ", 8(%rsp)");
    if (downwards_) {
      put("cld");
    }
    put("call *tsomon_runtime_asm@GOTPCREL(%rip)");
    if (downwards_) {
      put("std");
    }
  }

  void on_temporary(std::string_view text, const Instruction& what) {
    const std::string temporary = std::to_string(kTemporary) + "(%rsp)";
    if (!what.has_bit_register()) {
      put(std::string(text.substr(0, what.operand_begin)) + temporary +
          std::string(text.substr(what.operand_end)));
      return;
    }
    // With a register for the operand the bit is one of it, whatever its number.
    const std::string scratch = std::to_string(kScratch) + "(%rsp)";
    const bool is_rax = register_number(what.bit_register) == 0;
    const std::string whole = is_rax ? "%rdx" : "%rax";
    const std::string part = what.size == 8   ? whole
                             : what.size == 4 ? (is_rax ? "%edx" : "%eax")
                                              : (is_rax ? "%dx" : "%ax");
    put("movq " + whole + ", " + scratch);
    put("movq " + temporary + ", " + whole);
    put(std::string(text.substr(0, what.operand_begin)) + part);
    put("movq " + whole + ", " + temporary);
    put("movq " + scratch + ", " + whole);
  }

  void unknown(const std::string& place, std::string_view text) {
    std::string shown = place + ": ";
    for (const char c : text.substr(0, 80)) {
      shown += c == '"' || c == '\\' || c == '\n' || c == '\t' ? ' ' : c;
    }
    const std::string label = ".Ltsomon_asm_" + std::to_string(++texts_);
    if (intel_) {
      put(".att_syntax prefix");
    }
    put(".pushsection .rodata.tsomon_asm,\"a\",@progbits");
    result_.append(label).append(":\n");
    put(".string \"" + shown + "\"");
    put(".popsection");
    lower();
    put("movq %rax, " + std::to_string(kScratch) + "(%rsp)");
    put("leaq " + label + "(%rip), %rax");
    put("movq %rax, (%rsp)");
    put("movq " + std::to_string(kScratch) + "(%rsp), %rax");
    SiteWord word;
    word.kind = SiteKind::kUnknown;
    call(word);
    raise();
    if (intel_) {
      put(".intel_syntax noprefix");
    }
  }

  std::string_view text_;
  Rewrite how_;
  bool only_in_twins_;  // the other functions are not watched
  bool in_twin_ = false;
  std::string result_;
  std::string location_;
  std::map<int, std::string> files_;
  std::set<std::string> macros_;
  std::string pending_;  // prefixes that stood alone
  std::vector<bool> sections_;
  bool is_code_ = true;
  bool was_code_ = true;
  bool in_macro_ = false;
  bool downwards_ = false;  // `std` came before in the statement
  bool intel_ = false;
  int texts_ = 0;
};

}  // namespace

std::optional<std::string> rewrite(std::string_view text, Rewrite how) {
  // clang names a type of section that the assembler of binutils warns about.
  constexpr std::string_view kUnknownType = ",@llvm_linker_options\n";
  const size_t at = text.find(kUnknownType);
  const bool has_statements = contains(text, "#APP\n");
  if (!has_statements && at == std::string_view::npos) {
    return std::nullopt;
  }
  std::string result = has_statements ? Rewriter(text, how).run() : std::string(text);
  if (at != std::string_view::npos) {
    result.replace(result.find(kUnknownType), kUnknownType.size(), ",@progbits\n");
  }
  return result;
}

}  // namespace tsomon::assembler
