#include "monitor/probe/assembler/twins.h"

#include <string>

#include <doctest/doctest.h>

using tsomon::assembler::is_twin;
using tsomon::assembler::with_twins;

namespace {

bool contains(const std::string& text, const std::string& what) {
  return text.find(what) != std::string::npos;
}

std::string function(const std::string& name, const std::string& body,
                     const std::string& section = "\t.text") {
  return section + "\n\t.type\t" + name + ", @function\n" + name + ":\n.LFB0:\n\t.cfi_startproc\n" +
         body + "\t.cfi_endproc\n.LFE0:\n\t.size\t" + name + ", .-" + name + "\n";
}

}  // namespace

TEST_CASE("names of twins") {
  CHECK(is_twin("f.tsomon"));
  CHECK(is_twin("f.tsomon.constprop.0"));
  CHECK_FALSE(is_twin("f"));
  CHECK_FALSE(is_twin("f.tsomonster"));
  CHECK_FALSE(is_twin(".tsomon"));
}

TEST_CASE("text without twins stays as it is") {
  CHECK_FALSE(with_twins("").has_value());
  CHECK_FALSE(with_twins(function("f", "\tret\n")).has_value());
}

TEST_CASE("an entry stands before everything that can be jumped to") {
  const auto text = with_twins(function("f", ".L2:\n\taddl\t$1, %eax\n\tjmp\t.L2\n") +
                               function("f.tsomon", "\tret\n"));
  REQUIRE(text);
  CHECK(contains(*text,
                 "\t.cfi_startproc\n.Ltsomon0:\n\t.byte 0xa9\n\t.long f.tsomon-.-4\n"
                 "\t.pushsection tsomon_twins,\"ao\",@progbits,f\n\t.long .Ltsomon0-.\n"
                 "\t.popsection\n.L2:\n"));
  // The twin has none.
  CHECK_FALSE(contains(*text, ".Ltsomon1"));
}

TEST_CASE("an entry comes behind endbr64, and before an asm statement") {
  const auto text = with_twins(function("f", "\tendbr64\n#APP\n# 1 \"a.c\" 1\n\tnop\n#NO_APP\n") +
                               function("f.tsomon", "\tret\n"));
  REQUIRE(text);
  CHECK(contains(*text, "\tendbr64\n.Ltsomon0:\n"));
  CHECK(contains(*text, "\t.popsection\n#APP\n"));
}

TEST_CASE("an entry belongs to the function's group") {
  const auto text =
      with_twins(function("f", "\tret\n", "\t.section\t.text.f,\"axG\",@progbits,f,comdat") +
                 function("f.tsomon", "\tret\n",
                          "\t.section\t.text.f.tsomon,\"axG\",@progbits,f.tsomon,comdat"));
  REQUIRE(text);
  CHECK(contains(*text, "\t.pushsection tsomon_twins,\"aoG\",@progbits,f,f,comdat\n"));
}

TEST_CASE("calls of twins and of plain functions") {
  const auto text =
      with_twins(function("f",
                          "\tcall\tmemcpy@PLT\n\tcall\ttsomon_runtime_memcpy@PLT\n"
                          "\tcall\tstrlen\n\tret\n") +
                 function("g.tsomon", "\tret\n") + function("strlen", "\tret\n") +
                 function("f.tsomon",
                          "\tcall\tmemcpy@PLT\n\tcall\tstrlen\n\tcall\t*memchr@GOTPCREL(%rip)\n"
                          "\tcall\t*%rax\n\tje\tf.tsomon\n\tjmp\tg.tsomon\n"
                          "\tcallq\tputs@PLT # TAILCALL\n\tcall\ttsomon_runtime_memset\n"
                          "\tleaq\tmemcpy(%rip), %rax\n"));
  REQUIRE(text);
  const size_t twin = text->find("\nf.tsomon:\n");
  REQUIRE(twin != std::string::npos);
  const std::string plain = text->substr(0, twin);
  const std::string watched = text->substr(twin);
  CHECK(contains(plain, "\tcall\tmemcpy@PLT\n\tcall\tmemcpy@PLT\n\tcall\tstrlen\n"));
  CHECK(contains(watched, "\tcall\t__wrap_memcpy@PLT\n"));
  CHECK(contains(watched, "\tcall\tstrlen\n"));  // the program's own
  CHECK(contains(watched, "\tcall\t*__wrap_memchr@GOTPCREL(%rip)\n"));
  CHECK(contains(watched, "\tcall\t*%rax\n"));
  CHECK(contains(watched, "\tje\tf\n"));
  CHECK(contains(watched, "\tjmp\tg.tsomon\n"));  // there is no plain one
  CHECK(contains(watched, "\tcallq\t__wrap_puts@PLT\n"));
  CHECK(contains(watched, "\tcall\ttsomon_runtime_memset\n"));
  CHECK(contains(watched, "\tleaq\tmemcpy(%rip), %rax\n"));
}
