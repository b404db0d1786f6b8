#include "offline/explore/clients.h"

#include <algorithm>
#include <set>
#include <tuple>

#include <doctest/doctest.h>

namespace {

using namespace tsomon::explore;

const std::vector<ClientOperation> kOperations = {
    {"push", true, {}}, {"pop", false, {}}, {"contains", false, {1, 2}}};
constexpr uint32_t kLetters = 4;

std::vector<ClientWord> words(uint32_t length) {
  std::vector<ClientWord> all = {{}};
  for (uint32_t i = 0; i < length; ++i) {
    std::vector<ClientWord> longer;
    for (const ClientWord& word : all) {
      for (uint32_t letter = 0; letter < kLetters; ++letter) {
        longer.push_back(word);
        longer.back().push_back(letter);
      }
    }
    all = longer;
  }
  return all;
}

using Key = std::tuple<ClientWord, std::vector<ClientWord>, ClientWord>;

// All clients, with the threads sorted.
void all_threads(uint32_t calls, uint32_t threads, std::vector<ClientWord>* made,
                 const ClientWord& before, const ClientWord& after, std::set<Key>* found) {
  if (threads == 0) {
    if (calls == 0) {
      std::vector<ClientWord> sorted = *made;
      std::sort(sorted.begin(), sorted.end());
      found->insert({before, sorted, after});
    }
    return;
  }
  for (uint32_t length = 1; length <= calls; ++length) {
    for (const ClientWord& word : words(length)) {
      made->push_back(word);
      all_threads(calls - length, threads - 1, made, before, after, found);
      made->pop_back();
    }
  }
}

std::set<Key> by_force(const ClientBounds& bounds, uint32_t calls) {
  std::set<Key> found;
  for (uint32_t threads = 1; threads <= bounds.threads; ++threads) {
    for (uint32_t before = 0; before <= (threads == 1 ? 0 : bounds.before); ++before) {
      for (uint32_t after = 0; after <= (threads == 1 ? 0 : bounds.after); ++after) {
        if (before + after + threads > calls) {
          continue;
        }
        for (const ClientWord& first : words(before)) {
          for (const ClientWord& last : words(after)) {
            std::vector<ClientWord> made;
            all_threads(calls - before - after, threads, &made, first, last, &found);
          }
        }
      }
    }
  }
  return found;
}

}  // namespace

TEST_CASE("Clients: all of a size, each once whatever the order of its threads") {
  for (const ClientBounds& bounds : {ClientBounds{4, 3, 0, 0}, ClientBounds{4, 2, 1, 2},
                                     ClientBounds{3, 3, 2, 1}, ClientBounds{4, 1, 1, 1}}) {
    for (uint32_t calls = 1; calls <= bounds.calls; ++calls) {
      CAPTURE(calls);
      std::set<Key> found;
      size_t visited = 0;
      CHECK(for_each_client(kOperations, bounds, calls, [&](const Client& client) {
        std::vector<ClientWord> sorted = client.threads;
        std::sort(sorted.begin(), sorted.end());
        found.insert({client.before, sorted, client.after});
        ++visited;
        return true;
      }));
      CHECK(visited == found.size());
      CHECK(found == by_force(bounds, calls));
    }
  }
}

TEST_CASE("Clients: visiting ends when asked") {
  size_t visited = 0;
  CHECK_FALSE(
      for_each_client(kOperations, {4, 2, 1, 1}, 4, [&](const Client&) { return ++visited < 7; }));
  CHECK(visited == 7);
}

TEST_CASE("Clients: their text numbers fresh values") {
  CHECK(client_text({{}, {{0, 1}, {0}}, {}}, kOperations) == "push(1) pop() | push(2)");
  CHECK(client_text({{0}, {{0, 2}, {3}}, {0}}, kOperations) ==
        "push(1); push(2) contains(1) | contains(2); push(3)");
  CHECK(client_text({{}, {{1}}, {1}}, kOperations) == "; pop(); pop()");
}
