// Messages: what is written is read, and what is not as it should be is refused, whatever it is.
#include "monitor/fleet/work.h"

#include <random>
#include <string>

#include <doctest/doctest.h>

#include "monitor/fleet/digest.h"

namespace tsomon::fleet {
namespace {

Work some_work() {
  Work work;
  work.tenant = "web-1";
  work.host = "host \xc3\xa9 \n";
  work.submitted = 1'700'000'000'000'000;
  work.content.name = "run.tsomon";
  work.content.packed = true;
  work.content.build = "0123456789abcdef";
  work.content.parts = {{"manifest.json", 3, 7, {digest_of("abc")}},
                        {"capture", kChunkBytes + 1, 0, {digest_of("x"), digest_of("y")}}};
  work.question.command = "check";
  work.question.options = {{"max-work", "60"}, {"property", "robustness,serializability"}};
  work.question.suppressions = "function:a*\n";
  work.id = id_of(work.content, work.question);
  return work;
}

}  // namespace

TEST_CASE("digests are SHA-256") {
  CHECK(digest_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(digest_of("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(is_digest(digest_of("")));
  CHECK_FALSE(is_digest(digest_of("").substr(1)));
  CHECK_FALSE(is_digest(std::string(63, 'a') + "A"));
}

TEST_CASE("work is read as it was written") {
  const Work work = some_work();
  const auto read = read_work(work_text(work));
  REQUIRE(read);
  CHECK(read->id == work.id);
  CHECK(read->tenant == work.tenant);
  CHECK(read->host == work.host);
  CHECK(read->submitted == work.submitted);
  CHECK(read->content == work.content);
  CHECK(read->question == work.question);
}

TEST_CASE("the id is that of the recording and the question, not of what else is there") {
  Work other = some_work();
  const std::string id = other.id;
  other.content.parts.front().chunks = {digest_of("another manifest")};
  other.content.name = "copy";
  CHECK(id_of(other.content, other.question) == id);
  other.content.parts.back().chunks.front() = digest_of("another recording");
  CHECK(id_of(other.content, other.question) != id);
  other = some_work();
  other.question.options["max-work"] = "61";
  CHECK(id_of(other.content, other.question) != id);
}

TEST_CASE("what a question may not have is refused") {
  const auto refused = [](const char* command, const char* name, const char* value) {
    Question question;
    question.command = command;
    question.options[name] = value;
    return !check_question(question).has_value();
  };
  CHECK_FALSE(refused("check", "max-work", "60"));
  CHECK_FALSE(refused("predict", "kinds", "races,deadlocks"));
  CHECK(refused("run", "max-work", "60"));
  CHECK(refused("check", "suppressions", "x"));
  CHECK(refused("check", "output", "text"));
  CHECK(refused("check", "max-work", ""));
  CHECK(refused("check", "max-work", "1 2"));
  CHECK(refused("check", "property", "/etc/passwd"));
  CHECK(refused("check", "property", "a\nb"));
}

TEST_CASE("versions: this one and the next one") {
  std::string text = work_text(some_work());
  const size_t at = text.find("\"version\":1");
  REQUIRE(at != std::string::npos);
  text.replace(at, 11, "\"version\":2");
  CHECK(read_work(text));
  text.replace(at, 11, "\"version\":3");
  CHECK_FALSE(read_work(text));
  text.replace(at, 11, "\"version\":0");
  CHECK_FALSE(read_work(text));
  CHECK_FALSE(read_verdict(work_text(some_work())));
  CHECK_FALSE(read_work(std::string(kMostMessageBytes + 1, ' ')));
}

TEST_CASE("a message with any change is refused, or is another whole one") {
  const std::string text = work_text(some_work());
  Verdict verdict;
  verdict.id = digest_of("work");
  verdict.result = "{}\n";
  Sighting sighting;
  sighting.work = verdict.id;
  sighting.found.fingerprint = "0123";
  Canary canary;
  canary.host = "web-3";
  canary.store = "/var/lib/tsomon";
  canary.time = 7;
  canary.status = nlohmann::ordered_json::parse(R"({"targets":[{"name":"bank"}]})");
  const std::string others[] = {verdict_text(verdict), sighting_text(sighting),
                                canary_message(canary).value()};
  REQUIRE(read_verdict(others[0]));
  REQUIRE(read_sighting(others[1]));
  const auto read = read_canary(others[2]);
  REQUIRE(read);
  CHECK(read->host == canary.host);
  CHECK(read->store == canary.store);
  CHECK(read->time == canary.time);
  CHECK(read->status == canary.status);
  Canary other = canary;
  other.host += "x";
  CHECK(name_of(other) != name_of(canary));
  canary.status["large"] = std::string(kMostMessageBytes / 2, 'x');
  CHECK(canary_message(canary));
  canary.status["large"] = std::string(kMostMessageBytes, 'x');
  CHECK_FALSE(canary_message(canary));
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string changed = round % 2 == 0 ? text : others[round / 2 % 2];
    for (unsigned changes = 1 + random() % 3; changes > 0; --changes) {
      const size_t at = random() % changed.size();
      switch (random() % 4) {
        case 0:
          changed[at] = static_cast<char>(random());
          break;
        case 1:
          changed.erase(at, 1 + random() % 8);
          break;
        case 2:
          changed.insert(at, 1, "0\"}],{["[random() % 7]);
          break;
        default:
          changed.resize(at + 1);
      }
      if (changed.empty()) {
        changed = " ";
      }
    }
    if (const auto work = read_work(changed)) {
      CHECK(work->id == id_of(work->content, work->question));
      CHECK(check_question(work->question));
      CHECK(is_tenant(work->tenant));
    }
    if (const auto read = read_verdict(changed)) {
      CHECK(is_digest(read->id));
    }
    (void)read_sighting(changed);
    (void)read_canary(changed);
  }
}

}  // namespace tsomon::fleet
