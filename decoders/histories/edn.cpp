// Histories as Knossos reads them: maps of EDN with :process, :type, :f, :value and perhaps :key.
#include <algorithm>
#include <cctype>
#include <optional>
#include <string>

#include "decoders/histories/builder.h"

namespace tsomon::histories {
namespace {

constexpr int kMaxDepth = 64;

// What an operation's map says, as text where it is one word.
struct Entry {
  std::string process;
  std::string type;
  std::string function;
  Values key;
  Values value;
  bool nil_value = true;
};

class EdnReader {
 public:
  EdnReader(std::string_view text, const std::string& name) : rest_(text), builder_(name, text) {
    builder_.history().starts_nil = true;
    builder_.history().echoes_arguments = true;
  }

  Result<History> read() {
    while (true) {
      skip();
      if (rest_.empty()) {
        return builder_.take();
      }
      const char c = rest_.front();
      if (c == '[' || c == '(' || c == ']' || c == ')') {
        rest_.remove_prefix(1);  // around the whole
        continue;
      }
      const uint64_t line = line_;
      Entry entry;
      if (!read_map(&entry) || !apply(entry, line)) {
        return failed_ ? tl::unexpected<Error>(std::move(*failed_)) : builder_.error(line);
      }
    }
  }

 private:
  void skip() {
    while (!rest_.empty()) {
      const char c = rest_.front();
      if (c == ';') {
        rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
      } else if (c == ',' || std::isspace(static_cast<unsigned char>(c)) != 0) {
        line_ += c == '\n' ? 1 : 0;
        rest_.remove_prefix(1);
      } else {
        return;
      }
    }
  }

  bool wrong(const char* expected) {
    const std::string_view found = rest_.substr(0, std::min<size_t>(rest_.find('\n'), 60));
    failed_.emplace(
        builder_.error(line_, expected, rest_.empty() ? "the end of the input" : found).value());
    return false;
  }

  // A word, a keyword, a number or a string with its quotes.
  bool atom(std::string_view* text) {
    size_t size = 0;
    if (rest_.front() == '"') {
      for (size = 1; size < rest_.size() && rest_[size] != '"'; ++size) {
        line_ += rest_[size] == '\n' ? 1 : 0;
        size += rest_[size] == '\\' ? 1 : 0;
      }
      if (size >= rest_.size()) {
        return wrong("a closing quote");
      }
      ++size;
    } else {
      while (size < rest_.size() &&
             std::string_view(" \t\r\n,;()[]{}\"").find(rest_[size]) == std::string_view::npos) {
        ++size;
      }
      if (size == 0) {
        return wrong("a value");
      }
    }
    *text = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

  // Any value; the words in it, from left to right, whatever is around them.
  bool value(Values* values, int depth, bool* nil) {
    skip();
    if (rest_.empty() || depth > kMaxDepth) {
      return wrong(rest_.empty() ? "a value" : "values that are not nested as deeply");
    }
    const size_t kind = std::string_view("[({").find(rest_.front());
    if (kind == std::string_view::npos) {
      std::string_view word;
      if (!atom(&word)) {
        return false;
      }
      *nil = word == "nil";
      values->push_back(builder_.history().value_of(word.front() == ':' ? word.substr(1) : word));
      return true;
    }
    rest_.remove_prefix(1);
    *nil = false;
    const char end = "])}"[kind];
    while (true) {
      skip();
      if (rest_.empty()) {
        return wrong("the end of a list");
      }
      if (rest_.front() == end) {
        rest_.remove_prefix(1);
        return true;
      }
      bool ignored = false;
      if (!value(values, depth + 1, &ignored)) {
        return false;
      }
    }
  }

  bool word(std::string* text) {
    skip();
    std::string_view found;
    if (rest_.empty() || std::string_view("[({])}").find(rest_.front()) != std::string_view::npos) {
      return wrong("a keyword or a number");
    }
    if (!atom(&found)) {
      return false;
    }
    *text = found;
    return true;
  }

  bool read_map(Entry* entry) {
    if (rest_.front() != '{') {
      return wrong("a map {:process 0, :type :invoke, :f :read, :value nil}");
    }
    rest_.remove_prefix(1);
    while (true) {
      skip();
      if (rest_.empty()) {
        return wrong("'}'");
      }
      if (rest_.front() == '}') {
        rest_.remove_prefix(1);
        return true;
      }
      std::string key;
      if (!word(&key)) {
        return false;
      }
      Values ignored;
      bool nil = false;
      const bool read = key == ":process" ? word(&entry->process)
                        : key == ":type"  ? word(&entry->type)
                        : key == ":f"     ? word(&entry->function)
                        : key == ":value" ? value(&entry->value, 0, &entry->nil_value)
                        : key == ":key"   ? value(&entry->key, 0, &nil)
                                          : value(&ignored, 0, &nil);
      if (!read) {
        return false;
      }
    }
  }

  bool refuse(uint64_t line, const std::string& expected, std::string_view found) {
    failed_.emplace(builder_.error(line, expected, found).value());
    return false;
  }

  bool apply(const Entry& entry, uint64_t line) {
    if (entry.process.empty() || entry.type.empty()) {
      return refuse(line, "a map with :process and :type", "one without");
    }
    if (entry.process.front() == ':') {
      builder_.skip();  // the nemesis, and whoever else is no client
      return true;
    }
    const HistoryOperation* const open = builder_.open(entry.process);
    if (entry.type == ":invoke") {
      if (entry.function.size() < 2 || entry.function.front() != ':') {
        return refuse(line, "a map with :f", "one without");
      }
      if (open != nullptr) {
        return refuse(line, "a process without an open operation", entry.process);
      }
      Values arguments = entry.key;
      if (!entry.nil_value) {
        arguments.insert(arguments.end(), entry.value.begin(), entry.value.end());
      }
      return builder_.call(entry.process, "", std::string_view(entry.function).substr(1), arguments,
                           line);
    }
    if (entry.type != ":ok" && entry.type != ":fail" && entry.type != ":info") {
      return refuse(line, ":invoke, :ok, :fail or :info", entry.type);
    }
    if (open == nullptr) {
      return entry.type == ":info" || refuse(line, "the end of an open operation", entry.type);
    }
    if (entry.type == ":info") {
      builder_.crashed(entry.process);
      return true;
    }
    if (entry.type == ":fail") {
      builder_.failed(entry.process, line);
      return true;
    }
    return builder_.returned(entry.process, entry.value, line);
  }

  std::string_view rest_;
  uint64_t line_ = 1;
  HistoryBuilder builder_;
  std::optional<Error> failed_;
};

}  // namespace

Result<History> read_edn_history(std::string_view text, const std::string& name) {
  return EdnReader(text, name).read();
}

}  // namespace tsomon::histories
