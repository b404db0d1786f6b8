// Suppressions and baselines: what is read, what matches, what is refused, and what is said of it.
#include "monitor/findings/finding_filter.h"

#include <doctest/doctest.h>

using namespace tsomon;

namespace {

FindingPlaces some_places() {
  FindingPlaces places;
  places.fingerprint = "0123456789abcdef";
  places.functions = {"ns::Bank<a::b>::deposit", "(anonymous namespace)::f"};
  places.files = {"/src/bank/bank.cpp"};
  places.modules = {"/usr/lib/libbank.so.1"};
  places.units = {"transfer"};
  return places;
}

bool is_hidden(const std::string& line) {
  FindingFilter filter;
  REQUIRE(filter.add_suppressions(line, "s"));
  return !filter.hides(some_places()).empty();
}

std::string refusal(const std::string& text) {
  FindingFilter filter;
  const auto added = filter.add_suppressions(text, "known.supp");
  return added ? "" : added.error().to_string();
}

std::string bad_baseline(const std::string& text) {
  FindingFilter filter;
  const auto added = filter.add_baseline(text, "old.json");
  return added ? "" : added.error().to_string();
}

}  // namespace

TEST_CASE("a suppression matches whole names, with and without scope or folder") {
  for (const char* line :
       {"function:ns::Bank<a::b>::deposit", "function:deposit", "function:*::deposit", "function:f",
        "function:dep*", "file:bank.cpp", "file:/src/*", "file:*/bank/*.cpp", "unit:transfer",
        "unit:tr?nsfer", "module:libbank.so*", "module:/usr/lib/*", "fingerprint:0123456789abcdef",
        "fingerprint:0123*", "  unit:transfer  ", "unit: transfer\r"}) {
    CAPTURE(line);
    CHECK(is_hidden(line));
  }
  for (const char* line :
       {"function:depos", "function:bank.cpp", "function:b", "function:b>::deposit", "file:bank",
        "file:deposit", "unit:trans", "unit:deposit", "module:libbank", "module:bank.cpp",
        "fingerprint:0123", "fingerprint:*g", "# unit:transfer", "", "function:Deposit"}) {
    CAPTURE(line);
    CHECK_FALSE(is_hidden(line));
  }
}

TEST_CASE("operators have no scope of their own") {
  FindingPlaces places;
  places.functions = {"a::operator<", "b::C::operator()", "c::operator->"};
  FindingFilter filter;
  REQUIRE(filter.add_suppressions("function:operator<", "s"));
  CHECK(!filter.hides(places).empty());
  places.functions = {"b::C::operator()"};
  CHECK(filter.hides(places).empty());
}

TEST_CASE("what is not known matches nothing") {
  FindingFilter filter;
  REQUIRE(filter.add_suppressions("function:*\nfile:*\nmodule:*\nunit:*\n", "s"));
  CHECK(filter.hides(FindingPlaces()).empty());
  CHECK(filter.unused().size() == 4);
}

TEST_CASE("malformed suppressions are refused with their line") {
  CHECK(refusal("unit:a\n\n# c\nrace:x\n").find("known.supp: line 4: expected ") == 0);
  CHECK(refusal("unit:a\nunit:  \n").find("known.supp: line 2: ") == 0);
  CHECK(refusal("deposit").find("line 1: expected function:, file:, unit:, module: or "
                                "fingerprint: and a pattern, found 'deposit'") !=
        std::string::npos);
  CHECK(refusal(std::string("unit:a\0b", 8)).find("line 1") != std::string::npos);
  CHECK(refusal("Unit:a").find("line 1") != std::string::npos);
  CHECK(refusal("unit:a\nfile:b").empty());
}

TEST_CASE("a baseline has the fingerprints of all findings") {
  FindingFilter filter;
  REQUIRE(
      filter.add_baseline("{\"tool\":\"tsomon check\",\"fingerprint\":\"aa\",\"findings\":["
                          "{\"fingerprint\":\"bb\"},{\"fingerprint\":7}]}\n\n"
                          "{\"tool\":\"tsomon predict\",\"races\":[{\"fingerprint\":\"cc\"}]}",
                          "old.json"));
  const auto hides = [&](const char* fingerprint) {
    FindingPlaces places;
    places.fingerprint = fingerprint;
    return filter.hides(places);
  };
  for (const char* known : {"aa", "bb", "cc"}) {
    CHECK(hides(known) == "baseline old.json");
  }
  CHECK(hides("dd").empty());
  CHECK(hides("").empty());
  CHECK(filter.unused().empty());
}

TEST_CASE("what is no result is refused as a baseline, but for the output of a program") {
  const std::string run = "{\"tool\":\"tsomon run\",\"verdict\":\"definite\"}\n";
  const std::string check = "{\"tool\":\"tsomon check\",\"verdict\":\"definite\"}\n";
  CHECK(bad_baseline("").empty());
  CHECK(bad_baseline(check).empty());
  CHECK(bad_baseline("hello\n" + run).empty());
  CHECK(bad_baseline(check + "hello\n").find("old.json: line 2: expected an object") == 0);
  CHECK(bad_baseline("hello\n").find("old.json: line 1: ") == 0);
  CHECK(bad_baseline(run + "{\"tool\":\n").find("old.json: line 2: ") == 0);
  CHECK(bad_baseline(run + "{\"tool\":\"other\"}\n").find("old.json: line 2: ") == 0);
  CHECK(bad_baseline(check + "[1]\n").find("old.json: line 2: ") == 0);
  // Deeper than any result.
  CHECK(bad_baseline("{\"tool\":\"tsomon run\",\"x\":" + std::string(100'000, '[') +
                     std::string(100'000, ']') + "}")
            .empty());
}

TEST_CASE("files that cannot be read are errors") {
  const auto folder = FindingFilter::read({"/"}, {});
  REQUIRE_FALSE(folder);
  CHECK(folder.error().kind == ErrorKind::kUnreadable);
  CHECK(folder.error().to_string().find("/: cannot be read") == 0);
  CHECK_FALSE(FindingFilter::read({}, {"/nowhere/at.all"}));
  CHECK_FALSE(FindingFilter::read({}, {}).value().any());
}

TEST_CASE("counts: what is hidden, what is shown, and by what") {
  FindingFilter filter;
  REQUIRE(filter.add_suppressions("unit:transfer\nunit:never\n", "known.supp"));
  HiddenFindings hidden(&filter);
  nlohmann::ordered_json one = nlohmann::ordered_json::object();
  CHECK(hidden.mark(some_places(), &one, 3));
  CHECK(one["suppressed"] == 3);
  CHECK(one["suppressed_by"] == "unit:transfer known.supp:1");
  CHECK(hidden.all());
  FindingPlaces other;
  nlohmann::ordered_json two = nlohmann::ordered_json::object();
  CHECK_FALSE(hidden.mark(other, &two, 2));
  CHECK(two["suppressed"] == 0);
  CHECK(!two.contains("suppressed_by"));
  CHECK_FALSE(hidden.all());
  CHECK(hidden.hidden() == 3);
  CHECK(hidden.shown() == 2);
  CHECK(hidden.text() == "3 suppressed (unit:transfer known.supp:1)");
  CHECK(filter.unused() == std::vector<std::string>{"known.supp:2: unit:never suppressed nothing"});

  HiddenFindings nothing;
  CHECK_FALSE(nothing.mark(some_places(), &two, 1));
  CHECK(nothing.text().empty());
  CHECK_FALSE(nothing.all());
}

TEST_CASE("texts of places are taken apart") {
  CHECK(frame_of_text("deposit bank.cpp:20") == SourceFrame{"deposit", "bank.cpp", 20});
  CHECK(frame_of_text("src/bank.cpp:20") == SourceFrame{"", "src/bank.cpp", 20});
  CHECK(frame_of_text("a::b bank.cpp:20") == SourceFrame{"a::b", "bank.cpp", 20});
  for (const char* text :
       {"", "20", "bank.cpp:", "a::b", "x:1b", "f x:-3", "x:99999999999999999"}) {
    CAPTURE(text);
    CHECK(frame_of_text(text) == SourceFrame{});
  }
}
