#include "monitor/report/diagram.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

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
constexpr size_t kAxis = 28;   // of a lane, up to its line
constexpr size_t kLabel = 12;  // from there to the labels
constexpr size_t kTrack = 18;  // between rows, for an arrow that goes to another lane
constexpr size_t kSlot = 9;    // beside the line of a lane, for an arrow that goes up or down
constexpr size_t kSlots = 22;  // from the line of a lane to the first of them

// How an arrow goes from mark to mark without crossing a label, which are on the right of their marks: out on the left,
// beside the lane to a track between two rows, along it, and beside the other lane to its end.
struct Route {
  static constexpr size_t kNone = SIZE_MAX;

  size_t arrow = 0;
  size_t band = kNone;   // above which place the track is; kNone: it stays in its lane
  size_t track = 0;      // in the band
  size_t from_slot = 0;  // beside the lane that it comes from
  size_t to_slot = 0;    // beside the one that it leads to; where there is no track the same
};

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
    tracks_.assign(place(count) + 1, 0);
    slots_.resize(lanes_);
    for (size_t i = 0; i < diagram.arrows.size(); ++i) {
      if (shown(diagram.arrows[i].from) && shown(diagram.arrows[i].to)) {
        add_route(i);
      }
    }
    tracks_above_.assign(1, 0);
    for (const size_t tracks : tracks_) {
      tracks_above_.push_back(tracks_above_.back() + tracks);
    }
    measure_lanes();
  }

  bool shown(size_t row) const { return row < front_ || row >= back_; }
  uint64_t hidden() const { return back_ - front_ + diagram_.rows_before; }
  size_t lane(size_t lane) const { return std::min(lane, lanes_ - 1); }
  size_t lanes() const { return lanes_; }
  size_t x(size_t lane_number) const { return lefts_[lane(lane_number)] + axis(lane(lane_number)); }
  // Of a route beside a lane.
  size_t slot_x(size_t lane_number, size_t slot) const {
    return x(lane_number) - kSlots - slot * kSlot;
  }
  const std::vector<Route>& routes() const { return routes_; }
  size_t left(size_t lane_number) const { return lefts_[lane_number]; }
  size_t lane_width(size_t lane_number) const { return widths_[lane_number]; }
  size_t y(size_t row) const { return place_y(place(row)); }
  size_t gap_y() const { return place_y(front_); }
  size_t track_y(const Route& route) const {
    return kTop + route.band * kRow + (tracks_above_[route.band] + route.track) * kTrack +
           kTrack / 2;
  }
  size_t width() const { return width_ + 4; }
  size_t height() const {
    return kTop + place(diagram_.rows.size()) * kRow + tracks_above_.back() * kTrack + 6;
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
  // Of a row that is shown, or of the end: how many are above it, the gap among them.
  size_t place(size_t row) const {
    return row < front_ ? row : row - back_ + front_ + (hidden() > 0 ? 1 : 0);
  }
  size_t place_y(size_t place) const {
    return kTop + place * kRow + tracks_above_[place + 1] * kTrack + kRow / 2;
  }
  size_t axis(size_t lane) const {
    return slots_[lane].empty() ? kAxis : kSlots + slots_[lane].size() * kSlot + 4;
  }

  void add_route(size_t number) {
    const Diagram::Arrow& arrow = diagram_.arrows[number];
    const size_t from_lane = lane(diagram_.rows[arrow.from].lane);
    const size_t to_lane = lane(diagram_.rows[arrow.to].lane);
    const size_t from = place(arrow.from);
    const size_t to = place(arrow.to);
    Route route;
    route.arrow = number;
    // Rows are at odd heights, bands at the even ones above them.
    if (from_lane == to_lane) {
      route.from_slot = route.to_slot = take_slot(from_lane, 2 * from + 1, 2 * to + 1);
    } else {
      route.band = from < to ? from + 1 : from;
      route.track = tracks_[route.band]++;
      route.from_slot = take_slot(from_lane, 2 * from + 1, 2 * route.band);
      route.to_slot = take_slot(to_lane, 2 * route.band, 2 * to + 1);
    }
    routes_.push_back(route);
  }

  // The nearest one that is free from one height to the other.
  size_t take_slot(size_t lane, size_t a, size_t b) {
    const auto [low, high] = std::minmax(a, b);
    auto& slots = slots_[lane];
    size_t slot = 0;
    while (slot < slots.size() &&
           std::any_of(slots[slot].begin(), slots[slot].end(),
                       [&, low = low, high = high](const std::pair<size_t, size_t>& taken) {
                         return taken.first <= high && low <= taken.second;
                       })) {
      ++slot;
    }
    slots.resize(std::max(slots.size(), slot + 1));
    slots[slot].emplace_back(low, high);
    return slot;
  }

  void measure_lanes() {
    widths_.assign(lanes_, kLeastLane);
    std::vector<size_t> names(lanes_, 0);  // of units
    for (size_t i = 0; i < diagram_.rows.size(); ++i) {
      if (shown(i)) {
        const Diagram::Row& row = diagram_.rows[i];
        const size_t text =
            std::min(std::max(text_width(row.label), text_width(row.below)), kMostLabel);
        const size_t here = lane(row.lane);
        widths_[here] = std::max(widths_[here], axis(here) + kLabel + text * kCharacter + 16);
      }
    }
    for (const Diagram::Bar& bar : diagram_.bars) {
      // Two characters apart from the text of the rows.
      size_t& width = names[lane(bar.lane)];
      width = std::max(width, (std::min(text_width(bar.name), kMostName) + 2) * kCharacter);
    }
    for (size_t i = 0; i < lanes_; ++i) {
      lefts_.push_back(width_);
      widths_[i] += names[i];
      width_ += widths_[i];
    }
  }

  const Diagram& diagram_;
  size_t front_ = 0;  // rows in front of the gap
  size_t back_ = 0;   // the first one after it
  size_t lanes_ = 0;
  size_t width_ = 0;
  std::vector<Route> routes_;
  std::vector<size_t> tracks_;        // in each band
  std::vector<size_t> tracks_above_;  // in all bands above each
  // By lane and slot: from which height to which it is taken.
  std::vector<std::vector<std::vector<std::pair<size_t, size_t>>>> slots_;
  std::vector<size_t> widths_;
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
                    x + kLabel, row.below.empty() ? y + 4 : y - 2, clipped(row.label, kMostLabel));
    if (!row.below.empty()) {
      svg += fmt::format("<text class=\"at\" x=\"{}\" y=\"{}\">{}</text>", x + kLabel, y + 11,
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
  constexpr size_t kEdge = 4;  // of a mark, above or below its middle
  std::string svg;
  std::map<size_t, bool> leaves_below;  // by row
  for (const Route& route : layout.routes()) {
    const Diagram::Arrow& arrow = diagram.arrows[route.arrow];
    leaves_below.emplace(arrow.from, arrow.from < arrow.to);
  }
  for (const Route& route : layout.routes()) {
    const Diagram::Arrow& arrow = diagram.arrows[route.arrow];
    const bool down = arrow.from < arrow.to;
    // What arrives at a mark does not come in where another one leaves.
    const auto left = leaves_below.find(arrow.to);
    const bool from_below = left == leaves_below.end() ? !down : !left->second;
    const size_t from_lane = diagram.rows[arrow.from].lane;
    const size_t to_lane = diagram.rows[arrow.to].lane;
    const size_t from_y = down ? layout.y(arrow.from) + kEdge : layout.y(arrow.from) - kEdge;
    const size_t to_y = from_below ? layout.y(arrow.to) + kEdge : layout.y(arrow.to) - kEdge;
    const size_t from_x = layout.slot_x(from_lane, route.from_slot);
    const size_t to_x = layout.slot_x(to_lane, route.to_slot);
    const bool stays = route.band == Route::kNone;
    const size_t across = stays ? (from_y + to_y) / 2 : layout.track_y(route);
    const size_t middle = (from_x + to_x) / 2;
    svg += fmt::format(
        "<g class=\"edge\"><title>{}</title><path marker-end=\"url(#{}h)\" "
        "d=\"M{} {}H{}V{}H{}V{}H{}\"/>"
        "<circle cx=\"{}\" cy=\"{}\" r=\"8\"/><text x=\"{}\" y=\"{}\">{}</text></g>\n",
        clipped(arrow.label, 300), id, layout.x(from_lane) - 4, from_y, from_x, across, to_x, to_y,
        layout.x(to_lane) - 5, middle, across, middle, across + 4, arrow.number);
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
