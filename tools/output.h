// Everything that the subcommands write, for people and for programs.
//
// Purpose     The last net in front of a terminal: whatever a name, a path or a message
//             holds, what is written has no control characters but the ends of lines
//             (tso/support/printable.h). Names that stand inside a line have been
//             through printable() before; a line that a name forged would not be noticed
//             here.
// Thread-safety: as that of the streams.
#pragma once

#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/findings/text_shape.h"
#include "tso/support/result.h"

namespace tsomon {

struct ListedJson;

// Whole lines of a result, flushed.
void put_lines(FILE* file, std::string_view lines);
// Colours of what put_lines() writes to standard output: "always", "never", or "auto": on a terminal that has some, unless NO_COLOR
// is set (no-color.org).
void choose_colours(const std::string& when);
// For what is written to that file: COLUMNS, or the size of the window, where it is a terminal.
TextShape text_shape(FILE* file, bool verbose);
// One object on one line, flushed. `tool`: "tsomon check".
void put_json(FILE* file, const nlohmann::ordered_json& object, std::string_view tool);
void put_listed_json(FILE* file, const ListedJson& json, std::string_view tool);
// One line on standard error: "tsomon check: text". Newlines in the text are escaped, too.
void put_message(std::string_view tool, std::string_view text);

// Of an input, each on a line.
void put_messages(std::string_view tool, std::string_view input,
                  const std::vector<std::string>& texts);
// The same of an error; the exit status (command.h).
int put_error(std::string_view tool, const Error& error);
// An input that was not judged, where the results are JSON.
void put_error_json(const std::string& file, const std::string& property, const Error& error,
                    std::string_view tool);

}  // namespace tsomon
