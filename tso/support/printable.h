// Text from outside, made safe to show in a line of a report or a message.
//
// Purpose     Labels, names of threads, files and symbols, and messages that quote them
//             may hold any bytes. Shown as they are, they could move the cursor, change
//             the title of a terminal, or look like lines of the report that they stand
//             in.
// Escaped     Control characters (C0, DEL, C1), line and paragraph separators, the marks that turn
//             the direction of text, and bytes that are not UTF-8: each byte becomes `\xHH`. All
//             else stays as it is, the backslash too, so that escaping twice changes nothing.
// Complexity  O(length). Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tsomon {

struct Character {
  uint32_t code = 0;
  size_t bytes = 1;
  bool harmful = true;  // it is escaped
};
// The one that a text, which is not empty, begins with; a byte that is not UTF-8 is harmful.
Character first_character(std::string_view text);

// For a place inside a line: a newline or a tab is escaped, too.
std::string printable(std::string_view text);

// Of whole lines: newlines and tabs stay. What a line quotes has been through printable().
std::string printable_lines(std::string_view text);

// Of JSON as a serialiser writes it, which escapes no more than JSON asks for: DEL, C1, separators
// and direction marks become \uHHHH. Requires UTF-8; the value stays the same.
std::string printable_json(std::string_view json);

// What a terminal takes for columns: the number of characters of UTF-8 text.
size_t text_width(std::string_view text);

}  // namespace tsomon
