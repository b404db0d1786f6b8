// The witness of a cycle as a table: the steps of each thread below each other, and where the commits land between them.
#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "monitor/findings/cycle_text.h"
#include "monitor/findings/text_parts.h"
#include "tso/support/printable.h"

namespace tsomon {
namespace {

constexpr Fold kWitnessSteps{60, 20};
constexpr Fold kOthers{20, 0};
constexpr size_t kNumbers = 6;     // columns in front of the first thread's
constexpr size_t kBetween = 2;     // columns between two threads'
constexpr size_t kNarrowest = 16;  // a column that can still be read

struct TableRow {
  size_t number = 0;
  size_t column = 0;
  std::string text;
};

struct WitnessTable {
  std::vector<std::string> titles;  // of each column
  std::vector<TableRow> rows;
  std::string gap;  // the line where rows are left out
};

// What a commit writes.
std::string commit_text(const ReportedAccess& access) {
  return printable(shown_operand(access)) +
         (access.written ? fmt::format(" := {}", *access.written) : "");
}

// One column for each thread, the memory in the middle.
WitnessTable table_of(const ReportedCycle& cycle, const TextShape& shape) {
  const size_t size = cycle.witness.size();
  std::map<ThreadId, size_t> column;  // of the threads that are shown
  for (size_t i = 0; i < size; ++i) {
    if (!kWitnessSteps.hides(i, size, shape)) {
      column.emplace(cycle.accesses[cycle.witness[i].access].thread_id, 0);
    }
  }
  const size_t memory = (column.size() + 1) / 2;
  for (size_t next = 0; auto& [thread, place] : column) {
    place = next == memory ? next + 1 : next;
    next = place + 1;
  }
  WitnessTable table;
  table.titles.resize(column.size() + 1);
  table.titles[memory] = "memory";
  std::map<ThreadId, size_t> last_issued;
  for (size_t i = 0; i < size; ++i) {
    const ReportedCycle::WitnessStep& step = cycle.witness[i];
    const ReportedAccess& access = cycle.accesses[step.access];
    size_t& last = last_issued[access.thread_id];
    const bool late = step.commit && last != step.access;
    last = step.commit ? last : step.access;
    if (kWitnessSteps.hides(i, size, shape)) {
      table.gap = kWitnessSteps.line(size, "steps");
      continue;
    }
    table.titles[column[access.thread_id]] = printable(access.thread);
    table.rows.push_back({i + 1, step.commit ? memory : column[access.thread_id],
                          step.commit ? fmt::format("#{} {}{}", access.index, commit_text(access),
                                                    late ? ", late" : "")
                                      : fmt::format("#{} {}", access.index, access_text(access))});
  }
  return table;
}

// Broken at blanks; a word that is wider than that where it has to be. Requires width > 0.
std::vector<std::string> broken(std::string_view text, size_t width) {
  std::vector<std::string> lines(1);
  size_t used = 0;
  const auto next_line = [&] {
    lines.emplace_back();
    used = 0;
  };
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const size_t wide = text_width(word);
    if (used != 0 && used + 1 + wide > width) {
      next_line();
    } else if (used != 0) {
      lines.back() += ' ';
      ++used;
    }
    while (!word.empty()) {
      if (used == width) {
        next_line();
      }
      const size_t bytes = first_character(word).bytes;
      lines.back() += word.substr(0, bytes);
      word.remove_prefix(bytes);
      ++used;
    }
  }
  return lines;
}

// As wide as their texts, or all as wide as `room` together allows; empty: that is too narrow.
std::vector<size_t> column_widths(const WitnessTable& table, size_t width) {
  std::vector<size_t> widths;
  for (const std::string& title : table.titles) {
    widths.push_back(text_width(title));
  }
  for (const TableRow& row : table.rows) {
    widths[row.column] = std::max(widths[row.column], text_width(row.text));
  }
  if (width == 0) {
    return widths;
  }
  const size_t around = 2 + 4 + kBetween * widths.size();
  const auto fits = [&](size_t most) {
    size_t sum = around;
    for (const size_t each : widths) {
      sum += std::min(each, most);
    }
    return sum <= width;
  };
  size_t most = *std::max_element(widths.begin(), widths.end());
  while (most > kNarrowest && !fits(most)) {
    --most;
  }
  if (!fits(most)) {
    return {};
  }
  for (size_t& each : widths) {
    each = std::min(each, most);
  }
  return widths;
}

std::string number_text(size_t number) {
  return number == 0 ? std::string(kNumbers, ' ') : fmt::format("{:>{}}", number, kNumbers);
}

// A row, in as many lines as its longest cell.
std::string row_text(size_t number, const std::vector<std::string>& cells,
                     const std::vector<size_t>& widths) {
  std::vector<std::vector<std::string>> columns;
  size_t lines = 1;
  for (size_t at = 0; at < cells.size(); ++at) {
    columns.push_back(broken(cells[at], std::max<size_t>(1, widths[at])));
    lines = std::max(lines, columns.back().size());
  }
  std::string out;
  for (size_t i = 0; i < lines; ++i) {
    std::string line = number_text(i == 0 ? number : 0);
    for (size_t at = 0; at < cells.size(); ++at) {
      line += std::string(kBetween, ' ') +
              padded(i < columns[at].size() ? columns[at][i] : "", widths[at]);
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

// One step below the other, each with the thread that does it.
std::string listed_text(const WitnessTable& table, size_t width) {
  size_t widest = 0;
  for (const std::string& title : table.titles) {
    widest = std::max(widest, text_width(title));
  }
  const size_t taken = kNumbers + 2 * kBetween + widest;
  const size_t room = width >= taken + kNarrowest ? width - taken : kNarrowest;
  std::string out;
  size_t before = 0;
  for (const TableRow& row : table.rows) {
    out += row.number == before + 1 ? "" : table.gap;
    before = row.number;
    out += row_text(row.number, {table.titles[row.column], row.text}, {widest, room});
  }
  return out;
}

std::string table_text(const WitnessTable& table, size_t width) {
  const std::vector<size_t> widths = column_widths(table, width);
  if (widths.empty()) {
    return listed_text(table, width);
  }
  std::string out = row_text(0, table.titles, widths);
  size_t before = 0;
  for (const TableRow& row : table.rows) {
    out += row.number == before + 1 ? "" : table.gap;
    before = row.number;
    std::vector<std::string> cells(widths.size());
    cells[row.column] = row.text;
    out += row_text(row.number, cells, widths);
  }
  return out;
}

}  // namespace

std::string witness_text(const ReportedCycle& cycle, const TextShape& shape) {
  if (cycle.witness.empty()) {
    return {};
  }
  std::string out = "  witness, an execution with its commits:\n" +
                    table_text(table_of(cycle, shape), shape.width);
  const size_t size = cycle.others.size();
  for (size_t i = 0; i < size; ++i) {
    if (kOthers.hides(i, size, shape)) {
      out += i == kOthers.first ? kOthers.line(size, "events") : "";
      continue;
    }
    const ReportedAccess& access = cycle.accesses[cycle.others[i]];
    out += access_lines(access, "  ",
                        fmt::format("not of the cycle: {} ", printable(access.thread)), shape);
  }
  return out;
}

}  // namespace tsomon
