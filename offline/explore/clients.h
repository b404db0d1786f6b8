// All clients of a concurrent object up to a size.
//
// Purpose     A client is a few calls: before the threads start, of each thread, after they have
//             ended. Whoever looks for the smallest client that goes wrong tries all, smallest
//             first.
// Symmetry    Threads are alike: of clients that differ in the order of their threads only the one
//             whose threads are sorted, longer ones first, is made. Values that every call has for
//             itself are numbered in the order of the text, so renaming them makes no other client.
//             One thread alone has no calls before or after it: they would be its own.
// Complexity  O(1) clients for each that is made: none is made to be thrown away.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tsomon::explore {

// What can be called.
struct ClientOperation {
  std::string name;
  bool fresh = false;              // its argument is a value that no other call has
  std::vector<int64_t> arguments;  // to try; none, and not fresh: it takes none
};

struct ClientBounds {
  uint32_t calls = 4;    // all together, at most
  uint32_t threads = 2;  // at most
  uint32_t before = 0;   // of the calls, at most
  uint32_t after = 0;
};

// A call by its number among those that operations and arguments make.
using ClientWord = std::vector<uint32_t>;
struct Client {
  ClientWord before;
  std::vector<ClientWord> threads;
  ClientWord after;
};

// Those with `calls` calls, fewer threads first. Ends early when visit() returns false; true: it
// did not.
bool for_each_client(const std::vector<ClientOperation>& operations, const ClientBounds& bounds,
                     uint32_t calls, const std::function<bool(const Client&)>& visit);

// "push(1); push(2) pop() | pop()".
std::string client_text(const Client& client, const std::vector<ClientOperation>& operations);

}  // namespace tsomon::explore
