// Names that users give, and hits that become events: what of attaching needs no process.
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "decoders/x86/decode.h"
#include "monitor/attach/hits_to_events.h"
#include "monitor/attach/overhead.h"
#include "monitor/process/names.h"

namespace tsomon::attach {
namespace {

using x86::Register;

TEST_CASE("names of code") {
  const auto pattern = parse_code_name("pool::Pool<int>::take*");
  REQUIRE(pattern);
  CHECK(pattern->kind == CodeName::Kind::kPattern);
  CHECK(pattern->module.empty());
  CHECK(pattern->first == "pool::Pool<int>::take*");
  const auto in_module = parse_code_name("libpool.so*:pool::take");
  REQUIRE(in_module);
  CHECK(in_module->module == "libpool.so*");
  CHECK(in_module->first == "pool::take");
  const auto offset = parse_code_name("c++filt+0x10..0x20");
  REQUIRE(offset);
  CHECK(offset->kind == CodeName::Kind::kFile);
  CHECK(offset->module == "c++filt");
  CHECK(offset->begin == 0x10);
  CHECK(offset->end == 0x20);
  const auto memory = parse_code_name("0x7f00");
  REQUIRE(memory);
  CHECK(memory->kind == CodeName::Kind::kMemory);
  CHECK(memory->end == 0);
  const auto markers = parse_code_name("usdt:bank:begin..end");
  REQUIRE(markers);
  CHECK(markers->provider == "bank");
  CHECK(markers->first == "begin");
  CHECK(markers->last == "end");
  for (const char* wrong : {"", "m:", "usdt:bank", "usdt:bank:begin", "usdt:bank:..end", "0xzz",
                            "m+0x20..0x10", "0x10..", "usdt::a..", "m+0x1g"}) {
    CAPTURE(wrong);
    const auto parsed = parse_code_name(wrong);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().kind == ErrorKind::kUsage);
  }
}

TEST_CASE("names of data") {
  CHECK(parse_watch_name("ns::total:4")->symbol == "ns::total");
  CHECK(parse_watch_name("ns::total:4")->size == 4);
  CHECK(parse_watch_name("ns::total")->size == 0);
  CHECK(parse_watch_name("0x1000:8")->address == 0x1000);
  for (const char* wrong : {"", "x:", "x:0", "x:y", "0x:8", ":8"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_watch_name(wrong));
  }
}

TEST_CASE("names that somebody may have meant") {
  const std::vector<std::string> names = {
      "transfer_locked", "transfer_unlocked", "main", "Account::deposit", "main", "think"};
  using Names = std::vector<std::string>;
  CHECK(similar_to("transfer_loked", names) == Names{"transfer_locked", "transfer_unlocked"});
  CHECK(similar_to("deposit", names) == Names{"Account::deposit"});
  CHECK(similar_to("Think", names) == Names{"think"});
  CHECK(similar_to("transfer*", names) == Names{"transfer_locked", "transfer_unlocked"});
  CHECK(similar_to("withdraw", names).empty());
  CHECK(similar_to("*", names).empty());
}

// One function: a store, a load, a return; and a lock with its release.
constexpr uint8_t kCode[] = {0x48, 0x89, 0x37, 0x48, 0x8b, 0x07, 0xc3};
constexpr uint32_t kStore = 0;
constexpr uint32_t kLoad = 1;
constexpr uint32_t kReturn = 2;
constexpr uint32_t kLock = 3;
constexpr uint32_t kLockReturn = 4;
constexpr uint32_t kUnlock = 5;
constexpr uint32_t kUnlockEither = 6;

class Bench {
 public:
  Bench() {
    PlannedFunction function;
    function.unit = true;
    plan_.groups.resize(1);
    for (size_t at = 0; at < sizeof kCode;) {
      const auto decoded = x86::decode(kCode + at, sizeof kCode - at, at);
      REQUIRE(decoded);
      function.code.push_back(*decoded);
      at += decoded->length;
    }
    for (uint32_t i = 0; i < 7; ++i) {
      Site site;
      site.address = i < 3 ? function.code[i].address : 16 * i;
      site.instruction = i < 3 ? i : 0;
      plan_.sites.push_back(site);
    }
    Action action;
    action.kind = Action::Kind::kEnter;
    action.label = symbols_.labels.intern("f");
    plan_.sites[kStore].actions.push_back(action);
    for (const uint32_t i : {kStore, kLoad}) {
      Action access;
      access.access = function.code[i].accesses[0];
      access.instruction = i;
      plan_.sites[i].actions.push_back(access);
    }
    action.kind = Action::Kind::kLeave;
    plan_.sites[kReturn].actions.push_back(action);
    action.kind = Action::Kind::kLock;
    plan_.sites[kLock].actions.push_back(action);
    action.kind = Action::Kind::kLockReturn;
    plan_.sites[kLockReturn].actions.push_back(action);
    action.kind = Action::Kind::kLock;
    action.role = LockRole::kRelease;
    plan_.sites[kUnlock].actions.push_back(action);
    action.role = LockRole::kReleaseEither;
    plan_.sites[kUnlockEither].actions.push_back(action);
    plan_.functions.push_back(function);
    HitsToEventsOptions options;
    options.values = Values::kExact;
    events_ = std::make_unique<HitsToEvents>(plan_, symbols_, merge_, options);
  }

  void hit(uint32_t site, int64_t time, uint64_t stack, uint64_t rdi = 0x1000, uint64_t rsi = 7,
           uint64_t rax = 0, uint32_t thread = 1) {
    Hit hit;
    hit.time = time;
    hit.thread = thread;
    hit.source = site;
    hit.ip = 0x5000 + plan_.sites[site].address;
    for (unsigned i = 0; i < 16; ++i) {
      hit.registers.set(static_cast<Register>(i), 0);
    }
    hit.registers.set(Register::kRsp, stack);
    hit.registers.set(Register::kRdi, rdi);
    hit.registers.set(Register::kRsi, rsi);
    hit.registers.set(Register::kRax, rax);
    events_->add(hit);
  }
  void sleep(int64_t time, uint32_t thread = 1) {
    Hit hit;
    hit.kind = Hit::Kind::kSleep;
    hit.time = time;
    hit.thread = thread;
    events_->add(hit);
  }
  void advance(int64_t time) { events_->advance(time); }
  HitsToEvents& events() { return *events_; }

  // What is certain to be all that there is up to then.
  EventBlock told(int64_t time) {
    events_->advance(time);
    EventBlock block;
    std::vector<EventLoss> losses;
    merge_.next(block, losses, 1000);
    return block;
  }
  const EventBlock& finish() {
    if (!out_.events.empty()) {
      return out_;
    }
    events_->finish();
    std::vector<EventLoss> losses;
    while (merge_.next(out_, losses, 1000)) {
    }
    CHECK(merge_.complete());
    return out_;
  }

 private:
  Plan plan_;
  Symbols symbols_;
  EventMerge merge_;
  EventBlock out_;
  std::unique_ptr<HitsToEvents> events_;
};

std::string kinds(const EventBlock& block) {
  std::string text;
  for (const Event& event : block.events) {
    switch (event.kind()) {
      case EventKind::kUnitBegin:
        text += '(';
        break;
      case EventKind::kUnitEnd:
        text += ')';
        break;
      case EventKind::kRead:
        text += 'r';
        break;
      case EventKind::kWrite:
        text += 'w';
        break;
      case EventKind::kFence:
        text += 'F';
        break;
      case EventKind::kAcquire:
        text += 'A';
        break;
      case EventKind::kRelease:
        text += 'R';
        break;
      default:
        text += '?';
    }
  }
  return text;
}

TEST_CASE("accesses lie between their hit and the next one") {
  Bench bench;
  bench.hit(kStore, 100, 800, 0x1000, 42);
  bench.hit(kLoad, 5000, 800, 0x2000);
  bench.hit(kReturn, 9000, 800, 0, 0, 9);  // what was loaded is in rax
  const EventBlock& out = bench.finish();
  REQUIRE(kinds(out) == "(wr)");
  CHECK(out.events[1].address == 0x1000);
  CHECK(out.events[1].size == 8);
  CHECK(out.lo(out.events[1]) == 100);
  CHECK(out.hi(out.events[1]) == 5000 + kClockError);
  CHECK(out.write_value(out.events[1]) == 42);
  CHECK(out.events[2].address == 0x2000);
  CHECK(out.lo(out.events[2]) == 5000);
  CHECK(out.hi(out.events[2]) == 9000 + kClockError);
  CHECK(out.read_value(out.events[2]) == 9);
}

TEST_CASE("a value is told only where the next hit shows it") {
  Bench other_stack;
  other_stack.hit(kStore, 100, 800);
  other_stack.hit(kLoad, 200, 800);
  other_stack.hit(kReturn, 300, 700, 0, 0, 9);
  CHECK_FALSE(other_stack.finish().read_value(other_stack.finish().events[2]));
  Bench elsewhere;
  elsewhere.hit(kStore, 100, 800);
  elsewhere.hit(kLoad, 200, 800);
  elsewhere.hit(kStore, 300, 700, 0, 0, 9);
  CHECK_FALSE(elsewhere.finish().read_value(elsewhere.finish().events[2]));
}

TEST_CASE("sleep drains what came before, and says nothing about an access under way") {
  Bench bench;
  bench.hit(kStore, 100, 800);
  bench.sleep(200);  // in the middle of the store, perhaps: the fence stands before it
  bench.hit(kLoad, 300, 800);
  bench.sleep(400);
  bench.hit(kReturn, 500, 800);
  bench.sleep(600);
  bench.sleep(700);  // nothing new to drain
  const EventBlock& out = bench.finish();
  CHECK(kinds(out) == "(FwrF)F");
}

TEST_CASE("recursive locks count once") {
  Bench bench;
  bench.hit(kLock, 100, 800, 0x99);
  bench.hit(kLockReturn, 200, 800);
  bench.hit(kLock, 300, 800, 0x99);
  bench.hit(kLockReturn, 400, 800);
  bench.hit(kUnlock, 500, 800, 0x99);
  bench.hit(kUnlock, 600, 800, 0x99);
  bench.hit(kLock, 700, 800, 0x99);
  bench.hit(kLockReturn, 800, 800, 0, 0, 16);  // EBUSY
  const EventBlock& out = bench.finish();
  REQUIRE(kinds(out) == "AR");
  CHECK(out.lo(out.events[0]) == 200);
  CHECK(out.lo(out.events[1]) == 600);
  CHECK(out.events[0].address == 0x99);
}

TEST_CASE("a lock that was held already is given back after whoever had it before") {
  Bench bench;
  bench.hit(kUnlock, 100, 800, 0x99);
  bench.hit(kUnlockEither, 200, 800, 0x77);  // nobody else has it
  bench.hit(kLock, 300, 800, 0x77);
  bench.hit(kLockReturn, 400, 800);
  bench.hit(kUnlockEither, 450, 800, 0x77, 7, 0, 2);  // one reader of two
  bench.hit(kUnlockEither, 500, 800, 0x77);
  const EventBlock& out = bench.finish();
  REQUIRE(kinds(out) == "ARARAR");
  CHECK(out.lo(out.events[0]) == 100);
  CHECK(out.lo(out.events[1]) == 100);
  CHECK(out.lo(out.events[2]) == 200);
  CHECK(out.lo(out.events[4]) == 400);
}

// Two threads, each with its lock around its unit; the probes of units are live before those of
// locks in other orders than all at once.
TEST_CASE("what comes before the last probe is live is not told, but for the locks that are held") {
  Bench bench;
  bench.events().all_live_from(1000);
  bench.events().units_were_set({1, 2, 3});
  // A unit that was seen to begin, and ends later.
  bench.hit(kStore, 100, 800);
  // A lock that was taken, and one that was given back.
  bench.hit(kLock, 200, 700, 0x99, 7, 0, 2);
  bench.hit(kLockReturn, 300, 700, 0, 0, 0, 2);
  bench.hit(kLock, 400, 700, 0x77, 7, 0, 3);
  bench.hit(kLockReturn, 500, 700, 0, 0, 0, 3);
  bench.hit(kUnlock, 600, 700, 0x77, 7, 0, 3);
  bench.sleep(650, 2);
  CHECK(kinds(bench.told(900)) == "");
  bench.hit(kLoad, 1100, 800);
  bench.hit(kReturn, 1200, 800);
  bench.hit(kStore, 1300, 800, 0x1000, 7, 0, 2);
  bench.hit(kReturn, 1400, 800, 0, 0, 0, 2);
  bench.hit(kUnlock, 1500, 700, 0x99, 7, 0, 2);
  const EventBlock& out = bench.finish();
  REQUIRE(kinds(out) == "A(w)R");
  CHECK(out.lo(out.events[0]) == 1000);
  CHECK(out.events[0].address == 0x99);
  CHECK(bench.events().left_out() == 2);  // the unit's entry and its load
}

TEST_CASE(
    "a lock that somebody waited for when the probes were set is not known until its release") {
  Bench bench;
  bench.events().all_live_from(1000);
  bench.events().units_were_set({1, 2});
  bench.hit(kLockReturn, 1100, 700);  // it has some lock now
  bench.hit(kStore, 1200, 700);
  bench.hit(kReturn, 1300, 700);
  bench.hit(kLock, 1400, 700, 0x55);
  bench.hit(kLockReturn, 1500, 700);
  bench.hit(kUnlock, 1600, 700, 0x55);
  bench.hit(kStore, 1700, 700);
  bench.hit(kReturn, 1800, 700);
  bench.hit(kUnlock, 1900, 700, 0x99);
  bench.hit(kStore, 2000, 700);
  bench.hit(kReturn, 2100, 700);
  bench.hit(kLockReturn, 2200, 700, 0, 0, 16, 2);  // EBUSY: it has none
  bench.hit(kStore, 2300, 700, 0x1000, 7, 0, 2);
  bench.hit(kReturn, 2400, 700, 0, 0, 0, 2);
  CHECK(kinds(bench.finish()) == "()AR()AR(w)(w)");
  CHECK(bench.events().left_out() == 2);
}

TEST_CASE("what comes after the first probe goes is not told") {
  Bench bench;
  bench.hit(kStore, 100, 800);
  bench.events().group_gone_at(0, 300);
  bench.hit(kLoad, 200, 800);
  bench.hit(kLoad, 400, 800);  // of that group
  bench.events().group_live_from(0, 500);
  bench.hit(kStore, 450, 800);
  bench.events().group_gone_at(0, 1000);
  bench.events().ends_at(700);
  bench.hit(kReturn, 600, 800);
  bench.hit(kStore, 800, 800);
  bench.sleep(900);
  CHECK(kinds(bench.finish()) == "(wr)");
  CHECK(bench.events().left_out() == 3);
}

TEST_CASE("a silent thread holds nobody up") {
  Bench bench;
  bench.hit(kStore, 1000, 800);
  bench.hit(kStore, 2000, 800, 0x1000, 7, 0, 2);
  bench.advance(3000);
  bench.advance(2000 + HitsToEvents::kPatience + 1);
  bench.hit(kReturn, 3000 + HitsToEvents::kPatience, 800, 0, 0, 0, 2);
  const EventBlock& out = bench.finish();
  CHECK(out.events.size() == 5);
  CHECK(out.hi(out.events[1]) == kTimeMax);
}

TEST_CASE("what was begun before the probes were set is left out") {
  Bench bench;
  bench.events().units_were_set({1});
  bench.hit(kLoad, 100, 800);  // in the middle of the unit
  bench.hit(kReturn, 200, 800);
  bench.hit(kStore, 300, 800);  // the next one from its beginning
  // Once more, for another module: this thread is in a unit that was seen to begin, the second is
  // in none.
  bench.hit(kStore, 310, 800, 0x3000, 7, 0, 2);
  bench.hit(kReturn, 320, 800, 0, 0, 0, 2);
  bench.events().units_were_set({1, 2, 3});
  bench.hit(kLoad, 400, 800);
  bench.hit(kReturn, 500, 800);
  bench.hit(kLoad, 600, 800, 0x4000, 7, 0, 2);
  bench.hit(kLoad, 700, 800, 0x4000, 7, 0, 3);
  bench.hit(kLoad, 800, 800, 0x4000, 7, 0, 4);  // in a unit that was not seen to begin
  CHECK(kinds(bench.finish()) == "(w(w)r)");
}

TEST_CASE("what a hit costs is seen between two that follow each other") {
  Bench bench;
  bench.hit(kStore, 1000, 800);
  bench.hit(kLoad, 4000, 800);
  bench.hit(kReturn, 8000, 800);
  bench.hit(kStore, 9000, 800);  // not straight on
  bench.hit(kStore, 9100, 800, 0, 0, 0, 2);
  bench.sleep(9500);
  bench.hit(kLoad, 20000, 800);
  CHECK(bench.events().take_gaps() == std::vector<int64_t>{3000, 4000});
  CHECK(bench.events().take_gaps().empty());
}

TEST_CASE("the time in hits is what their gaps say") {
  Overhead overhead(5000, 1);
  CHECK(overhead.measure(20'000, {}, 2) == doctest::Approx(10));  // 0.1 s of 1 s
  std::vector<int64_t> gaps(Overhead::kFewest - 1, 2000);
  CHECK(overhead.measure(40'000, gaps, 3) == doctest::Approx(10));  // too few
  gaps.push_back(900'000'000);                                      // kept from running
  CHECK(overhead.measure(60'000, gaps, 4) == doctest::Approx(4));
  CHECK(overhead.hit_cost() == 2000);
  CHECK(overhead.measure(80'000, {}, 5) == doctest::Approx(4));
  CHECK(overhead.measure(80'000, {}, 5) == 0);
  CHECK(overhead.measure(90'000, {}, 5) == 100);
}

// add [rdi], rsi; mov rax, [rdi]; lock xadd [rdi], rsi; ret
constexpr uint8_t kValueCode[] = {0x48, 0x01, 0x37, 0x48, 0x8b, 0x07,
                                  0xf0, 0x48, 0x0f, 0xc1, 0x37, 0xc3};

TEST_CASE("registers go before memory, and memory that may have changed is taken on request") {
  Plan plan;
  PlannedFunction function;
  for (size_t at = 0; at < sizeof kValueCode;) {
    const auto decoded = x86::decode(kValueCode + at, sizeof kValueCode - at, at);
    REQUIRE(decoded);
    function.code.push_back(*decoded);
    at += decoded->length;
  }
  plan.functions.push_back(function);
  const auto access = [&](EventKind kind, uint32_t instruction, std::optional<uint64_t> memory) {
    PendingAccess pending;
    pending.event.set_kind(kind);
    pending.function = 0;
    pending.instruction = instruction;
    pending.stack = 800;
    pending.before.set(Register::kRsi, 5);
    pending.memory = memory;
    return pending;
  };
  Site site;
  site.instruction = 3;
  Hit hit;
  hit.registers.set(Register::kRsp, 800);
  hit.registers.set(Register::kRax, 41);
  hit.registers.set(Register::kRsi, 42);
  for (const Values values : {Values::kExact, Values::kMemory}) {
    const bool assume = values == Values::kMemory;
    CAPTURE(assume);
    ValueCounts counts;
    std::vector<PendingAccess> all = {
        access(EventKind::kRead, 0, 30), access(EventKind::kWrite, 0, {}),
        access(EventKind::kRead, 1, 40), access(EventKind::kReadModifyWrite, 2, 42)};
    see_registers(plan, site, hit, all);
    conclude_values(plan, values, all, counts);
    CHECK(all[0].read == (assume ? std::optional<uint64_t>(30) : std::nullopt));
    CHECK(all[1].written == (assume ? std::optional<uint64_t>(35) : std::nullopt));
    CHECK(all[2].read == 41);  // somebody has stored since the hit
    CHECK(all[3].read == 42);
    CHECK(all[3].written == 47);
    CHECK(counts.registers == 2);
    CHECK(counts.memory == 0);
    CHECK(counts.assumed == (assume ? 1 : 0));
    CHECK(counts.compared == 2);
    CHECK(counts.differed == 1);
  }
  ValueCounts counts;
  std::vector<PendingAccess> alone = {access(EventKind::kRead, 0, 30),
                                      access(EventKind::kWrite, 0, {})};
  alone[0].memory_exact = true;
  conclude_values(plan, Values::kExact, alone, counts);
  CHECK(alone[0].read == 30);
  CHECK(alone[1].written == 35);
  CHECK(counts.memory == 1);
}

// Random calls, returns and jumps out of several calls at once, against a plain account of them.
TEST_CASE("units nest as the calls do") {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    Bench bench;
    std::string expected;
    struct Call {
      uint64_t entry = 0;  // the stack pointer at the entry, and
      uint64_t body = 0;   // ... behind it
    };
    std::vector<Call> calls;
    int64_t now = 100;
    size_t left = 0;  // units that a jump has left: the next hit shows it
    const auto show = [&] {
      expected.append(left, ')');
      left = 0;
    };
    const auto leave = [&](size_t gone) {
      calls.resize(calls.size() - gone);
      left += gone;
    };
    for (int i = 0; i < 60; ++i) {
      now += 100;
      switch (random() % 4) {
        case 0: {
          const uint64_t entry = (calls.empty() ? 1 << 20 : calls.back().body) - 8;
          show();
          calls.push_back({entry, entry - 8 * (random() % 5)});
          expected += "(w";
          bench.hit(kStore, now, entry);
          break;
        }
        case 1:
          if (!calls.empty()) {
            show();
            expected += ')';
            bench.hit(kReturn, now, calls.back().entry);
            calls.pop_back();
          }
          break;
        case 2:
          if (!calls.empty()) {
            show();
            expected += 'r';
            bench.hit(kLoad, now, calls.back().body);
          }
          break;
        default:  // out of some units, unseen
          if (random() % 4 == 0) {
            leave(random() % (calls.size() + 1));
          }
          break;
      }
    }
    CHECK(kinds(bench.finish()) == expected);
  }
}

}  // namespace
}  // namespace tsomon::attach
