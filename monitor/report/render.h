// Results as reports for people and for other tools.
//
// Formats     Text. HTML: one page that needs nothing else. SARIF 2.1.0 (OASIS), for code hosts and editors. The trace
//             event format in JSON, which Perfetto and chrome://tracing show, and Perfetto's own one in protobuf: a process
//             for each finding, its threads, the witness step by step; the times are numbers of steps, as nobody has
//             measured any (picture.h). DOT, for Graphviz:
//             each finding's cycle. JUnit's XML, for CI: a test case for each question that was asked of an input, which
//             fails with what was found, is skipped where nothing can be said, and is an error where nothing was judged;
//             then one for each finding. NDJSON: a line for each finding.
// Names       They come from outside, and are escaped as each format wants it; control characters are shown as
//             printable() does.
// Errors      `out` has them in its state.
// Complexity  O(size) in time; memory that of one finding, besides the results. Thread-safety: none of `out`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "monitor/report/results.h"

namespace tsomon::report {

void write_text(const Results& results, std::ostream& out);
// `sources`: folders of source files that are quoted (source_folders.h). A page of many findings shows less of each, and
// ends at some 20 MB; it says what it leaves out.
void write_html(const Results& results, const std::vector<std::string>& sources, std::ostream& out);
// `version`: of tsomon.
void write_sarif(const Results& results, std::string_view version, std::ostream& out);
void write_perfetto(const Results& results, std::ostream& out);        // JSON
void write_perfetto_trace(const Results& results, std::ostream& out);  // protobuf
void write_dot(const Results& results, std::ostream& out);
void write_junit(const Results& results, std::ostream& out);
void write_ndjson(const Results& results, std::ostream& out);

// What happened in order, or at least the accesses: the witness, else every access once.
std::vector<Step> steps_of(const Finding& finding);
// The threads of the accesses and of the cycle, numbered in the order in which they come.
class Threads {
 public:
  explicit Threads(const Finding& finding);
  const std::vector<std::string>& names() const { return names_; }
  // Of one of them.
  size_t number(const std::string& name) const { return numbers_.at(name); }

 private:
  void add(const std::string& name);

  std::vector<std::string> names_;
  std::unordered_map<std::string, size_t> numbers_;
};
// The unit of the cycle that an access lies in; kNoUnit: none. By access.
inline constexpr size_t kNoUnit = SIZE_MAX;
std::vector<size_t> units_of(const Finding& finding);
// With the characters of markup escaped, for HTML and XML.
std::string markup(std::string_view text);
// "#7 store counter = 1", or "#7 commit counter" of a step that commits.
std::string step_text(const Access& access, const Step& step);

}  // namespace tsomon::report
