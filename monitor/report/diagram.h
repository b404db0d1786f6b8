// A picture of what threads do, step below step: threads as lanes, units as bars, steps as marks.
//
// Purpose     The page shows witnesses, schedules and what was explored in one form, as SVG that needs nothing else.
//             Rows are steps: nobody has measured times.
// Bounds      At most kMostLanes lanes, the threads after these share the last one; at most `most_rows` rows, the
//             rest is cut in the middle, or in front, and the picture says so. Labels are cut.
// Complexity  O(size) in time; memory that of the text. Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tsomon::report {

struct Diagram {
  static constexpr size_t kMostLanes = 12;
  static constexpr size_t kNone = SIZE_MAX;

  enum class Mark : uint8_t { kStep, kCommit, kTurn };
  struct Row {
    size_t lane = 0;
    Mark mark = Mark::kStep;
    std::string label;
    std::string below;          // a second line, or empty
    bool marked = false;        // one of those that the finding is about
    size_t issued_at = kNone;   // row of the store that a commit is of
    size_t commits_at = kNone;  // row of the late commit of a store
  };
  struct Bar {
    size_t lane = 0;
    size_t first = 0;  // rows
    size_t last = 0;
    std::string label;
    std::string name;  // short
  };
  struct Arrow {
    size_t from = 0;  // rows
    size_t to = 0;
    size_t number = 0;  // in the list of edges, from 1
    std::string label;
  };

  std::string title;
  std::string description;
  std::vector<std::string> lanes;
  std::vector<Row> rows;
  std::vector<Bar> bars;
  std::vector<Arrow> arrows;
  uint64_t rows_before = 0;  // that are not in `rows`
  bool cut_front = false;    // the end matters most
};

// `id` is unique in the page. Empty: there is nothing to be seen.
std::string diagram_svg(const Diagram& diagram, size_t most_rows, const std::string& id);

// Not longer than `most` characters, with the markup escaped.
std::string clipped(std::string_view text, size_t most);

}  // namespace tsomon::report
