#include "offline/linearizability/names.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

namespace tsomon::linearizability {
namespace {

using K = ObjectKind;
using M = Meaning;

struct Row {
  K kind;
  M meaning;
  std::string_view names;  // separated by spaces, each with a space after it
  bool typical = true;     // the name says something about the object
};

constexpr std::string_view kReads = "read get load ";
constexpr std::string_view kWrites = "write set store ";
constexpr std::string_view kCasNames =
    "cas compareandswap compareandset compareexchange compareexchangestrong ";
constexpr std::string_view kExchanges = "swap exchange getandset ";

constexpr std::array kRows = {
    Row{K::kRegister, M::kRead, kReads},
    Row{K::kRegister, M::kWrite, kWrites},
    Row{K::kCasRegister, M::kRead, kReads},
    Row{K::kCasRegister, M::kWrite, kWrites},
    Row{K::kCasRegister, M::kCas, kCasNames},
    Row{K::kCasRegister, M::kExchange, kExchanges},
    Row{K::kCounter, M::kRead, "read get load value "},
    Row{K::kCounter, M::kWrite, kWrites, false},
    Row{K::kCounter, M::kFetchAdd,
        "fetchadd fetchandadd getandadd fetchinc fetchandinc fetchincrement getandincrement "},
    Row{K::kCounter, M::kFetchSub,
        "fetchsub fetchandsub fetchdec fetchanddec fetchdecrement getanddecrement "},
    Row{K::kCounter, M::kAddFetch,
        "inc increment incr add addandget addandfetch incrementandget incandget "},
    Row{K::kCounter, M::kSubFetch, "dec decrement decr sub subandget decrementandget "},
    Row{K::kSet, M::kInsert, "insert add "},
    Row{K::kSet, M::kInsert, "put ", false},
    Row{K::kSet, M::kRemove, "remove delete erase "},
    Row{K::kSet, M::kContains, "contains member has "},
    Row{K::kSet, M::kContains, "find lookup get ", false},
    Row{K::kMap, M::kRead, "get lookup find "},
    Row{K::kMap, M::kRead, "read ", false},
    Row{K::kMap, M::kWrite, "put "},
    Row{K::kMap, M::kWrite, "set write insert store ", false},
    Row{K::kMap, M::kRemove, "remove delete erase "},
    Row{K::kMap, M::kContains, "contains containskey has haskey "},
    Row{K::kMap, M::kPutIfAbsent, "putifabsent insertifabsent "},
    Row{K::kMap, M::kCas, "cas replace ", false},
    Row{K::kKvAppend, M::kRead, "get read "},
    Row{K::kKvAppend, M::kWrite, "put "},
    Row{K::kKvAppend, M::kWrite, "set write ", false},
    Row{K::kKvAppend, M::kAppend, "append "},
    Row{K::kQueue, M::kPushBack, "enq enqueue "},
    Row{K::kQueue, M::kPushBack, "add offer push pushback put send insert ", false},
    Row{K::kQueue, M::kPopFront, "deq dequeue "},
    Row{K::kQueue, M::kPopFront, "remove poll pop popfront take receive ", false},
    Row{K::kQueue, M::kPeekFront, "peek front head ", true},
    Row{K::kStack, M::kPushBack, "push "},
    Row{K::kStack, M::kPushBack, "add insert put ", false},
    Row{K::kStack, M::kPopBack, "pop "},
    Row{K::kStack, M::kPopBack, "remove poll take ", false},
    Row{K::kStack, M::kPeekBack, "peek top "},
    Row{K::kPriorityQueue, M::kPushBack, "insert "},
    Row{K::kPriorityQueue, M::kPushBack, "add push offer enq enqueue put ", false},
    Row{K::kPriorityQueue, M::kPopFront, "poll popmax deletemax removemax extractmax pollmax "},
    Row{K::kPriorityQueue, M::kPopFront, "remove pop deq dequeue extract take ", false},
    Row{K::kPriorityQueue, M::kPeekFront, "peek max peekmax findmax getmax "},
    Row{K::kPriorityQueue, M::kPeekFront, "top front ", false},
    Row{K::kPriorityQueue, M::kPopBack, "popmin deletemin delmin removemin extractmin pollmin "},
    Row{K::kPriorityQueue, M::kPeekBack, "min peekmin findmin getmin "},
    Row{K::kDeque, M::kPushFront, "pushfront pushleft addfirst offerfirst "},
    Row{K::kDeque, M::kPushBack, "pushback pushright addlast offerlast "},
    Row{K::kDeque, M::kPopFront, "popfront popleft removefirst pollfirst "},
    Row{K::kDeque, M::kPopBack, "popback popright removelast polllast "},
    Row{K::kDeque, M::kPeekFront, "peekfront peekleft peekfirst getfirst front "},
    Row{K::kDeque, M::kPeekBack, "peekback peekright peeklast getlast back "},
    Row{K::kDeque, M::kPushBack, "push ", false},
    Row{K::kDeque, M::kPopBack, "pop ", false},
    Row{K::kDeque, M::kPopFront, "steal ", false},
    Row{K::kMutex, M::kLock, "lock acquire "},
    Row{K::kMutex, M::kTryLock, "trylock tryacquire "},
    Row{K::kMutex, M::kUnlock, "unlock release "},
};

std::string plain(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c != '_' && c != '-') {
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return result;
}

const Row* find_row(K kind, const std::string& name) {
  for (const Row& row : kRows) {
    const size_t at = row.kind == kind ? row.names.find(name + " ") : std::string_view::npos;
    if (at != std::string_view::npos && (at == 0 || row.names[at - 1] == ' ')) {
      return &row;
    }
  }
  return nullptr;
}

const Row* row_of(K kind, std::string_view name) {
  const std::string spelled = plain(name);
  if (const Row* row = find_row(kind, spelled)) {
    return row;
  }
  return spelled.rfind("try", 0) == 0 ? find_row(kind, spelled.substr(3)) : nullptr;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string result;
  for (const std::string& text : texts) {
    result += (result.empty() ? "" : ", ") + text;
  }
  return result;
}

}  // namespace

std::optional<Meaning> meaning_of(ObjectKind kind, std::string_view name) {
  const Row* row = row_of(kind, name);
  return row == nullptr ? std::nullopt : std::optional(row->meaning);
}

Result<ObjectKind> guess_kind(const std::vector<std::string>& names) {
  std::vector<ObjectKind> possible;
  for (int i = 0; i < kObjectKinds; ++i) {
    const auto kind = static_cast<ObjectKind>(i);
    if (std::all_of(names.begin(), names.end(), [kind](const std::string& name) {
          const Row* row = row_of(kind, name);
          return row != nullptr && row->typical;
        })) {
      possible.push_back(kind);
    }
  }
  // What a register can do, a cas-register does alike. Of the others, one with a name that no other
  // object has would have been found alone.
  if (possible.size() == 2 && possible[0] == K::kRegister && possible[1] == K::kCasRegister) {
    possible.pop_back();
  }
  // The same names, the same meaning, but for what an absent key holds: nothing is simpler.
  if (possible.size() == 2 && possible[0] == K::kMap && possible[1] == K::kKvAppend) {
    possible.pop_back();
  }
  if (possible.size() == 1) {
    return possible[0];
  }
  std::vector<std::string> kinds;
  kinds.reserve(possible.size());
  for (const ObjectKind kind : possible) {
    kinds.emplace_back(kind_name(kind));
  }
  return fail(ErrorKind::kMalformed,
              possible.empty()
                  ? fmt::format("no object is known with the operations {}; say which it is with "
                                "--object, or correct their names",
                                joined(names))
                  : fmt::format("the operations {} leave open which object it is ({}); say so with "
                                "--object",
                                joined(names), joined(kinds)));
}

}  // namespace tsomon::linearizability
