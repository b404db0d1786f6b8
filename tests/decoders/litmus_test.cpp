// All litmus tests of tests/data/litmus against herd's answers, and what the parser says of
// malformed ones.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

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

Result<LitmusTest> parse(const std::string& text) { return parse_litmus(text, "t.litmus"); }

Judgement judge(const std::string& text) {
  const auto test = parse(text);
  REQUIRE_MESSAGE(test, test.error().to_string());
  return judge_litmus(*test);
}

// A program of one or two threads around the given parts.
std::string with_program(const std::string& rows, const std::string& condition,
                         const std::string& init = "") {
  return "X86 t\n{ " + init + " }\n P0 | P1 ;\n" + rows + "\n" + condition + "\n";
}

std::string single(const std::string& cells, const std::string& condition,
                   const std::string& init = "") {
  return "X86 t\n{ " + init + " }\n P0 ;\n" + cells + "\n" + condition + "\n";
}

bool always(const std::string& text) {
  const Judgement judgement = judge(text);
  return judgement.sc.verdict == Verdict::kAlways && judgement.tso.verdict == Verdict::kAlways;
}

}  // namespace

TEST_CASE("160 litmus tests have herd's verdicts") {
  std::string table = read(kData + "verdicts.csv");
  table.erase(std::remove(table.begin(), table.end(), '\r'), table.end());
  std::istringstream rows(table);
  std::string row;
  std::getline(rows, row);
  REQUIRE(row ==
          "file,quantifier,verdict_sc,verdict_tso,final_states_sc,final_states_tso,"
          "executions_sc,executions_tso,robust");
  int tests = 0;
  while (std::getline(rows, row)) {
    const std::string file = row.substr(0, row.find(','));
    const auto test = parse_litmus(read(kData + file), file);
    REQUIRE_MESSAGE(test, test.error().to_string());
    const Judgement judgement = judge_litmus(*test);
    CHECK(judgement.complete());
    std::ostringstream found;
    found << file << ',' << quantifier_text(test->quantifier) << ','
          << verdict_text(judgement.sc.verdict) << ',' << verdict_text(judgement.tso.verdict) << ','
          << judgement.sc.states.size() << ',' << judgement.tso.states.size() << ','
          << judgement.sc.executions << ',' << judgement.tso.executions << ','
          << (judgement.robust == true ? "yes" : "no");
    CHECK(found.str() == row);
    ++tests;
  }
  CHECK(tests == 160);
}

TEST_CASE("instructions that x86 has") {
  CHECK(always(single("mov EAX,3; add EAX,$4; sub EAX,1; ;", "forall 0:EAX=6")));
  CHECK(always(single("mov EAX,12; and EAX,10; or EAX,1; xor EAX,3;", "forall 0:EAX=10")));
  CHECK(always(single("mov EAX,5; inc EAX; neg EAX; dec EAX; not EAX;", "forall 0:EAX=6")));
  CHECK(always(single("mov dword ptr [x],5; add [x],2; mov EBX,[x];", "forall x=7 /\\ 0:EBX=7")));
  CHECK(always(single("mov EBX,[x]; lock xadd [x],EBX;", "forall x=8 /\\ 0:EBX=4", "x=4")));
  CHECK(always(single("mov EBX,3; xadd [x],EBX;", "forall x=7 /\\ 0:EBX=4", "x=4")));
  CHECK(always(single("xadd EAX,EBX;", "forall 0:EAX=7 /\\ 0:EBX=3", "0:EAX=3; 0:EBX=4")));
  CHECK(always(single("xadd EAX,EAX;", "forall 0:EAX=6", "0:EAX=3")));
  CHECK(always(single("xchg EAX,EBX;", "forall 0:EAX=4 /\\ 0:EBX=3", "0:EAX=3; 0:EBX=4")));
  for (const char* cmpxchg : {"cmpxchg [x],EBX;", "lock cmpxchg [x],EBX;"}) {
    CHECK(always(single(cmpxchg, "forall x=9 /\\ 0:EAX=4", "x=4; 0:EAX=4; 0:EBX=9")));
    CHECK(always(single(cmpxchg, "forall x=4 /\\ 0:EAX=4", "x=4; 0:EAX=5; 0:EBX=9")));
  }
  CHECK(always(single("cmpxchg ECX,EBX;", "forall 0:ECX=9", "0:ECX=4; 0:EAX=4; 0:EBX=9")));
  CHECK(always(single("lock inc [x]; lock dec [y]; lock neg [x]; lock not [y];",
                      "forall x=-6 /\\ y=-1", "x=5; y=1")));
  CHECK(always(single("sfence; lfence; nop; mfence;", "forall true")));
}

TEST_CASE("branches, labels and flags") {
  const std::string branch = "cmp EAX,EBX; J L; mov ECX,1; L: ;";
  struct Row {
    const char* jump;
    int left;
    int right;
    bool taken;
  };
  for (const Row& row : std::vector<Row>{{"je", 1, 1, true},
                                         {"jne", 1, 1, false},
                                         {"jl", -1, 1, true},
                                         {"jb", -1, 1, false},
                                         {"jg", 1, -1, true},
                                         {"ja", 1, -1, false},
                                         {"jle", 1, 1, true},
                                         {"jae", 1, 1, true},
                                         {"js", 1, 2, true},
                                         {"jns", 1, 2, false},
                                         {"jo", INT32_MIN, 1, true},
                                         {"jno", INT32_MIN, 1, false},
                                         {"jl", INT32_MIN, 1, true}}) {
    std::string code = branch;
    code.replace(code.find('J'), 1, row.jump);
    const std::string init =
        "0:EAX=" + std::to_string(row.left) + "; 0:EBX=" + std::to_string(row.right);
    INFO(row.jump);
    CHECK(always(single(code, row.taken ? "forall 0:ECX=0" : "forall 0:ECX=1", init)));
  }
  // inc and dec keep the carry; not keeps all flags.
  CHECK(always(single("cmp EAX,1; inc EAX; not EAX; jb L; mov ECX,1; L: ;", "forall 0:ECX=0")));
  CHECK(always(single("jmp L; mov ECX,1; L: mov EDX,1;", "forall 0:ECX=0 /\\ 0:EDX=1")));
  CHECK(always(single("test EAX,EAX; jz exists; mov ECX,1; exists: ;", "forall 0:ECX=0")));
}

TEST_CASE("registers of all widths are parts of one") {
  CHECK(always(single("mov EAX,-1; mov AX,0; mov AL,7;",
                      "forall 0:EAX=0xFFFF0007 /\\ 0:AX=7 /\\ 0:AL=7 /\\ 0:RAX=0xFFFF0007")));
  CHECK(always(single("mov RAX,-1; mov EAX,1;", "forall 0:RAX=1")));
  CHECK(always(single("mov r9d,5; movq R10,r9;", "forall 0:R10=5 /\\ 0:r9b=5")));
  CHECK(always(single("movq [x],$-1; mov RBX,[x];", "forall 0:RBX=-1 /\\ x=-1", "int64_t x=3")));
  CHECK(always(single("mov [x],$511; mov BL,[x];", "forall 0:BL=-1 /\\ x=255", "uint8_t x")));
}

TEST_CASE("a loop that waits is judged within its bound, and says so") {
  const std::string wait =
      with_program("mov [x],1 | L: mov EAX,[y]; mov [y],1 | cmp EAX,0; | je L; | mov EBX,[x];",
                   "forall 1:EAX=1 /\\ 1:EBX=1");
  const auto test = parse(wait);
  REQUIRE(test);
  const Judgement judgement = judge_litmus(*test);
  CHECK(!judgement.complete());
  CHECK(judgement.tso.exploration.loop_limit_hit);
  CHECK(judgement.tso.verdict == Verdict::kInconclusive);
  CHECK(!judgement.robust);
  CHECK(judgement.tso.states.size() == 1);
  // One class for every number of rounds that the limit allows, times what the last load of y
  // leaves open: nothing.
  CHECK(judgement.tso.executions == 5);

  const Judgement few = judge_litmus(*test, {.max_states = 3});
  CHECK(few.tso.exploration.state_limit_hit);
  CHECK(!few.robust);

  // Non-robust beyond doubt, in spite of a loop that never ends in other executions.
  const Judgement relaxed = judge(
      with_program("mov [x],1 | mov [y],1; mov EAX,[y] | mov EAX,[x]; L: cmp EAX,0 | ; jne L | ;",
                   "exists 0:EAX=0 /\\ 1:EAX=0"));
  CHECK(!relaxed.complete());
  CHECK(relaxed.robust == false);
  CHECK(relaxed.sc.verdict == Verdict::kInconclusive);
}

TEST_CASE("conditions") {
  const std::string code = "mov EAX,1; mov [x],2;";
  const std::vector<std::pair<const char*, bool>> conditions = {
      {"forall true", true},
      {"forall false", false},
      {"", true},
      {"exists 0:EAX=1 /\\ x=2", true},
      {"exists P0:eax=1", true},
      {"exists 0:EAX=0 \\/ x=2", true},
      {"exists 0:EAX=1 /\\ x=0 \\/ x=2", true},
      {"exists x=2 \\/ x=1 /\\ 0:EAX=0", true},
      {"exists ~x=1 /\\ not x=0", true},
      {"exists (x!=1 /\\ x<>0)", true},
      {"(x==2)", true},
      {"final [x]=2", true},
      {"exists x=1 => 0:EAX=7", true},
      {"exists x=2 => 0:EAX=7", false},
      {"exists x=0 => x=0 => false", true},
      {"exists x=0:EAX", false},
      {"exists 0:EAX=0:EAX", true},
      {"exists other=0", true},
      {"locations [x; 0:EAX] exists x=0x2;", true},
      {"final x=2; with tso: ~exists; sc: forall", true},
      {"exists x=2 (* x=1 (* nested *) *) << show >> << >>", true},
  };
  for (const auto& row : conditions) {
    const auto& [condition, expected] = row;
    INFO(row.first);
    const Judgement judgement = judge(single(code, condition));
    CHECK(judgement.tso.verdict == (expected ? Verdict::kAlways : Verdict::kNever));
  }
  const auto test = parse(single(code, "locations [x;y;] ~ exists (0:EAX=1 /\\ x=1)"));
  REQUIRE(test);
  CHECK(test->observed.size() == 3);
  CHECK(test->quantifier == Quantifier::kNotExists);
  CHECK(test->observed[2].name == "0:EAX");
}

TEST_CASE("headers hold names, titles, keys and remarks") {
  const std::string rest = "{x=0;}\nP0;\nmov [x],1;\nexists x=1";
  for (const char* header :
       {"X86 a/b.c+d", "\n\nX86  a/b.c+d (abc) \"title with { in it\"\n",
        "X86 a/b.c+d\r\n\"over\"\n", "X86 a/b.c+d\n(* a { (* nested *) *)\nKey={1}\nPrefetch=\n",
        "X86 a/b.c+d\n\"half a title\n"}) {
    INFO(header);
    const auto test = parse(header + rest);
    REQUIRE_MESSAGE(test, test.error().to_string());
    CHECK(test->name == "a/b.c+d");
  }
}

TEST_CASE("malformed tests are refused with the line, what was expected and what was found") {
  const std::string ok = "X86 t\n{ }\n P0 | P1 ;\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "line 1: expected 'X86' or 'X86_64' and the name of a test, found an empty file"},
      {"\n \n", "line 3: expected 'X86' or 'X86_64' and the name of a test, found an empty file"},
      {"PPC t\n{}",
       "line 1: expected 'X86' or 'X86_64', the architecture of the test, found 'PPC'"},
      {std::string("\x7f"
                   "ELF\1\2\0\0",
                   8),
       "line 1: expected 'X86' or 'X86_64', the architecture of the test, found something that is "
       "no text"},
      {"X86 \n{}", "line 1: expected the name of the test after 'X86', found the end of the line"},
      {"X86 t\nP0;\n", "line 3: expected '{' and the initial state, found the end of the file"},
      {"X86 t\n(* {", "line 2: expected '{' and the initial state, found the end of the file"},
      {"X86 t\n{ x=0",
       "line 2: expected ';' or '}' in the initial state, found the end of the file"},
      {"X86 t\n{ x=0 y=1 }", "line 2: expected ';' or '}' in the initial state, found 'y'"},
      {"X86 t\n{ x=\n y; }",
       "line 3: expected a number (addresses as values are not read), found 'y'"},
      {"X86 t\n{ x=; }", "line 2: expected a number, found ';'"},
      {"X86 t\n{ x=12345678901234567890123; }",
       "line 2: expected a number of at most 64 bits, found '12345678901234567890123'"},
      {"X86 t\n{ x=1; x=2; }", "line 2: expected one initial value for 'x', found another"},
      {"X86 t\n{ 0:EAX=1;\n0:RAX=2; }",
       "line 3: expected one initial value for '0:RAX', found another"},
      {"X86 t\n{ float x=1; }", "line 2: expected an integer type of C, found 'float'"},
      {"X86 t\n{ int *x; }",
       "line 2: expected a location or register (pointers are not read), found '*'"},
      {"X86 t\n{ 0:XYZ=1; }", "line 2: expected a register, found 'XYZ'"},
      {"X86 t\n{ 99:EAX=1; }", "line 2: expected a thread number below 64, found '99'"},
      {"X86 t\n{ 2:EAX=1; }\nP0|P1;\n|;", "line 2: expected a thread below 2, found 2"},
      {"X86 t\n{ = }", "line 2: expected a location or register with its value, or '}', found '='"},
      {"X86 t\n{ }\nP1;", "line 3: expected 'P0', found 'P1'"},
      {"X86 t\n{ }\nP0|P2;", "line 3: expected 'P1', found 'P2'"},
      {"X86 t\n{ }\nP0 P1;", "line 3: expected '|' or ';' after the name of a thread, found 'P1'"},
      {ok + "mov [x],1 ;", "line 4: expected '|': the program has 2 columns, found ';'"},
      {ok + "mov [x],1 | | ;", "line 4: expected ';': the program has 2 columns, found '|'"},
      {ok + "mov [x],1 mov |;", "line 4: expected '|' or ';' after the instruction, found 'mov'"},
      {ok + "|\nvfmadd EAX;",
       "line 5: expected an x86 instruction that the abstract machine knows, found 'vfmadd'"},
      {ok + "7|;",
       "line 4: expected an x86 instruction that the abstract machine knows, found '7'"},
      {ok + "mov [EAX],1|;",
       "line 4: expected the name of a location (addresses in registers are not read), found "
       "'EAX'"},
      {ok + "mov x,1|;",
       "line 4: expected a register, a location as '[x]' or a number as '$1', found 'x'"},
      {ok + "mov AH,1|;",
       "line 4: expected a register, a location as '[x]' or a number as '$1', found 'AH'"},
      {ok + "mov EAX 1|;", "line 4: expected ',', found '1'"},
      {ok + "mov 1,EAX|;",
       "line 4: expected a register or location as first operand, found a number"},
      {ok + "mov [x],[y]|;", "line 4: expected one location in an instruction at most, found two"},
      {ok + "mov EAX,BL|;", "line 4: expected operands of one size, found 4 and 1 bytes"},
      {ok + "movq [x],EAX|;", "line 4: expected operands of one size, found 8 and 4 bytes"},
      {ok + "mov [x],AL|;\n|mov [x],EAX;",
       "line 5: expected an access of 1 bytes to 'x', as before, found one of 4 (one location has "
       "one size)"},
      {ok + "mov dword [x],1|;", "line 4: expected 'ptr', found '['"},
      {ok + "xchg [x],1|;", "line 4: expected a register as second operand"},
      {ok + "lock mov [x],1|;", "line 4: expected an instruction that takes 'lock', found 'mov'"},
      {ok + "lock cmp [x],1|;", "line 4: expected an instruction that takes 'lock', found 'cmp'"},
      {ok + "lock add EAX,[x]|;",
       "line 4: expected a location as destination after 'lock', found a register"},
      {ok + "jmp 3|;", "line 4: expected a label, found '3'"},
      {ok + "jmp L|L:;", "line 4: expected a label of this thread, found 'L'"},
      {ok + "L:|;\nL:|;", "line 5: expected a new label, found 'L' again"},
      {ok + "|;\nexits x=1",
       "line 5: expected an x86 instruction that the abstract machine knows, "
       "found 'exits'"},
      {ok + "|;\nobserved x=1",
       "line 5: expected 'exists', '~exists', 'forall' or 'final', found "
       "'observed'"},
      {ok + "|;\n~ x=1", "line 5: expected 'exists', found 'x'"},
      {ok + "|;\nexists",
       "line 5: expected a condition as 'x=1', '0:EAX=1', '(', '~', 'true' or 'false', found the "
       "end of the file"},
      {ok + "|;\nexists (x=1", "line 5: expected ')', found the end of the file"},
      {ok + "|;\nexists x 1", "line 5: expected '=' or '!=', found '1'"},
      {ok + "|;\nexists x=1 /\\",
       "line 5: expected a condition as 'x=1', '0:EAX=1', '(', '~', "
       "'true' or 'false', found the end of the file"},
      {ok + "|;\nexists x=", "line 5: expected a number, found the end of the file"},
      {ok + "|;\nexists x=1 y=1", "line 5: expected the end of the test, found 'y'"},
      {ok + "|;\nexists 2:EAX=1", "line 5: expected a thread below 2, found 2"},
      {ok + "|;\nexists 0:FOO=1", "line 5: expected a register, found 'FOO'"},
      {ok + "|;\nexists \x80",
       "line 5: expected a condition as 'x=1', '0:EAX=1', '(', '~', 'true' "
       "or 'false', found byte 0x80"},
      {ok + "|;\nlocations x", "line 5: expected '[', found 'x'"},
      {ok + "|;\nlocations [x y]",
       "line 5: expected ';' or ']' in the list of locations, found 'y'"},
      {ok + "|;\nlocations [=]", "line 5: expected a location or a register as '0:EAX', found '='"},
      {ok + "|;\nfinal x=1 with 3", "line 5: expected the name of a model, found '3'"},
      {ok + "|;\nfinal x=1 with tso: ~forall",
       "line 5: expected 'exists', '~exists' or 'forall', "
       "found 'forall'"},
      {ok + "|;\nexists x=1\n<< show",
       "line 6: expected '>>' to end the section that begins here, found the end of the file"},
      {ok + "|;\nexists x=1\n(* (* *)",
       "line 6: expected '*)' to end the comment that begins here, found the end of the file"},
  };
  for (const auto& row : cases) {
    const auto& [text, message] = row;
    INFO(row.first);
    const auto test = parse(text);
    REQUIRE(!test);
    CHECK(test.error().kind == ErrorKind::kMalformed);
    CHECK(test.error().to_string() == "t.litmus: " + message);
  }
}

TEST_CASE("nesting and numbers of threads are bounded") {
  const std::string ok = "X86 t\n{ }\n P0 ;\n";
  for (const char* opening : {"(", "~", "x=0 => "}) {
    std::string deep = ok + "exists ";
    for (int level = 0; level < 100000; ++level) {
      deep += opening;
    }
    const auto test = parse(deep);
    REQUIRE(!test);
    CHECK(test.error().message == "expected a condition of at most 200 levels");
  }
  std::string wide = "X86 t\n{ }\nP0";
  for (int thread = 1; thread < 65; ++thread) {
    wide += "|P" + std::to_string(thread);
  }
  const auto test = parse(wide + ";");
  REQUIRE(!test);
  CHECK(test.error().message == "expected at most 64 threads");
}

TEST_CASE("no beginning or damaged copy of a test is anything but a test or an error") {
  for (const char* file : {"amd5.litmus", "frmap.litmus", "m45ii.litmus", "SB-XCHG.litmus"}) {
    const std::string text = read(kData + file);
    REQUIRE(!text.empty());
    for (size_t at = 0; at < text.size(); ++at) {
      const auto prefix = parse(text.substr(0, at));
      CHECK((prefix || !prefix.error().message.empty()));
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
      const auto other = parse(damaged);
      CHECK((other || !other.error().where.empty()));
    }
  }
}
