#include "monitor/probe/function_name.h"

#include <string>

#include <doctest/doctest.h>

namespace {

std::string without_parameters(const std::string& name) {
  return name.substr(0, tsomon::probe::name_length(name.c_str()));
}

}  // namespace

TEST_CASE("the name of a function without its parameters") {
  for (const auto& [whole, name] : {
           std::pair("main", "main"),
           std::pair("foo(int)", "foo"),
           std::pair("ns::Foo::bar() const", "ns::Foo::bar"),
           std::pair("Foo::bar(int) const &", "Foo::bar"),
           std::pair("foo(int) [clone .cold]", "foo"),
           std::pair("foo[abi:cxx11](int)", "foo[abi:cxx11]"),
           std::pair("(anonymous namespace)::foo(int)", "(anonymous namespace)::foo"),
           std::pair("ns::(anonymous namespace)::foo(int)", "ns::(anonymous namespace)::foo"),
           std::pair("(anonymous namespace)::foo", "(anonymous namespace)::foo"),
           std::pair("Foo::operator()(int)", "Foo::operator()"),
           std::pair("foo(int)::{lambda()#1}::operator()() const",
                     "foo(int)::{lambda()#1}::operator()"),
           std::pair("foo(int)::Local::get()", "foo(int)::Local::get"),
           std::pair("void each<(Kind)1, void (*)(int)>(void (*)(int))",
                     "void each<(Kind)1, void (*)(int)>"),
           std::pair("set(void (*)(int, char (&) [4]))", "set"),
           std::pair("foo)", "foo)"),
           std::pair("(int)", "(int)"),
           std::pair("", ""),
       }) {
    CHECK(without_parameters(whole) == name);
  }
}
