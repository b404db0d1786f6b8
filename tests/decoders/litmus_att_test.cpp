// Litmus tests with header X86_64 in the syntax of AT&T, against the same tests in the syntax of
// Intel, herd's expectations for those of its catalogue, and what is said of malformed ones.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "decoders/litmus/judge.h"
#include "decoders/litmus/parser.h"

using namespace tsomon;
using namespace tsomon::litmus;

namespace {

const std::string kData = TSOMON_TEST_DATA "/litmus/";

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Judgement judge(const std::string& text) {
  const auto test = parse_litmus(text, "t.litmus");
  INFO(text);
  REQUIRE_MESSAGE(test, test.error().to_string());
  return judge_litmus(*test);
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == std::string::npos
             ? ""
             : text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
}

// How a location is written.
enum class Form { kParentheses, kBrackets, kRipRelative, kRegister, kForms };

// Turns a test of header X86 into one of header X86_64: what a person would do by hand.
class Converter {
 public:
  explicit Converter(Form form) : form_(form) {}

  std::string convert(std::string text) {
    text = std::regex_replace(text, std::regex("\\(\\*[^*]*\\*\\)"), "");
    const size_t begin = text.find('{');
    const size_t end = text.find('}', begin);
    std::string init = registers_of(text.substr(begin + 1, end - begin - 1));
    std::istringstream rest(text.substr(end + 1));
    std::string program;
    std::string row;
    for (bool names = true; std::getline(rest, row, ';'); names = false) {
      row = trimmed(row);
      if (!names && std::regex_search(row, std::regex("^(~|\\(|exists|forall|final|locations)"))) {
        break;
      }
      program += (names ? row : convert_row(row)) + " ;\n";
      row.clear();
    }
    std::string tail;
    std::getline(rest, tail, '\0');
    tail = row + (tail.empty() ? "" : ";" + tail);
    for (const std::string& used : addresses_) {
      init += (trimmed(init).empty() || trimmed(init).back() == ';' ? "" : ";") + used;
    }
    return "X86_64 t\n\"" + std::to_string(static_cast<int>(form_)) + "\"\n{ " + init + " }\n" +
           program + registers_of(tail);
  }

 private:
  // 0:EAX becomes 0:rax, in initial states and conditions.
  static std::string registers_of(const std::string& text) {
    std::string out;
    const std::regex name("(P?\\d+: *)[Ee]([A-Za-z]{2})\\b");
    auto from = text.begin();
    for (std::sregex_iterator it(text.begin(), text.end(), name), last; it != last; ++it) {
      out.append(from, (*it)[0].first);
      out += (*it)[1].str() + "r" + lower((*it)[2].str());
      from = (*it)[0].second;
    }
    return out.append(from, text.end());
  }

  std::string convert_row(const std::string& row) {
    std::istringstream cells(row + " ");
    std::string cell;
    std::string out;
    for (int thread = 0; std::getline(cells, cell, '|'); ++thread) {
      out += (thread == 0 ? " " : " | ") + convert_cell(trimmed(cell), thread);
    }
    return out;
  }

  std::string convert_cell(std::string cell, int thread) {
    std::string out;
    std::smatch match;
    while (std::regex_search(cell, match, std::regex("^(\\w+):\\s*"))) {
      out += match[1].str() + ": ";
      cell = match.suffix();
    }
    static const std::regex instruction("^((?:lock )?)(\\w+)\\s*(.*)$");
    if (!std::regex_match(cell, match, instruction)) {
      return out;
    }
    const std::string mnemonic = lower(match[2]);
    const std::string operands = match[3];
    if (operands.empty() || mnemonic[0] == 'j') {
      return out + cell;
    }
    const size_t comma = operands.find(',');
    const std::string first = operand(trimmed(operands.substr(0, comma)), thread);
    std::string both = first;
    if (comma != std::string::npos) {
      both = operand(trimmed(operands.substr(comma + 1)), thread) + "," + first;
    }
    // With a register the suffix may be missing.
    const bool suffix = form_ != Form::kBrackets || both.find('%') == std::string::npos;
    return out + match[1].str() + mnemonic + (suffix ? "l " : " ") + both;
  }

  std::string operand(const std::string& text, int thread) {
    if (text[0] == '[') {
      const std::string name = trimmed(text.substr(1, text.size() - 2));
      switch (form_) {
        case Form::kParentheses:
          return "(" + name + ")";
        case Form::kRipRelative:
          return name + "(%rip)";
        case Form::kRegister:
          return address_register(name, thread);
        default:
          return "[" + name + "]";
      }
    }
    if (std::isalpha(static_cast<unsigned char>(text[0])) != 0) {
      return fmt::format("%{}", lower(text));
    }
    return text[0] == '$' ? text : "$" + text;
  }

  // One of r8 to r15 for each location; every other time with a displacement.
  std::string address_register(const std::string& name, int thread) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    const size_t index = static_cast<size_t>(found - names_.begin());
    if (found == names_.end()) {
      names_.push_back(name);
    }
    REQUIRE(index < 8);
    const std::string number = std::to_string(8 + index);
    std::string start = std::to_string(thread);
    start += ":r" + number + "=" + name + ";";
    if (std::find(addresses_.begin(), addresses_.end(), start) == addresses_.end()) {
      addresses_.push_back(start);
    }
    return (index % 2 == 0 ? "(%r" : "0(%r") + number + ")";
  }

  Form form_;
  std::vector<std::string> names_;
  std::vector<std::string> addresses_;
};

void check_same(const std::string& intel, Form form) {
  const std::string att = Converter(form).convert(intel);
  INFO(intel);
  INFO(att);
  const Judgement expected = judge(intel);
  const Judgement found = judge(att);
  CHECK(found.complete() == expected.complete());
  CHECK(found.robust == expected.robust);
  CHECK(found.sc.states == expected.sc.states);
  CHECK(found.tso.states == expected.tso.states);
  CHECK(found.sc.executions == expected.sc.executions);
  CHECK(found.tso.executions == expected.tso.executions);
  CHECK(found.sc.verdict == expected.sc.verdict);
  CHECK(found.tso.verdict == expected.tso.verdict);
}

// Two threads of instructions of all kinds over two locations.
std::string random_intel(std::mt19937& random) {
  const auto pick = [&](const std::vector<std::string>& from) {
    return from[random() % from.size()];
  };
  const std::vector<std::string> registers = {"EAX", "EBX", "ECX"};
  const auto instruction = [&]() -> std::string {
    const std::string memory = random() % 2 == 0 ? "[x]" : "[y]";
    const std::string number = fmt::format("${}", random() % 3);
    const std::string lock = random() % 2 == 0 ? "lock " : "";
    const std::string binary = pick({"add ", "sub ", "and ", "or ", "xor "});
    switch (random() % 9) {
      case 0:
        return "mov " + memory + "," + number;
      case 1:
        return "mov " + pick(registers) + "," + memory;
      case 2:
        return "mov " + memory + "," + pick(registers);
      case 3:
        return binary + pick(registers) + "," + pick({memory, number, pick(registers)});
      case 4:
        return lock + binary + memory + "," + pick({number, pick(registers)});
      case 5:
        return lock + pick({"inc ", "dec ", "neg ", "not "}) + memory;
      case 6:
        return lock + pick({"xadd ", "cmpxchg ", "xchg "}) + memory + "," + pick(registers);
      case 7:
        return pick({"cmp ", "test "}) + pick(registers) + "," + pick({memory, pick(registers)});
      default:
        return pick({"mfence", "sfence", "lfence", "nop"});
    }
  };
  std::string text = "X86 t\n{ x=1; 0:EBX=2; 1:ECX=1; }\n P0 | P1 ;\n";
  for (int row = 0; row < 3; ++row) {
    text += fmt::format(" {} | {} ;\n", instruction(), instruction());
  }
  text += random() % 2 == 0 ? " jne L | ;\n mov ECX,$7 | ;\n L: | ;\n" : " | ;\n";
  return text + "locations [x; y; 0:EAX; 0:ECX;]\nexists (1:EAX=1 /\\ 1:EBX=0 /\\ y=1)\n";
}

std::string single(const std::string& cells, const std::string& condition,
                   const std::string& init = "") {
  return "X86_64 t\n{ " + init + " }\n P0 ;\n" + cells + "\n" + condition + "\n";
}

bool always(const std::string& text) {
  const Judgement judgement = judge(text);
  return judgement.sc.verdict == Verdict::kAlways && judgement.tso.verdict == Verdict::kAlways;
}

}  // namespace

TEST_CASE("converted to AT&T syntax, 160 litmus tests have the same states and verdicts") {
  std::istringstream rows(read(kData + "verdicts.csv"));
  std::string row;
  std::getline(rows, row);
  int tests = 0;
  while (std::getline(rows, row)) {
    const std::string file = row.substr(0, row.find(','));
    INFO(file);
    check_same(read(kData + file), static_cast<Form>(tests % static_cast<int>(Form::kForms)));
    ++tests;
  }
  CHECK(tests == 160);
}

TEST_CASE("converted to AT&T syntax, random programs have the same states and verdicts") {
  std::mt19937 random(20);
  for (int round = 0; round < 200; ++round) {
    check_same(random_intel(random), static_cast<Form>(round % static_cast<int>(Form::kForms)));
  }
}

TEST_CASE("tests of herd's catalogue for X86_64, as diy7 writes them") {
  struct Row {
    const char* program;
    const char* condition;
    bool allowed;
  };
  const std::string header =
      "\"PodWR Fre PodWR Fre\"\nCycle=Fre PodWR Fre PodWR\nRelax=\nSafe=Fre PodWR\n"
      "Generator=diy7 (version 7.57+1)\nPrefetch=0:x=F,0:y=T,1:y=F,1:x=T\nCom=Fr Fr\n"
      "Orig=PodWR Fre PodWR Fre\n{\n}\n";
  for (const Row& row : {Row{" P0            | P1            ;\n"
                             " movl $1,(x)   | movl $1,(y)   ;\n"
                             " movl (y),%eax | movl (x),%eax ;\n",
                             "exists (0:rax=0 /\\ 1:rax=0)", true},
                         Row{" P0            | P1            ;\n"
                             " movl $1,(x)   | movl $1,(y)   ;\n"
                             " mfence        | mfence        ;\n"
                             " movl (y),%eax | movl (x),%eax ;\n",
                             "exists (0:rax=0 /\\ 1:rax=0)", false},
                         Row{" P0          | P1            ;\n"
                             " movl $1,(x) | movl $2,(y)   ;\n"
                             " movl $1,(y) | movl $1,(z)   ;\n"
                             "             | movl (z),%eax ;\n"
                             "             | movl (x),%ebx ;\n",
                             "exists ([y]=2 /\\ 1:rax=1 /\\ 1:rbx=0)", true},
                         Row{" P0          | P1            | P2            ;\n"
                             " movl $1,(x) | movl (x),%eax | movl $1,(y)   ;\n"
                             "             | movl (y),%ebx | movl (y),%eax ;\n"
                             "             |               | movl (x),%ebx ;\n",
                             "exists (1:rax=1 /\\ 1:rbx=0 /\\ 2:rax=1 /\\ 2:rbx=0)", true},
                         Row{"  P0         |  P1            ;\n"
                             " movl $1,(y) | movl $2,%eax   ;\n"
                             "             | xchgl (y),%eax ;\n",
                             "~exists 1:rax=1 /\\ [y]=1", false}}) {
    INFO(row.program);
    const std::string text = "X86_64 t\n" + header + row.program + row.condition + "\n";
    const Judgement judgement = judge(text);
    CHECK(judgement.sc.verdict == Verdict::kNever);
    CHECK(judgement.tso.verdict == (row.allowed ? Verdict::kSometimes : Verdict::kNever));
  }
}

TEST_CASE("instructions and operands in the syntax of AT&T") {
  CHECK(always(single("MOVQ %RBX,(x) ;", "locations [x;] forall [x] = 0x202020202020202",
                      "uint64_t x; 0:RBX=0x202020202020202;")));
  CHECK(always(single("movq $1,(x); movq x(%rip),%rax;", "forall 0:rax=1 /\\ x=1", "uint64_t x")));
  CHECK(always(single("subl $1,%eax; subl %ebx,%eax;", "forall 0:rax=3", "0:rax=6; 0:rbx=2")));
  CHECK(always(single("cmpl $1,%eax; jl L; movl $1,%ecx; L: ;", "forall 0:rcx=0", "0:rax=0")));
  CHECK(always(single("cmpl $1,%eax; jgt L; movl $1,%ecx; L: ;", "forall 0:rcx=1", "0:rax=0")));
  CHECK(always(single("movb $7,%al; movw $9,%bx; movw %bx,(y); incb (z);",
                      "forall 0:rax=0x107 /\\ y=9 /\\ z=1 /\\ 0:al=7", "0:rax=0x100; 0:rbx=0")));
  CHECK(always(single("movl $-1,%eax; movl %eax,x;", "forall 0:rax=0xffffffff /\\ x=-1")));
  CHECK(always(single("lock xaddl %ebx,(x);", "forall x=7 /\\ 0:rbx=4", "x=4; 0:rbx=3")));
  CHECK(always(single("lock ; incl (x);", "forall x=1")));
  // AT&T's own order and herd's.
  for (const char* cmpxchg : {"lock cmpxchgl %ebx,(x);", "lock cmpxchgl (x),%ebx;",
                              "lock cmpxchg %ebx,[x];", "cmpxchgl %ebx,(x);"}) {
    CHECK(always(single(cmpxchg, "forall x=9 /\\ 0:rax=4", "x=4; 0:rax=4; 0:rbx=9")));
    CHECK(always(single(cmpxchg, "forall x=4 /\\ 0:rax=4", "x=4; 0:rax=5; 0:rbx=9")));
  }
  CHECK(always(single("nop; endbr64; nopw 0(%rax,%eax,0); NOPL %cs:0(%rax,%eax,0); pause;",
                      "forall 0:rax = 0")));
  CHECK(always(single("ret; movl $1,(x);", "forall x=0")));
  CHECK(always(single("cmp $1,%eax; je L; R: movl $2,(x); ret; L: movl $1,(y); jmp R;",
                      "forall x=2 /\\ y=1", "[x]=0; 0:rax=1;")));
}

TEST_CASE("locations are found by what is known of registers") {
  const std::string ends = "forall x=7 /\\ y=0";
  CHECK(always(single("movl $7,(%rdi);", ends, "0:rdi=x; y=0")));
  CHECK(always(single("movl $7,(%rdi);", ends, "int *0:rdi=x; int y=0")));
  CHECK(always(single("movl $7,[rdi];", ends, "0:rdi=x; y=0")));
  CHECK(always(single("movq $x,%rdi; movq %rdi,%rsi; movl $7,0(%rsi);", ends)));
  CHECK(always(single("movl (y),%eax; xorl %eax,%eax; movl $7,(%rdi,%rax);", ends, "0:rdi=x")));
  CHECK(always(single("movl $7,-8(%rdi,%rsi,4);", ends, "0:rdi=x; 0:rsi=2; y=0")));
  CHECK(always(single("incl (%rdi); lock addl $6,(%rdi);", ends, "0:rdi=x; y=0")));
  // The address says which location's size it is.
  CHECK(always(single("inc (%rdi); lock addq $6,(x);", ends, "0:rdi=x; int64_t x; y=0")));
  // A register that is nowhere written is known in loops, too.
  CHECK(always(single("L: incl (%rdi); cmpl $7,(%rdi); jne L;", ends, "0:rdi=x; y=0; x=5")));
}

TEST_CASE("a filter leaves out final states") {
  const std::string program =
      "{ }\n P0 | P1 ;\n movl $1,(x) | movl $1,(y) ;\n movl (y),%eax | movl (x),%eax ;\n";
  const Judgement all = judge("X86_64 t\n" + program + "exists (0:rax=0 /\\ 1:rax=0)");
  CHECK(all.tso.states.size() == 4);
  const Judgement some = judge("X86_64 t\n" + program +
                               "locations [x;]\nfilter (0:rax=0)\nexists (0:rax=0 /\\ 1:rax=0)");
  CHECK(some.sc.states.size() == 1);
  CHECK(some.tso.states.size() == 2);
  CHECK(some.sc.verdict == Verdict::kNever);
  CHECK(some.tso.verdict == Verdict::kSometimes);
  CHECK(some.tso.executions == all.tso.executions);
  CHECK(some.robust == all.robust);
  const Judgement none = judge("X86_64 t\n" + program + "filter x=3 forall true");
  CHECK(none.tso.states.empty());
  CHECK(none.tso.verdict == Verdict::kNever);
}

TEST_CASE("what is no test in the syntax of AT&T is refused with line, expected and found") {
  const std::string ok = "X86_64 t\n{ 0:rdi=x; }\n P0 | P1 ;\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"X86_65 t\n{}",
       "line 1: expected 'X86' or 'X86_64', the architecture of the test, found 'X86_65'"},
      {"X86_64 \n{}",
       "line 1: expected the name of the test after 'X86_64', found the end of the line"},
      {ok + "movl $1,(x,y)|;", "line 4: expected ')', found ','"},
      {ok + "movl $1,x(%rdi)|;", "line 4: expected 'rip', found 'rdi'"},
      {ok + "movl $1,%xmm0|;", "line 4: expected a register, found 'xmm0'"},
      {ok + "movl %eax,$1|;",
       "line 4: expected a register or location as destination, found a number"},
      {ok + "movl $1,%rax|;", "line 4: expected operands of one size, found 4 and 8 bytes"},
      {ok + "movl (x),(y)|;", "line 4: expected one location in an instruction at most, found two"},
      {ok + "movl $1 %eax|;", "line 4: expected ',', found '%'"},
      {ok + "movl $1,;",
       "line 4: expected a register as '%eax', a location as '(x)' or a number "
       "as '$1', found ';'"},
      {ok + "movl $1,()|;", "line 4: expected a location or a register as '%rdi', found ')'"},
      {ok + "movl $1,(%edi)|;",
       "line 4: expected a register of 64 bits in an address, found 'edi'"},
      {ok + "movl $1,4(x)|;", "line 4: expected a register after an offset, found 'x'"},
      {ok + "|;\n|movl $1,(%rdi);",
       "line 5: expected the address of a location in the register, as by '0:rdi=x' in the "
       "initial state, found another value"},
      {ok + "movl $1,4(%rdi)|;",
       "line 4: expected the address of a location in the register, as by '0:rdi=x' in the "
       "initial state, found another value"},
      {ok + "movq (y),%rdi|;\nmovl $1,(%rdi)|;",
       "line 5: expected an address that is known before the test runs (addresses that depend on "
       "loads or branches are not read)"},
      {ok + "je L|;\nmovq $y,%rdi|;\nL: movl $1,(%rdi)|;",
       "line 6: expected an address that is known before the test runs (addresses that depend on "
       "loads or branches are not read)"},
      {ok + "movb $1,(x)|;\n|;\nmovl $1,(%rdi)|;",
       "line 6: expected an access of 1 bytes to 'x', as before, found one of 4 (one location has "
       "one size)"},
      {ok + "shll $2,%eax|;",
       "line 4: expected an x86 instruction that the abstract machine knows, found 'shll'"},
      {ok + "lock movl $1,(x)|;",
       "line 4: expected an instruction that takes 'lock', found 'movl'"},
      {ok + "|;\nexists (0:rdi=x)",
       "line 5: expected a number, a register or a location as '[x]' (addresses as values are not "
       "read), found 'x'"},
      {ok + "|;\nfilter exists x=1", "line 5: expected '=' or '!=', found 'x'"},
      {"X86_64 t\n{ 0:edi=x; }\nP0;\n;",
       "line 2: expected a register of 64 bits for an address, found 'edi'"},
      {"X86_64 t\n{ x=y; }\nP0;\n;",
       "line 2: expected a number (addresses as values are not read), found 'y'"},
      {"X86_64 t\n{ int *x; }\nP0;\n;",
       "line 2: expected a location or register (pointers are not read), found '*'"},
  };
  for (const auto& row : cases) {
    INFO(row.first);
    const auto test = parse_litmus(row.first, "t.litmus");
    REQUIRE(!test);
    CHECK(test.error().kind == ErrorKind::kMalformed);
    CHECK(test.error().to_string() == "t.litmus: " + row.second);
  }
}
