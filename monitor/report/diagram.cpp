#include "monitor/report/diagram.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "monitor/report/render.h"
#include "tso/support/printable.h"

namespace tsomon::report {
namespace {

constexpr size_t kTop = 34;       // of the names of the lanes
constexpr size_t kRow = 34;       // of a step, in pixels
constexpr size_t kCharacter = 7;  // of the small monospaced font
constexpr size_t kMostLabel = 44;
constexpr size_t kMostName = 20;
constexpr size_t kLeastLane = 110;
constexpr size_t kAxis = 28;  // of a lane, up to its line
constexpr size_t kMark = 40;  // of a lane, in front of its labels

// Where the rows that are shown stand; those of the gap stand nowhere.
class Layout {
 public:
  Layout(const Diagram& diagram, size_t most_rows) : diagram_(diagram) {
    const size_t count = diagram.rows.size();
    const size_t most = std::max<size_t>(most_rows, 4);
    if (count > most) {
      front_ = diagram.cut_front ? 0 : most - most / 3;
      back_ = count - (most - front_);
    } else {
      front_ = back_ = diagram.rows_before > 0 ? 0 : count;
    }
    lanes_ = std::min(diagram.lanes.size(), Diagram::kMostLanes);
    widths_.assign(lanes_, kLeastLane);
    label_widths_.assign(lanes_, 0);
    for (size_t i = 0; i < count; ++i) {
      if (shown(i)) {
        const Diagram::Row& row = diagram.rows[i];
        const size_t text =
            std::min(std::max(text_width(row.label), text_width(row.below)), kMostLabel);
        size_t& width = widths_[lane(row.lane)];
        width = std::max(width, kMark + text * kCharacter + 16);
      }
    }
    for (const Diagram::Bar& bar : diagram.bars) {
      // Two characters apart from the text of the rows.
      label_widths_[lane(bar.lane)] =
          std::max(label_widths_[lane(bar.lane)],
                   (std::min(text_width(bar.name), kMostName) + 2) * kCharacter);
    }
    for (size_t i = 0; i < lanes_; ++i) {
      widths_[i] += label_widths_[i];
    }
    for (const size_t width : widths_) {
      lefts_.push_back(width_);
      width_ += width;
    }
  }

  bool shown(size_t row) const { return row < front_ || row >= back_; }
  uint64_t hidden() const { return back_ - front_ + diagram_.rows_before; }
  size_t lane(size_t lane) const { return std::min(lane, lanes_ - 1); }
  size_t lanes() const { return lanes_; }
  size_t x(size_t lane_number) const { return lefts_[lane(lane_number)] + kAxis; }
  size_t left(size_t lane_number) const { return lefts_[lane_number]; }
  size_t lane_width(size_t lane_number) const { return widths_[lane_number]; }
  size_t y(size_t row) const {
    const size_t gap = hidden() > 0 ? 1 : 0;
    const size_t place = row < front_ ? row : row - back_ + front_ + gap;
    return kTop + place * kRow + kRow / 2;
  }
  size_t gap_y() const { return kTop + front_ * kRow + kRow / 2; }
  size_t width() const { return width_ + 4; }
  size_t height() const {
    return kTop + (front_ + diagram_.rows.size() - back_ + (hidden() > 0 ? 1 : 0)) * kRow + 6;
  }
  // The nearest rows that are shown, of these.
  std::optional<std::pair<size_t, size_t>> shown_part(size_t first, size_t last) const {
    if (!shown(first)) {
      first = back_;
    }
    if (!shown(last)) {
      if (front_ == 0) {
        return std::nullopt;
      }
      last = front_ - 1;
    }
    return first <= last && last < diagram_.rows.size() ? std::optional(std::pair(first, last))
                                                        : std::nullopt;
  }

 private:
  const Diagram& diagram_;
  size_t front_ = 0;  // rows in front of the gap
  size_t back_ = 0;   // the first one after it
  size_t lanes_ = 0;
  size_t width_ = 0;
  std::vector<size_t> widths_;
  std::vector<size_t> label_widths_;  // of the names of units
  std::vector<size_t> lefts_;
};

std::string lanes_svg(const Diagram& diagram, const Layout& layout) {
  std::string svg;
  for (size_t lane = 0; lane < layout.lanes(); ++lane) {
    const bool shared = lane + 1 == layout.lanes() && diagram.lanes.size() > layout.lanes();
    svg += fmt::format("<text class=\"lane\" x=\"{}\" y=\"20\">{}</text>", layout.left(lane) + 8,
                       shared ? "other threads" : clipped(diagram.lanes[lane], 24));
    svg += fmt::format("<path class=\"rail t{}\" d=\"M{} {}V{}\"/>\n", lane % 6, layout.x(lane),
                       kTop - 4, layout.height() - 4);
  }
  return svg;
}

std::string bars_svg(const Diagram& diagram, const Layout& layout) {
  std::string svg;
  for (const Diagram::Bar& bar : diagram.bars) {
    const auto part = layout.shown_part(bar.first, bar.last);
    if (part) {
      const size_t lane = layout.lane(bar.lane);
      const size_t top = layout.y(part->first) - kRow / 2 + 2;
      svg += fmt::format(
          "<rect class=\"unit t{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"5\">"
          "<title>{}</title></rect>\n",
          lane % 6, layout.left(lane) + 3, top, layout.lane_width(lane) - 8,
          layout.y(part->second) + kRow / 2 - 2 - top, clipped(bar.label, 200));
      svg += fmt::format("<text class=\"name\" x=\"{}\" y=\"{}\">{}</text>\n",
                         layout.left(lane) + layout.lane_width(lane) - 11, top + 13,
                         clipped(bar.name, kMostName));
    }
  }
  return svg;
}

std::string mark_svg(const Diagram::Row& row, size_t lane, size_t x, size_t y) {
  const std::string kind = fmt::format("t{}{}", lane % 6, row.marked ? " on" : "");
  switch (row.mark) {
    case Diagram::Mark::kCommit:
      return fmt::format("<path class=\"commit {}\" d=\"M{} {}l6 6l-6 6l-6 -6z\"/>", kind, x,
                         y - 6);
    case Diagram::Mark::kTurn:
      return fmt::format(
          "<rect class=\"turn {}\" x=\"{}\" y=\"{}\" width=\"8\" height=\"{}\" rx=\"3\"/>", kind,
          x - 4, y - kRow / 2 + 4, kRow - 8);
    case Diagram::Mark::kStep:
      break;
  }
  return fmt::format("<circle class=\"step {}\" cx=\"{}\" cy=\"{}\" r=\"5\"/>", kind, x, y);
}

std::string rows_svg(const Diagram& diagram, const Layout& layout) {
  std::string svg;
  for (size_t i = 0; i < diagram.rows.size(); ++i) {
    if (!layout.shown(i)) {
      continue;
    }
    const Diagram::Row& row = diagram.rows[i];
    const size_t lane = layout.lane(row.lane);
    const size_t x = layout.x(lane);
    const size_t y = layout.y(i);
    // From the store to its commit, beside the lane.
    if (row.issued_at != Diagram::kNone) {
      const size_t from = layout.shown(row.issued_at)
                              ? layout.y(row.issued_at)
                              : (layout.hidden() > 0 ? layout.gap_y() : y - kRow / 2);
      svg += fmt::format("<path class=\"late t{}\" d=\"M{} {}C{} {} {} {} {} {}\"/>", lane % 6, x,
                         from, x - 11, from + 10, x - 11, y - 10, x, y);
    }
    svg += fmt::format("<g><title>{}{}{}</title>{}", clipped(row.label, 200),
                       row.below.empty() ? "" : ", ", clipped(row.below, 300),
                       mark_svg(row, lane, x, y));
    svg +=
        fmt::format("<text class=\"what{}\" x=\"{}\" y=\"{}\">{}</text>", row.marked ? " on" : "",
                    x + 12, row.below.empty() ? y + 4 : y - 2, clipped(row.label, kMostLabel));
    if (!row.below.empty()) {
      svg += fmt::format("<text class=\"at\" x=\"{}\" y=\"{}\">{}</text>", x + 12, y + 11,
                         clipped(row.below, kMostLabel));
    }
    svg += "</g>\n";
  }
  if (layout.hidden() > 0) {
    svg += fmt::format("<text class=\"gap\" x=\"8\" y=\"{}\">... {} {} not shown ...</text>\n",
                       layout.gap_y() + 4, layout.hidden(),
                       diagram.rows_before > 0 || diagram.cut_front ? "earlier turns" : "steps");
  }
  return svg;
}

// Of the cycle, from mark to mark, with their numbers in the list of edges.
std::string arrows_svg(const Diagram& diagram, const Layout& layout, const std::string& id) {
  std::string svg;
  for (const Diagram::Arrow& arrow : diagram.arrows) {
    if (!layout.shown(arrow.from) || !layout.shown(arrow.to)) {
      continue;
    }
    const size_t from_lane = layout.lane(diagram.rows[arrow.from].lane);
    const size_t to_lane = layout.lane(diagram.rows[arrow.to].lane);
    const double x1 = static_cast<double>(layout.x(from_lane));
    const double x2 = static_cast<double>(layout.x(to_lane));
    const double y1 = static_cast<double>(layout.y(arrow.from));
    const double y2 = static_cast<double>(layout.y(arrow.to));
    const double bend = from_lane == to_lane ? -22 : 0;  // beside the lane
    const double length = std::max(std::hypot(x2 - x1, y2 - y1), 1.0);
    const double rest = bend == 0 ? 8 / length : 0;  // room for the marks
    const double ax = x1 + (x2 - x1) * rest;
    const double ay = y1 + (y2 - y1) * rest + (bend != 0 ? 6 : 0);
    const double bx = x2 - (x2 - x1) * rest;
    const double by = y2 - (y2 - y1) * rest - (bend != 0 ? 7 : 0);
    // Within a lane it bends beside it; across lanes it leaves and arrives level.
    const double across = bend == 0 ? (bx - ax) / 2 : bend;
    const double down = bend == 0 ? 0 : (by - ay) / 4;
    const double mx = (x1 + x2) / 2 + bend * 0.75;
    const double my = (y1 + y2) / 2;
    svg += fmt::format(
        "<g class=\"edge\"><title>{}</title><path marker-end=\"url(#{}h)\" "
        "d=\"M{:.0f} {:.0f}C{:.0f} {:.0f} {:.0f} {:.0f} {:.0f} {:.0f}\"/>"
        "<circle cx=\"{:.0f}\" cy=\"{:.0f}\" r=\"8\"/><text x=\"{:.0f}\" y=\"{:.0f}\">{}</text>"
        "</g>\n",
        clipped(arrow.label, 300), id, ax, ay, ax + across, ay + down,
        bx + (bend == 0 ? -across : across), by - down, bx, by, mx, my, mx, my + 4, arrow.number);
  }
  return svg;
}

}  // namespace

std::string clipped(std::string_view text, size_t most) {
  size_t bytes = 0;
  size_t characters = 0;
  while (bytes < text.size() && characters < most) {
    bytes += first_character(text.substr(bytes)).bytes;
    ++characters;
  }
  return bytes < text.size() ? markup(text.substr(0, bytes)) + "..." : markup(text);
}

std::string diagram_svg(const Diagram& diagram, size_t most_rows, const std::string& id) {
  if (diagram.rows.empty() || diagram.lanes.empty()) {
    return {};
  }
  const Layout layout(diagram, most_rows);
  std::string svg = fmt::format(
      "<svg role=\"img\" aria-labelledby=\"{0}t {0}d\" width=\"{1}\" height=\"{2}\" "
      "viewBox=\"0 0 {1} {2}\"><title id=\"{0}t\">{3}</title><desc id=\"{0}d\">{4}</desc>\n",
      id, layout.width(), layout.height(), clipped(diagram.title, 200),
      clipped(diagram.description, 1000));
  if (!diagram.arrows.empty()) {
    svg += fmt::format(
        "<defs><marker id=\"{}h\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
        "markerHeight=\"7\" orient=\"auto-start-reverse\"><path d=\"M0 0L8 4L0 8z\"/></marker>"
        "</defs>\n",
        id);
  }
  svg += lanes_svg(diagram, layout) + bars_svg(diagram, layout) + arrows_svg(diagram, layout, id) +
         rows_svg(diagram, layout);
  return svg + "</svg>";
}

}  // namespace tsomon::report
