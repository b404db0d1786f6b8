#include "offline/explore/clients.h"

#include <algorithm>
#include <utility>

namespace tsomon::explore {
namespace {

struct Letter {
  const ClientOperation* operation;
  int64_t argument;
};

std::vector<Letter> letters_of(const std::vector<ClientOperation>& operations) {
  std::vector<Letter> letters;
  for (const ClientOperation& operation : operations) {
    if (operation.arguments.empty()) {
      letters.push_back({&operation, 0});
    }
    for (const int64_t argument : operation.arguments) {
      letters.push_back({&operation, argument});
    }
  }
  return letters;
}

class Enumeration {
 public:
  Enumeration(size_t letters, const std::function<bool(const Client&)>& visit)
      : letters_(static_cast<uint32_t>(letters)), visit_(visit) {}

  bool shape(uint32_t before, const std::vector<uint32_t>& lengths, uint32_t after) {
    client_.before.assign(before, 0);
    client_.threads.clear();
    for (const uint32_t length : lengths) {
      client_.threads.emplace_back(length, 0);
    }
    client_.after.assign(after, 0);
    return fill_before(0);
  }

 private:
  bool fill_before(size_t at) {
    if (at == client_.before.size()) {
      return fill_thread(0, 0, false);
    }
    for (uint32_t letter = 0; letter < letters_; ++letter) {
      client_.before[at] = letter;
      if (!fill_before(at + 1)) {
        return false;
      }
    }
    return true;
  }

  // `above`: the thread's calls so far are above those of the one before it, whose length is the
  // same; until then they are not below.
  bool fill_thread(size_t thread, size_t at, bool above) {
    if (thread == client_.threads.size()) {
      return fill_after(0);
    }
    ClientWord& word = client_.threads[thread];
    if (at == word.size()) {
      return fill_thread(thread + 1, 0, false);
    }
    const bool alike = thread > 0 && client_.threads[thread - 1].size() == word.size() && !above;
    for (uint32_t letter = alike ? client_.threads[thread - 1][at] : 0; letter < letters_;
         ++letter) {
      word[at] = letter;
      const bool now = above || !alike || letter > client_.threads[thread - 1][at];
      if (!fill_thread(thread, at + 1, now)) {
        return false;
      }
    }
    return true;
  }

  bool fill_after(size_t at) {
    if (at == client_.after.size()) {
      return visit_(client_);
    }
    for (uint32_t letter = 0; letter < letters_; ++letter) {
      client_.after[at] = letter;
      if (!fill_after(at + 1)) {
        return false;
      }
    }
    return true;
  }

  const uint32_t letters_;
  const std::function<bool(const Client&)>& visit_;
  Client client_;
};

// The ways to share out `calls` among `threads`, each at least one, longer ones first.
bool for_each_split(uint32_t calls, uint32_t threads, uint32_t most, std::vector<uint32_t>* lengths,
                    const std::function<bool(const std::vector<uint32_t>&)>& visit) {
  if (threads == 0) {
    return calls != 0 || visit(*lengths);
  }
  for (uint32_t length = std::min(calls, most); length >= 1; --length) {
    lengths->push_back(length);
    const bool go_on = for_each_split(calls - length, threads - 1, length, lengths, visit);
    lengths->pop_back();
    if (!go_on) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool for_each_client(const std::vector<ClientOperation>& operations, const ClientBounds& bounds,
                     uint32_t calls, const std::function<bool(const Client&)>& visit) {
  Enumeration enumeration(letters_of(operations).size(), visit);
  for (uint32_t threads = 1; threads <= std::min(bounds.threads, calls); ++threads) {
    const uint32_t free = calls - threads;
    for (uint32_t before = 0; before <= (threads == 1 ? 0 : std::min(bounds.before, free));
         ++before) {
      for (uint32_t after = 0; after <= (threads == 1 ? 0 : std::min(bounds.after, free - before));
           ++after) {
        std::vector<uint32_t> lengths;
        if (!for_each_split(calls - before - after, threads, calls, &lengths,
                            [&](const std::vector<uint32_t>& split) {
                              return enumeration.shape(before, split, after);
                            })) {
          return false;
        }
      }
    }
  }
  return true;
}

std::string client_text(const Client& client, const std::vector<ClientOperation>& operations) {
  const std::vector<Letter> letters = letters_of(operations);
  int64_t fresh = 0;
  const auto word_text = [&](const ClientWord& word) {
    std::string text;
    for (const uint32_t call : word) {
      const ClientOperation& operation = *letters[call].operation;
      text += (text.empty() ? "" : " ") + operation.name + "(";
      text += operation.fresh               ? std::to_string(++fresh)
              : operation.arguments.empty() ? std::string()
                                            : std::to_string(letters[call].argument);
      text += ")";
    }
    return text;
  };
  std::string text;
  if (!client.before.empty() || !client.after.empty()) {
    text = word_text(client.before) + "; ";
  }
  for (size_t thread = 0; thread < client.threads.size(); ++thread) {
    text += (thread == 0 ? "" : " | ") + word_text(client.threads[thread]);
  }
  if (!client.after.empty()) {
    text += "; " + word_text(client.after);
  }
  return text;
}

}  // namespace tsomon::explore
