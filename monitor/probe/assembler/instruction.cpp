#include "monitor/probe/assembler/instruction.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

namespace tsomon::assembler {
namespace {

using Words = std::vector<std::string_view>;

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}
bool begins(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) {
    text.remove_prefix(1);
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) {
    text.remove_suffix(1);
  }
  return text;
}

Words operands_of(std::string_view text) {
  Words operands;
  int depth = 0;
  size_t begin = 0;
  for (size_t at = 0; at <= text.size(); ++at) {
    if (at == text.size() || (text[at] == ',' && depth == 0)) {
      const std::string_view operand = trimmed(text.substr(begin, at - begin));
      if (!operand.empty() || !operands.empty()) {
        operands.push_back(operand);
      }
      begin = at + 1;
    } else if (text[at] == '(') {
      ++depth;
    } else if (text[at] == ')') {
      --depth;
    }
  }
  return operands;
}

bool is_register(std::string_view operand) {
  return !operand.empty() && operand[0] == '%' && operand.find(':') == std::string_view::npos;
}
bool is_memory(std::string_view operand) {
  return !operand.empty() && operand[0] != '$' && operand[0] != '*' && !is_register(operand);
}

constexpr std::array<std::array<std::string_view, 5>, 8> kOldRegisters = {{
    {"rax", "eax", "ax", "al", "ah"},
    {"rcx", "ecx", "cx", "cl", "ch"},
    {"rdx", "edx", "dx", "dl", "dh"},
    {"rbx", "ebx", "bx", "bl", "bh"},
    {"rsp", "esp", "sp", "spl", "spl"},
    {"rbp", "ebp", "bp", "bpl", "bpl"},
    {"rsi", "esi", "si", "sil", "sil"},
    {"rdi", "edi", "di", "dil", "dil"},
}};
constexpr std::array<uint32_t, 5> kOldSizes = {8, 4, 2, 1, 1};

struct Register {
  int number = -1;
  uint32_t size = 0;
};

Register general_register(std::string_view name) {
  if (!name.empty() && name[0] == '%') {
    name.remove_prefix(1);
  }
  for (size_t number = 0; number < kOldRegisters.size(); ++number) {
    for (size_t form = 0; form < kOldSizes.size(); ++form) {
      if (kOldRegisters[number][form] == name) {
        return {static_cast<int>(number), kOldSizes[form]};
      }
    }
  }
  if (name.size() < 2 || name[0] != 'r' || name[1] < '0' || name[1] > '9') {
    return {};
  }
  int number = 0;
  size_t at = 1;
  for (; at < name.size() && name[at] >= '0' && name[at] <= '9'; ++at) {
    number = number * 10 + (name[at] - '0');
  }
  const std::string_view ending = name.substr(at);
  const uint32_t size = ending.empty() ? 8 : ending == "d" ? 4 : ending == "w" ? 2 : 1;
  return number < 8 || number > 15 ? Register{} : Register{number, size};
}

uint32_t size_of_register(std::string_view name) {
  if (begins(name, "%xmm")) {
    return 16;
  }
  if (begins(name, "%ymm")) {
    return 32;
  }
  if (begins(name, "%zmm")) {
    return 64;
  }
  return begins(name, "%mm") ? 8 : general_register(name).size;
}

uint32_t size_of_suffix(char suffix) {
  return suffix == 'b' ? 1 : suffix == 'w' ? 2 : suffix == 'l' ? 4 : suffix == 'q' ? 8 : 0;
}

// A mnemonic with or without the letter of its size.
struct Named {
  std::string_view base;
  uint32_t size = 0;  // 0: not said
};

std::optional<Named> named(std::string_view mnemonic,
                           std::initializer_list<std::string_view> bases) {
  if (is_one_of(mnemonic, bases)) {
    return Named{mnemonic, 0};
  }
  const std::string_view base = mnemonic.substr(0, mnemonic.size() - 1);
  const uint32_t size = size_of_suffix(mnemonic.back());
  return size != 0 && is_one_of(base, bases) ? std::optional(Named{base, size}) : std::nullopt;
}

struct Parsed {
  std::string_view mnemonic;
  Words operands;
  int memory = -1;  // which operand
  bool locked = false;
  bool repeated = false;

  bool last_is_memory() const {
    return memory >= 0 && memory + 1 == static_cast<int>(operands.size());
  }
  // Of the operand that is a register, a count in cl aside.
  uint32_t register_size() const {
    for (size_t i = operands.size(); i-- > 0;) {
      if (static_cast<int>(i) != memory && is_register(operands[i])) {
        return size_of_register(operands[i]);
      }
    }
    return 0;
  }
};

struct Meaning {
  SiteKind kind = SiteKind::kUnknown;
  uint32_t size = 0;
  Change change = Change::kNone;
};

Change change_of(std::string_view base) {
  if (is_one_of(base, {"add", "sub", "adc", "sbb", "inc", "dec", "xadd"})) {
    return Change::kAdd;
  }
  if (is_one_of(base, {"and", "btr"})) {
    return Change::kAnd;
  }
  if (is_one_of(base, {"or", "bts"})) {
    return Change::kOr;
  }
  if (is_one_of(base, {"xor", "not", "btc"})) {
    return Change::kXor;
  }
  if (base == "xchg") {
    return Change::kExchange;
  }
  return base == "cmpxchg" ? Change::kCompareExchange : Change::kNone;
}

// Arithmetic, logic, exchanges: with the operand in memory last they change it.
std::optional<Meaning> changes(const Parsed& parsed) {
  const std::string_view mnemonic = parsed.mnemonic;
  if (is_one_of(mnemonic, {"cmpxchg8b"})) {
    return Meaning{parsed.locked ? SiteKind::kLocked : SiteKind::kUnknown, 8,
                   Change::kCompareExchange8};
  }
  if (mnemonic == "cmpxchg16b") {
    return Meaning{parsed.locked ? SiteKind::kCompareExchange16 : SiteKind::kUnknown, 16,
                   Change::kNone};
  }
  const auto name =
      named(mnemonic, {"add", "sub",  "and",  "or",  "xor", "adc", "sbb",  "inc",  "dec",
                       "neg", "not",  "shl",  "sal", "shr", "sar", "rol",  "ror",  "rcl",
                       "rcr", "shld", "shrd", "bts", "btr", "btc", "xadd", "xchg", "cmpxchg"});
  if (!name) {
    return std::nullopt;
  }
  const bool is_shift =
      is_one_of(name->base, {"shl", "sal", "shr", "sar", "rol", "ror", "rcl", "rcr"});
  const uint32_t size = name->size != 0 ? name->size : is_shift ? 0 : parsed.register_size();
  const bool is_exchange = name->base == "xchg";
  if (!parsed.last_is_memory() && !is_exchange) {
    return Meaning{SiteKind::kLoad, size, Change::kNone};
  }
  if (!parsed.locked && !is_exchange) {
    return Meaning{SiteKind::kChange, size, Change::kNone};
  }
  const Change change = change_of(name->base);
  return Meaning{change == Change::kNone ? SiteKind::kUnknown : SiteKind::kLocked, size, change};
}

std::optional<Meaning> moves(const Parsed& parsed) {
  const std::string_view mnemonic = parsed.mnemonic;
  const SiteKind by_place = parsed.last_is_memory() ? SiteKind::kStore : SiteKind::kLoad;
  if (begins(mnemonic, "cmov")) {
    return Meaning{SiteKind::kLoad, parsed.register_size(), Change::kNone};
  }
  if (begins(mnemonic, "set") && parsed.operands.size() == 1) {
    return Meaning{SiteKind::kStore, 1, Change::kNone};
  }
  if ((begins(mnemonic, "movz") || begins(mnemonic, "movs")) && parsed.operands.size() == 2 &&
      is_one_of(mnemonic, {"movzb", "movzbw", "movzbl", "movzbq", "movsbw", "movsbl", "movsbq",
                           "movzw", "movzwl", "movzwq", "movswl", "movswq", "movslq"})) {
    return Meaning{SiteKind::kLoad, size_of_suffix(mnemonic[4]), Change::kNone};
  }
  if (const auto name = named(mnemonic, {"mov", "movabs", "movnti", "movbe"})) {
    uint32_t size = name->size != 0 ? name->size : parsed.register_size();
    return Meaning{by_place, size > 8 ? 0 : size, Change::kNone};
  }
  if (named(mnemonic, {"cmp", "test", "bt"}) ||
      named(mnemonic, {"imul", "mul", "div", "idiv", "popcnt", "lzcnt", "tzcnt", "bsf", "bsr",
                       "adcx", "adox", "mulx", "andn", "bextr"})) {
    const uint32_t said = size_of_suffix(mnemonic.back());
    const bool suffixed = said != 0 && !is_one_of(mnemonic, {"imul", "mul"});
    const uint32_t by_register = parsed.register_size();
    return Meaning{SiteKind::kLoad,
                   by_register != 0 && parsed.operands.size() > 1 ? by_register
                   : suffixed || said != 0                        ? said
                                                                  : 0,
                   Change::kNone};
  }
  const std::string_view vector = begins(mnemonic, "v") ? mnemonic.substr(1) : mnemonic;
  if (is_one_of(vector, {"movss", "movd"})) {
    return Meaning{by_place, 4, Change::kNone};
  }
  if (is_one_of(vector, {"movsd", "movq"})) {
    return Meaning{by_place, 8, Change::kNone};
  }
  return std::nullopt;
}

// What is wider than a register, or no register's: without values.
std::optional<Meaning> vectors(const Parsed& parsed) {
  const std::string_view mnemonic = parsed.mnemonic;
  const std::string_view vector = begins(mnemonic, "v") ? mnemonic.substr(1) : mnemonic;
  const SiteKind by_place = parsed.last_is_memory() ? SiteKind::kWrite : SiteKind::kRead;
  if (is_one_of(vector, {"movdqa", "movdqu", "movaps", "movups", "movapd", "movupd", "movntdq",
                         "movntps", "movntpd", "movntdqa", "lddqu", "movdqa32", "movdqa64",
                         "movdqu8", "movdqu16", "movdqu32", "movdqu64", "movntq"}) &&
      parsed.operands.back().find('{') == std::string_view::npos) {
    return Meaning{by_place, parsed.register_size(), Change::kNone};
  }
  if (is_one_of(vector, {"movlps", "movhps", "movlpd", "movhpd"})) {
    return Meaning{by_place, 8, Change::kNone};
  }
  if (is_one_of(mnemonic, {"stmxcsr"})) {
    return Meaning{SiteKind::kWrite, 4, Change::kNone};
  }
  if (is_one_of(mnemonic, {"ldmxcsr"})) {
    return Meaning{SiteKind::kRead, 4, Change::kNone};
  }
  if (is_one_of(mnemonic, {"fnstcw", "fstcw", "fnstsw", "fstsw"})) {
    return Meaning{SiteKind::kWrite, 2, Change::kNone};
  }
  if (is_one_of(mnemonic, {"fldcw"})) {
    return Meaning{SiteKind::kRead, 2, Change::kNone};
  }
  // Packed integers: the whole width.
  if (begins(vector, "p") && !parsed.last_is_memory() && parsed.register_size() >= 16 &&
      !begins(vector, "pmov") && !begins(vector, "pins") && !begins(vector, "pbroadcast") &&
      !begins(vector, "pgather") && !begins(vector, "pmaskmov") &&
      parsed.operands.back().find('{') == std::string_view::npos &&
      !is_one_of(vector,
                 {"psllw", "pslld", "psllq", "psrlw", "psrld", "psrlq", "psraw", "psrad"})) {
    return Meaning{SiteKind::kRead, parsed.register_size(), Change::kNone};
  }
  return std::nullopt;
}

bool is_hint(std::string_view mnemonic) {
  return begins(mnemonic, "nop") || begins(mnemonic, "lea") || begins(mnemonic, "prefetch") ||
         begins(mnemonic, "clflush") || mnemonic == "clwb" || mnemonic == "cldemote" ||
         begins(mnemonic, "ud");
}

bool is_jump(std::string_view mnemonic) {
  return mnemonic[0] == 'j' || begins(mnemonic, "call") || begins(mnemonic, "loop");
}

// Those that access memory, or end what the hooks can follow, without an operand that says so.
bool accesses_by_itself(std::string_view mnemonic) {
  return is_one_of(mnemonic, {"syscall", "sysenter", "xbegin", "xend", "xabort", "xlat", "xlatb",
                              "maskmovdqu", "maskmovq", "enter", "vmaskmovdqu", "iretq", "int",
                              "sysexit", "sysret"}) ||
         begins(mnemonic, "lods") || begins(mnemonic, "scas") || begins(mnemonic, "cmpsb") ||
         begins(mnemonic, "cmpsw") || begins(mnemonic, "cmpsl") || begins(mnemonic, "cmpsq") ||
         begins(mnemonic, "insb") || begins(mnemonic, "outs") || begins(mnemonic, "sysret");
}

// movs, stos: the size of an element; 0: neither.
std::optional<Meaning> strings(const Parsed& parsed) {
  std::string_view mnemonic = parsed.mnemonic;
  if (parsed.operands.empty() && is_one_of(mnemonic, {"movsd", "stosd"})) {
    mnemonic = mnemonic == "movsd" ? "movsl" : "stosl";
  }
  const auto name = named(mnemonic, {"movs", "stos"});
  if (!name || name->size == 0) {
    return std::nullopt;
  }
  const bool is_copy = name->base == "movs";
  for (const std::string_view operand : parsed.operands) {
    // %al,%es:(%rdi) and %ds:(%rsi),%es:(%rdi) say the same
    if (is_memory(operand) && operand.find("(%rdi)") == std::string_view::npos &&
        operand.find("(%rsi)") == std::string_view::npos) {
      return Meaning{};
    }
  }
  return Meaning{is_copy ? SiteKind::kCopy : SiteKind::kFill, name->size, Change::kNone};
}

Meaning meaning_of(const Parsed& parsed) {
  if (parsed.memory < 0) {
    if (const auto string = strings(parsed)) {
      return *string;
    }
    const bool unknown = accesses_by_itself(parsed.mnemonic) &&
                         !(parsed.mnemonic == "int" && parsed.operands == Words{"$3"});
    return {is_one_of(parsed.mnemonic, {"mfence", "cpuid", "serialize"}) ? SiteKind::kFence
            : unknown                                                    ? SiteKind::kUnknown
                                                                         : SiteKind::kNothing,
            0, Change::kNone};
  }
  if (is_hint(parsed.mnemonic)) {
    return {SiteKind::kNothing, 0, Change::kNone};
  }
  if (const auto change = changes(parsed)) {
    return *change;
  }
  if (parsed.locked) {
    return {};
  }
  if (const auto move = moves(parsed)) {
    return *move;
  }
  if (parsed.operands.size() == 2) {
    if (const auto string = strings(parsed)) {
      return *string;
    }
  }
  if (is_one_of(parsed.mnemonic, {"push", "pushq"})) {
    return {SiteKind::kRead, 8, Change::kNone};
  }
  return vectors(parsed).value_or(Meaning{});
}

bool is_stack_pointer(std::string_view operand) {
  return is_register(operand) && general_register(operand).number == 4;
}

void take_operand(std::string_view text, std::string_view operand, Instruction* to) {
  to->operand_begin = static_cast<size_t>(operand.data() - text.data());
  to->operand_end = to->operand_begin + operand.size();
  if (operand[0] == '%') {
    const size_t colon = operand.find(':');
    const std::string_view segment = operand.substr(0, colon);
    to->segment = segment == "%fs"   ? Segment::kFs
                  : segment == "%gs" ? Segment::kGs
                                     : Segment::kNone;
    operand.remove_prefix(colon + 1);
  }
  to->operand = trimmed(operand);
  const size_t open = to->operand.rfind('(');
  if (open != std::string::npos) {
    const std::string_view base = trimmed(std::string_view(to->operand).substr(open + 1));
    to->by_stack_pointer = begins(base, "%rsp") || begins(base, "%esp");
  }
}

// An access that is understood but for its operands.
void take_access(std::string_view text, const Parsed& parsed, Instruction* result) {
  take_operand(text, parsed.operands[static_cast<size_t>(parsed.memory)], result);
  if (result->segment == Segment::kGs) {
    result->kind = SiteKind::kUnknown;
    return;
  }
  for (const std::string_view operand : parsed.operands) {
    // The stack pointer is another one on the way: the instruction stays as it is.
    if (is_stack_pointer(operand)) {
      const bool is_move = named(parsed.mnemonic, {"mov"}).has_value();
      result->kind = !is_move                           ? SiteKind::kUnknown
                     : result->kind == SiteKind::kStore ? SiteKind::kWrite
                                                        : SiteKind::kRead;
      return;
    }
  }
  const bool is_bit = begins(parsed.mnemonic, "bt") && is_register(parsed.operands[0]);
  if (is_bit) {
    result->bit_register = parsed.operands[0];
  }
  if (result->kind == SiteKind::kLocked && result->by_stack_pointer && !is_bit) {
    result->kind = SiteKind::kFence;  // of the own stack: that is what it is for
  }
}

}  // namespace

int register_number(std::string_view name) { return general_register(name).number; }

Instruction understand(std::string_view text, std::string_view prefixes) {
  Parsed parsed;
  size_t at = 0;
  while (at < text.size() && text[at] != ' ' && text[at] != '\t') {
    ++at;
  }
  parsed.mnemonic = text.substr(0, at);
  parsed.operands = operands_of(text.substr(at));
  parsed.locked = prefixes.find("lock ") != std::string_view::npos;
  parsed.repeated = begins(prefixes, "rep ") || prefixes.find(" rep ") != std::string_view::npos;
  Instruction result;
  if (parsed.mnemonic.empty()) {
    return result;
  }
  if (is_jump(parsed.mnemonic)) {
    if (!parsed.operands.empty() && begins(parsed.operands[0], "*") &&
        !begins(parsed.operands[0], "*%")) {
      take_operand(text, parsed.operands[0].substr(1), &result);
      result.kind = SiteKind::kRead;
      result.size = 8;
    }
    return result;
  }
  for (size_t i = 0; i < parsed.operands.size(); ++i) {
    if (is_memory(parsed.operands[i])) {
      parsed.memory = static_cast<int>(i);
    }
  }
  const Meaning meaning = meaning_of(parsed);
  result.kind = meaning.kind;
  result.size = meaning.size;
  result.change = meaning.change;
  if (result.kind == SiteKind::kNothing || result.kind == SiteKind::kUnknown ||
      result.kind == SiteKind::kFence) {
    return result;
  }
  if (result.size == 0) {
    result.kind = SiteKind::kUnknown;
    return result;
  }
  if (result.kind == SiteKind::kCopy || result.kind == SiteKind::kFill) {
    if (!prefixes.empty() && !parsed.repeated) {
      result.kind = SiteKind::kUnknown;
    }
    return result;
  }
  take_access(text, parsed, &result);
  return result;
}

}  // namespace tsomon::assembler
