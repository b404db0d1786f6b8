/* A concurrent object and its operations, for `tsomon explore --clients`.
 *
 *   #include <tsomon_client.h>
 *
 *   int main(int argc, char** argv) {
 *     return tsomon::Clients<Stack>("stack")
 *         .call("push", tsomon::kFresh, [](Stack& stack, int value) { stack.push(value); })
 *         .call("pop", [](Stack& stack) { return stack.pop(); })
 *         .main(argc, argv);
 *   }
 *
 * The text says what the object is for `--property linearizability` (stack, queue, set, map,
 * register ...); empty: only assertions, crashes and deadlocks are looked for. "sequential": it is
 * what it does itself when calls come one after the other, or what another class does, given as
 * Clients<Stack, Specification> with operations that take either ([](auto& stack, int value)). An operation takes nothing,
 * or one int: any of those that are listed, {1, 2}, or kFresh, which gives every call of a client a
 * value of its own, from 1 in the order of the text. It returns nothing, a bool, an integer, or a
 * std::optional of one, which is nil if it is empty.
 *
 * A client is a text: BEFORE; THREAD | THREAD ...; AFTER, each calls separated by spaces:
 *
 *   push(1); push(2) pop() | pop()
 *
 * BEFORE and AFTER are what the first thread calls before the others start and after they have
 * ended. `PROGRAM --client TEXT` runs one, `PROGRAM --operations` lists the calls. `PROGRAM
 * --specification` reads lines of calls, carries each out one after the other on a new
 * Specification, and writes a line of what they returned, separated by bars. Other arguments are
 * the program's own.
 *
 * One header by itself, so that an object needs nothing else to be explored.
 *
 * Each run makes one object, by default with no arguments; it is not destroyed. Needs C++17.
 */
#ifndef TSOMON_CLIENT_H
#define TSOMON_CLIENT_H

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <pthread.h>

#include "tsomon.h"

namespace tsomon {

struct Fresh {};
inline constexpr Fresh kFresh{};

namespace client_internal {

inline void put_result(char* text, size_t size, bool value) {
  std::snprintf(text, size, "%s", value ? "true" : "false");
}
template <typename T>
void put_result(char* text, size_t size, const T& value) {
  if constexpr (std::is_integral_v<T>) {
    std::snprintf(text, size, "%lld", static_cast<long long>(value));
  } else if (value.has_value()) {
    put_result(text, size, *value);
  } else {
    std::snprintf(text, size, "nil");
  }
}

struct Call {
  size_t operation;
  int argument;
};

}  // namespace client_internal

template <typename Object, typename Specification = Object>
class Clients {
 public:
  explicit Clients(
      const char* kind, std::function<Object*()> make = [] { return new Object; })
      : kind_(kind), make_(std::move(make)) {
    if constexpr (std::is_same_v<Object, Specification>) {
      make_specification_ = make_;
    } else {
      make_specification_ = [] { return new Specification; };
    }
  }

  template <typename Function>
  Clients& call(const char* name, Function function) {
    add(name, false, {}, [function](auto& object, int) mutable { return function(object); });
    return *this;
  }
  template <typename Function>
  Clients& call(const char* name, std::initializer_list<int> arguments, Function function) {
    add(name, false, arguments, function);
    return *this;
  }
  template <typename Function>
  Clients& call(const char* name, Fresh, Function function) {
    add(name, true, {}, function);
    return *this;
  }
  // What has to hold when all threads have ended.
  Clients& at_end(std::function<void(Object&)> check) {
    check_ = std::move(check);
    return *this;
  }

  // How the class of what the calls should return is made; by default with no arguments.
  Clients& specification(std::function<Specification*()> make) {
    make_specification_ = std::move(make);
    return *this;
  }

  int main(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      if (std::strcmp(argv[i], "--operations") == 0) {
        return list();
      }
      if (std::strcmp(argv[i], "--specification") == 0) {
        return serve();
      }
      if (std::strcmp(argv[i], "--client") == 0 && i + 1 < argc) {
        return parse(argv[i + 1]) ? run() : 2;
      }
    }
    std::fprintf(stderr, "%s: --operations, or --client 'push(1) | pop()'\n", argv[0]);
    return 2;
  }

 private:
  struct Operation {
    std::string name;
    bool fresh;
    std::vector<int> arguments;
    bool takes_argument;
    std::function<void(Object&, int, char*, size_t)> run;
    std::function<void(Specification&, int, char*, size_t)> specify;
  };
  using Calls = std::vector<client_internal::Call>;

  template <typename Function>
  void add(const char* name, bool fresh, std::initializer_list<int> arguments, Function function) {
    Operation operation{name, fresh, arguments, fresh || arguments.size() != 0, {}, {}};
    const auto run = [function](auto& object, int argument, char* text, size_t size) mutable {
      if constexpr (std::is_void_v<decltype(function(object, argument))>) {
        function(object, argument);
        text[0] = 0;
      } else {
        client_internal::put_result(text, size, function(object, argument));
      }
    };
    operation.run = run;
    operation.specify = run;
    operations_.push_back(std::move(operation));
  }

  void say(const std::string& line) {
    std::printf("%s\n", line.c_str());
    tsomon_outcome("%s", line.c_str());
  }
  int list() {
    say(std::string("object ").append(kind_));
    for (const Operation& operation : operations_) {
      std::string line = "operation ";
      line += operation.name;
      line += operation.fresh ? " fresh" : "";
      for (const int argument : operation.arguments) {
        line += ' ';
        line += std::to_string(argument);
      }
      say(line);
    }
    return 0;
  }

  // A line that goes on where the one before it ended uses the same object.
  int serve() {
    std::string line;
    Calls done;
    std::string results;
    Specification* object = nullptr;
    for (int c = std::getchar(); c != EOF; c = std::getchar()) {
      if (c != '\n') {
        line += static_cast<char>(c);
        continue;
      }
      Calls calls;
      const char* at = line.c_str();
      if (!parse_calls(&at, &calls) || *at != 0) {
        return 2;
      }
      bool continues = object != nullptr && done.size() <= calls.size();
      for (size_t i = 0; continues && i < done.size(); ++i) {
        continues =
            done[i].operation == calls[i].operation && done[i].argument == calls[i].argument;
      }
      if (!continues) {
        object = make_specification_();  // as in each run, it is not destroyed
        done.clear();
        results.clear();
      }
      for (size_t i = done.size(); i < calls.size(); ++i) {
        char text[64];
        operations_[calls[i].operation].specify(*object, calls[i].argument, text, sizeof text);
        results += i == 0 ? "" : "|";
        results += text;
      }
      done = std::move(calls);
      std::printf("%s\n", results.c_str());
      std::fflush(stdout);
      line.clear();
    }
    return 0;
  }

  bool wrong(const char* at) {
    std::fprintf(stderr, "--client: this is not a call: %s\n", at);
    return false;
  }
  // Calls up to the next bar, semicolon or end.
  bool parse_calls(const char** at, Calls* calls) {
    for (;;) {
      *at += std::strspn(*at, " ");
      if (**at == 0 || **at == '|' || **at == ';') {
        return true;
      }
      const size_t size = std::strcspn(*at, "(");
      size_t found = operations_.size();
      for (size_t i = 0; i < operations_.size(); ++i) {
        if (operations_[i].name == std::string(*at, size)) {
          found = i;
        }
      }
      if (found == operations_.size() || (*at)[size] != '(') {
        return wrong(*at);
      }
      char* end = nullptr;
      const int argument = static_cast<int>(std::strtol(*at + size + 1, &end, 10));
      if (*end != ')' || (end != *at + size + 1) != operations_[found].takes_argument) {
        return wrong(*at);
      }
      calls->push_back({found, argument});
      *at = end + 1;
    }
  }
  bool parse(const char* text) {
    std::vector<std::vector<Calls>> sections(1);
    for (const char* at = text;;) {
      sections.back().emplace_back();
      if (!parse_calls(&at, &sections.back().back())) {
        return false;
      }
      if (*at == ';') {
        sections.emplace_back();
      } else if (*at == 0) {
        break;
      }
      ++at;
    }
    const size_t threads = sections.size() == 1 ? 0 : 1;
    if (sections.size() > 3 || (threads == 1 && sections[0].size() != 1) ||
        (sections.size() == 3 && sections[2].size() != 1)) {
      return wrong(text);
    }
    before_ = threads == 1 ? sections[0][0] : Calls();
    after_ = sections.size() == 3 ? sections[2][0] : Calls();
    threads_ = sections[threads];
    return true;
  }

  void run_calls(const Calls& calls) {
    for (const client_internal::Call& call : calls) {
      const Operation& operation = operations_[call.operation];
      char text[64];
      if (operation.takes_argument) {
        tsomon_call("%s,%d", operation.name.c_str(), call.argument);
      } else {
        tsomon_call("%s", operation.name.c_str());
      }
      operation.run(*object_, call.argument, text, sizeof text);
      tsomon_return("%s", text);
    }
  }

  struct Started {
    Clients* clients;
    const Calls* calls;
  };
  static void* run_thread(void* argument) {
    const Started& started = *static_cast<Started*>(argument);
    started.clients->run_calls(*started.calls);
    return nullptr;
  }

  int run() {
    object_ = make_();
    run_calls(before_);
    // All that the threads read is there before the first of them starts.
    std::vector<Started> started;
    for (const Calls& calls : threads_) {
      started.push_back({this, &calls});
    }
    std::vector<pthread_t> handles(started.size());
    for (size_t i = 0; i < started.size(); ++i) {
      if (pthread_create(&handles[i], nullptr, run_thread, &started[i]) != 0) {
        return 2;
      }
    }
    for (const pthread_t handle : handles) {
      pthread_join(handle, nullptr);
    }
    run_calls(after_);
    if (check_) {
      check_(*object_);
    }
    return 0;
  }

  const std::string kind_;
  std::function<Object*()> make_;
  std::function<Specification*()> make_specification_;
  std::function<void(Object&)> check_;
  std::vector<Operation> operations_;
  Calls before_;
  std::vector<Calls> threads_;
  Calls after_;
  Object* object_ = nullptr;
};

}  // namespace tsomon

#endif /* TSOMON_CLIENT_H */
