// Puts calls and returns together to a History, for the readers of this folder.
//
// Nested calls of one process, of an object that is made of another, return innermost first.
// Complexity  O(1) a call or return, but for the lookup of names. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tso/model/history.h"
#include "tso/support/result.h"

namespace tsomon::histories {

using Values = std::vector<HistoryValue>;

class HistoryBuilder {
 public:
  // `text`: the whole input, whose lines say how much room to make.
  HistoryBuilder(std::string input, std::string_view text);

  History& history() { return history_; }

  // False: too many arguments, or too many events; message() says which.
  bool call(std::string_view process, std::string_view object, std::string_view operation,
            const Values& arguments, uint64_t line);
  // The innermost open operation of the process, or null.
  HistoryOperation* open(std::string_view process);
  // Of an open operation of the process.
  bool returned(std::string_view process, const Values& results, uint64_t line);
  void failed(std::string_view process, uint64_t line);
  // It stays pending; its process may call again.
  void crashed(std::string_view process);

  // An error at a line, from `wrong()` or from a function that returned false.
  tl::unexpected<Error> error(uint64_t line) const;
  tl::unexpected<Error> error(uint64_t line, const std::string& expected,
                              std::string_view found) const;
  // An entry of the input that is nobody's operation.
  void skip() { any_entry_ = true; }
  // The finished history; an error when the input had nothing of its kind.
  Result<History> take();

 private:
  bool event();
  uint32_t close(std::string_view process);

  std::string input_;
  History history_;
  std::vector<std::vector<uint32_t>> open_;  // by process
  std::string message_;
  bool any_entry_ = false;
};

// The text at the beginning up to the next line end, which is taken off, without '\r'.
std::string_view take_line(std::string_view* text);
std::string_view trimmed(std::string_view text);
// The next word, taken off together with the white space around it; empty at the end.
std::string_view take_word(std::string_view* text);
// "a, b" to values; commas inside of brackets and quotes do not separate. Nothing for "". The
// result is `values`, which keeps its memory.
const Values& values_of(std::string_view text, History* history, Values* values);

// One reader for each format; `text` as read_history().
Result<History> read_std_calls(std::string_view text, const std::string& name);
Result<History> read_etcd_log(std::string_view text, const std::string& name);
Result<History> read_edn_history(std::string_view text, const std::string& name);
Result<History> read_call_lines(std::string_view text, const std::string& name);
Result<History> read_interval_log(std::string_view text, const std::string& name);

}  // namespace tsomon::histories
