// Every format, its errors, and what names, arguments and results mean.
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "decoders/histories/reader.h"
#include "offline/linearizability/check.h"
#include "offline/linearizability/names.h"

using namespace tsomon;
using namespace tsomon::linearizability;

namespace {

History read(const std::string& text, HistoryFormat format = HistoryFormat::kAuto) {
  auto history = read_history(text, "test", format);
  REQUIRE_MESSAGE(history, history.error().to_string());
  return std::move(*history);
}

std::string error_of(const std::string& text, HistoryFormat format = HistoryFormat::kAuto) {
  const auto history = read_history(text, "test", format);
  return history ? "" : history.error().to_string();
}

std::string operations(const History& history) {
  std::string text;
  for (const HistoryOperation& operation : history.operations) {
    text += history.describe(operation) + ";";
  }
  return text;
}

std::string verdict(const std::string& text, std::optional<ObjectKind> kind = std::nullopt) {
  const auto report = check(read(text), {kind, {}, false});
  return report ? verdict_name(report->verdict) : report.error().message;
}

// Calls and returns of one thread, one after the other: "op,args = results".
std::string sequential(const std::vector<std::string>& operations) {
  std::string text;
  for (const std::string& operation : operations) {
    const size_t equals = operation.find(" = ");
    text += fmt::format("T|call({})|\nT|ret({})|\n", operation.substr(0, equals),
                        equals == std::string::npos ? "" : operation.substr(equals + 3));
  }
  return text;
}

}  // namespace

TEST_CASE("histories: formats are told by content") {
  CHECK(detect_history_format("# c\n\nT|call(x)|1\n") == HistoryFormat::kStd);
  CHECK(detect_history_format("INFO  jepsen.util - 0\t:invoke\t:read\tnil\n") ==
        HistoryFormat::kEtcd);
  CHECK(detect_history_format("; c\n{:process 0}") == HistoryFormat::kEdn);
  CHECK(detect_history_format("[{:process 0}") == HistoryFormat::kEdn);
  CHECK(detect_history_format("({:process 0}") == HistoryFormat::kEdn);
  CHECK(detect_history_format("# @object atomic-queue\n  [1] call deq\n") == HistoryFormat::kHist);
  CHECK(detect_history_format("# queue\nenq 2 0 1\n") == HistoryFormat::kLog);
  CHECK(history_format("hist") == HistoryFormat::kHist);
  CHECK_FALSE(history_format("axe"));
}

TEST_CASE("histories: calls of text traces, nested and of named objects") {
  const History history = read(
      "A|call(q.enq, \"a, b\")|\nA|call(lock.lock)|\nA|r(x)|\n# c\nA|ret()|\nA|ret(ok)|\r\n"
      "B|call(q.deq)|");
  CHECK(operations(history) == "enq(a, b) = ok;lock();deq() pending;");
  CHECK(history.objects.text(history.operations[0].object) == "q");
  CHECK(history.operations[0].call_line == 1);
  CHECK(history.operations[0].return_line == 6);
  CHECK(history.operations[1].ret < history.operations[0].ret);
  CHECK(history.positions == 5);
}

TEST_CASE("histories: etcd logs") {
  const History history = read(
      "INFO  jepsen.util - 0\t:invoke\t:cas\t[1 2]\nINFO  jepsen.util - 0   :fail   :cas    [1 2]\n"
      "INFO  jepsen.util - 0\t:invoke\t:read\tnil\nINFO  jepsen.util - "
      "0\t:fail\t:read\t:timed-out\n"
      "INFO  jepsen.util - 1\t:invoke\t:write\t3\nINFO  jepsen.util - "
      "1\t:info\t:write\t:timed-out\n"
      "INFO  jepsen.util - :nemesis\t:info\t:start\tnil\n");
  CHECK(operations(history) == "cas(1, 2) = false;read() failed;write(3) pending;");
  CHECK(history.starts_nil);
}

TEST_CASE("histories: maps of EDN over several lines, with keys, strings and strangers") {
  const History history = read(
      "[{:process 0, :type :invoke, :f :append, :key \"k\", :value \"x y\"}\n ; a comment\n"
      " {:type :ok :f :append\n  :process 0 :key \"k\" :value \"x y\" :error [\"a {b\" nil]}\n"
      " {:process 1, :type :invoke, :f :get, :key \"k\", :value nil}\n"
      " {:process 1, :type :ok, :f :get, :key \"k\", :value \"x y\"}\n"
      " {:process :nemesis, :type :info, :f :kill, :value nil}]\n");
  CHECK(operations(history) == "append(k, x y) = x y;get(k) = x y;");
  CHECK(history.operations[0].return_line == 3);
  CHECK(verdict("[{:process :nemesis, :type :info, :f :kill, :value nil}]") == "linearizable");
}

TEST_CASE("histories: operations with the times of their begin and end") {
  // What ends at 2 is before what begins at 2; what takes no time is beside what begins with it.
  const History history =
      read("# queue\nenq 1 2 3\n7 enq 5 1 2\n4 3 3 DEQ -1\n4 contains 1 1 8 9\n");
  CHECK(operations(history) == "enq(5);enq(1);DEQ(nil);contains(1) = 1;");
  CHECK(history.operations[0].ret < history.operations[1].call);
  CHECK(history.operations[1].ret < history.operations[2].call);
  CHECK(history.declared_object == "queue");
  CHECK(history.operations[0].call_line == 3);
}

TEST_CASE("histories: errors name the line, what was expected and what was found") {
  CHECK(error_of("") == "test: expected calls and returns of operations, found none");
  CHECK(error_of("T|ret(1)|\n") ==
        "test: line 1: expected a return of an operation that the thread has called, found "
        "'ret(1)'");
  CHECK(error_of("T|call(x|\n") == "test: line 1: expected call(op,args), found 'call(x'");
  CHECK(error_of("T|hello|\n") == "test: line 1: expected an operation, found 'hello'");
  CHECK(error_of("T|call(x,1,2,3,4)|\n") == "test: line 1: expected at most 3 arguments, found 4");
  CHECK(error_of("INFO - 0 :ok :read 1\n") ==
        "test: line 1: expected the end of the process's open operation, found 'INFO - 0 :ok "
        ":read 1'");
  CHECK(error_of("{:process 0 :type :invoke}") ==
        "test: line 1: expected a map with :f, found 'one without'");
  CHECK(error_of("{:process 0 :type \"x") == "test: line 1: expected a closing quote, found '\"x'");
  CHECK(error_of("[" + std::string(200, '{')).find("line 1") != std::string::npos);
  CHECK(error_of("{:a " + std::string(100'000, '[')).find("not nested as deeply") !=
        std::string::npos);
  CHECK(error_of("[1] call push(1\n") ==
        "test: line 1: expected ')' at the end of the arguments, found '[1] call push(1'");
  CHECK(error_of("[1] call pop\n[1] call pop\n") ==
        "test: line 2: expected a process without an open operation, found '[1] call pop'");
  CHECK(error_of("enq 1 5 4\n") ==
        "test: line 1: expected 'operation values... begin end', found 'enq 1 5 4'");
}

TEST_CASE("linearizability: names say which object it is, where they can") {
  CHECK(guess_kind({"read", "write"}) == ObjectKind::kRegister);
  CHECK(guess_kind({"read", "compare_and_swap"}) == ObjectKind::kCasRegister);
  CHECK(guess_kind({"inc", "read"}) == ObjectKind::kCounter);
  CHECK(guess_kind({"insert", "remove", "contains"}) == ObjectKind::kSet);
  CHECK(guess_kind({"put", "get"}) == ObjectKind::kMap);
  CHECK(guess_kind({"append", "get"}) == ObjectKind::kKvAppend);
  CHECK(guess_kind({"Enqueue", "tryDequeue"}) == ObjectKind::kQueue);
  CHECK(guess_kind({"push", "pop"}) == ObjectKind::kStack);
  CHECK(guess_kind({"insert", "delete_min"}) == ObjectKind::kPriorityQueue);
  CHECK(guess_kind({"push_front", "pop_back"}) == ObjectKind::kDeque);
  CHECK(guess_kind({"lock", "try_lock", "unlock"}) == ObjectKind::kMutex);
  CHECK_FALSE(guess_kind({"add", "remove"}) == ObjectKind::kQueue);
  CHECK(guess_kind({"get"}).error().message ==
        "the operations get leave open which object it is (register, cas-register, counter, map, "
        "kv-append); say so with --object");
  CHECK(meaning_of(ObjectKind::kDeque, "steal") == Meaning::kPopFront);
  CHECK_FALSE(meaning_of(ObjectKind::kQueue, "top"));
}

TEST_CASE("linearizability: what operations return") {
  CHECK(verdict(sequential({"read = 0", "write,3", "read = 3"})) == "linearizable");
  CHECK(verdict(sequential({"read = nil", "write,3", "read = 3"})) == "linearizable");
  CHECK(verdict(sequential({"write,3", "read = 4"})) == "violation");
  CHECK(verdict(sequential({"swap,3 = 0", "cas,3,4 = true", "cas,3,4 = false"})) == "linearizable");
  CHECK(verdict(sequential({"write,3", "cas,3,4 = false"})) == "violation");
  CHECK(verdict(sequential({"inc", "inc = 2", "fetch_add,5 = 2", "dec = 6", "read = 6"})) ==
        "linearizable");
  CHECK(verdict(sequential({"inc", "fetch_add,5 = 2"})) == "violation");
  CHECK(verdict(sequential({"put,k,1", "get,k = 1", "get,j = nil", "remove,k = 1",
                            "contains,k = false", "put_if_absent,k,2 = nil", "get,k = 2"})) ==
        "linearizable");
  CHECK(verdict(sequential({"put,k,1", "put_if_absent,k,2 = nil"})) == "violation");
  CHECK(verdict(sequential({"append,k,a", "append,k,b", "get,k = ab", "put,k,c", "get,k = c"})) ==
        "linearizable");
  CHECK(verdict(sequential({"append,k,a", "append,k,b", "get,k = ba"})) == "violation");
  CHECK(verdict(sequential({"try_deq = false", "enq,7", "peek = 7", "try_deq = true,7",
                            "deq = empty"})) == "linearizable");
  CHECK(verdict(sequential({"push,7", "pop = 7"}), ObjectKind::kStack) == "linearizable");
  CHECK(verdict(sequential({"insert,3", "insert,5", "delete_min = 3", "poll = 5"})) ==
        "linearizable");
  CHECK(verdict(sequential({"insert,3", "insert,5", "poll = 3"})) == "violation");
  CHECK(verdict(sequential({"push,1", "push,2", "steal = 1", "pop = 2"}), ObjectKind::kDeque) ==
        "linearizable");
  CHECK(verdict(sequential({"lock", "try_lock = false", "unlock", "try_lock = true"})) ==
        "linearizable");
  CHECK(verdict(sequential({"lock", "lock"})) == "violation");
  CHECK(verdict(sequential({"contains,1"}), ObjectKind::kSet) ==
        "expected true or false as the result, found contains(1)");
  CHECK(verdict(sequential({"inc,x"})) == "expected at most one number to add, found inc(x)");
  CHECK(verdict(sequential({"inc,4611686018427387904", "inc,4611686018427387904", "read = 0"})) ==
        "violation");
}

TEST_CASE("linearizability: a bound that is hit is no verdict, whatever the verdict would be") {
  // Alike writes whose order only a later read tells.
  std::string text = "# @object register\n";
  for (int i = 0; i < 12; ++i) {
    text += fmt::format("[{}] call write({})\n", i, i + 1);
  }
  for (int i = 0; i < 12; ++i) {
    text += fmt::format("[r{}] call read\n", i);
  }
  for (int i = 0; i < 12; ++i) {
    text += fmt::format("[r{}] return {}\n", i, i + 1);
  }
  for (int i = 0; i < 12; ++i) {
    text += fmt::format("[{}] return\n", i);
  }
  const std::string wrong = text + "[x] call read\n[x] return 1\n[y] call read\n[y] return 2\n";
  Options options;
  CHECK(check(read(text), options)->verdict == Verdict::kLinearizable);
  CHECK(check(read(wrong), options)->verdict == Verdict::kViolation);
  options.bounds.max_work = 10;
  CHECK(check(read(text), options)->verdict == Verdict::kInconclusive);
  CHECK(check(read(wrong), options)->verdict == Verdict::kInconclusive);
  CHECK(check(read(wrong), options)->notes.size() == 1);
  options.bounds = {SearchBounds().max_work, 3'000};
  CHECK(check(read(wrong), options)->verdict == Verdict::kInconclusive);
  // A violation of one object counts, whatever is not known of another.
  options.bounds.max_bytes = SearchBounds().max_bytes;
  options.bounds.max_work = 40;
  std::string two;
  for (int i = 0; i < 8; ++i) {
    two += fmt::format("A{}|call(a.inc)|\n", i);
  }
  for (int i = 0; i < 8; ++i) {
    two += fmt::format("A{}|ret({})|\n", i, 8 - i);
  }
  CHECK(check(read(two), options)->verdict == Verdict::kInconclusive);
  two += "B|call(b.write,1)|\nB|ret()|\nB|call(b.read)|\nB|ret(2)|\n";
  CHECK(check(read(two), options)->verdict == Verdict::kViolation);
}
