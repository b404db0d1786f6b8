#include "monitor/report/cycle_graph.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "monitor/report/diagram.h"
#include "monitor/report/timeline.h"
#include "tso/support/printable.h"

namespace tsomon::report {
namespace {

constexpr size_t kMostNodes = 10;
constexpr size_t kFirstNodes = 6;
constexpr size_t kMostWaits = 1'000;  // that are followed
constexpr size_t kBoxHeight = 40;
constexpr size_t kNodeStep = 84;      // from node to node
constexpr size_t kBoxLeft = 40;       // room for the way back
constexpr size_t kMostNodeText = 60;  // characters
constexpr size_t kTextWidth = 7;      // of one

// And the edge to the next one.
struct GraphNode {
  std::string label;
  std::string below;
  std::string edge;
};

std::vector<GraphNode> graph_nodes(const Finding& finding) {
  std::vector<GraphNode> nodes;
  for (const Unit& unit : finding.cycle) {
    nodes.push_back({unit_words(unit),
                     unit.first == unit.last ? fmt::format("#{}", unit.first)
                                             : fmt::format("#{} to #{}", unit.first, unit.last),
                     edge_words(finding, unit)});
  }
  if (!nodes.empty()) {
    return nodes;
  }
  // Threads, each of which waits for the next one.
  const auto find = [&](const std::string& thread) {
    return std::find_if(finding.waits.begin(), finding.waits.end(),
                        [&](const Wait& wait) { return wait.thread == thread; });
  };
  auto wait = finding.waits.begin();
  while (wait != finding.waits.end() && nodes.size() < std::min(finding.waits.size(), kMostWaits)) {
    nodes.push_back({"thread " + wait->thread, wait->place.text, "waits for " + wait->for_what});
    wait = find(wait->held_by);
  }
  const bool closed = wait != finding.waits.end() && wait == finding.waits.begin();
  return closed ? nodes : std::vector<GraphNode>();
}

}  // namespace

std::string cycle_svg(const Finding& finding, const std::string& id) {
  std::vector<GraphNode> nodes = graph_nodes(finding);
  if (nodes.empty()) {
    return {};
  }
  const size_t all = nodes.size();
  const bool cut = all > kMostNodes + 1;
  if (cut) {
    const GraphNode gap = {fmt::format("... {} more ...", all - kMostNodes), "", ""};
    nodes.erase(nodes.begin() + kFirstNodes,
                nodes.end() - static_cast<ptrdiff_t>(kMostNodes - kFirstNodes));
    nodes.insert(nodes.begin() + kFirstNodes, gap);
  }
  size_t box = 120;
  size_t text = 0;
  for (const GraphNode& node : nodes) {
    box = std::max({box, std::min(text_width(node.label), kMostNodeText) * kTextWidth + 24,
                    std::min(text_width(node.below), kMostNodeText) * kTextWidth + 24});
    text = std::max(text, std::min(text_width(node.edge), kMostNodeText + 60) * kTextWidth);
  }
  const size_t middle = kBoxLeft + std::min<size_t>(box / 2, 60);
  const size_t width = std::max(kBoxLeft + box, middle + 34 + text) + 8;
  const size_t height = (nodes.size() - 1) * kNodeStep + kBoxHeight + 44;
  std::string svg = fmt::format(
      "<svg role=\"img\" aria-labelledby=\"{0}t {0}d\" width=\"{1}\" height=\"{2}\" "
      "viewBox=\"0 0 {1} {2}\"><title id=\"{0}t\">{3}</title><desc id=\"{0}d\">A cycle of {4}; "
      "the list beside it says the same.</desc>\n"
      "<defs><marker id=\"{0}h\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
      "markerHeight=\"7\" orient=\"auto-start-reverse\"><path d=\"M0 0L8 4L0 8z\"/></marker>"
      "</defs>\n",
      id, width, height, finding.cycle.empty() ? "Who waits for whom" : "The conflict graph", all);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const GraphNode& node = nodes[i];
    const size_t y = i * kNodeStep + 4;
    svg += fmt::format(
        "<g class=\"node\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"6\"/>"
        "<text x=\"{}\" y=\"{}\">{}</text><text class=\"at\" x=\"{}\" y=\"{}\">{}</text></g>\n",
        kBoxLeft, y, box, kBoxHeight, kBoxLeft + 12, y + 17, clipped(node.label, kMostNodeText),
        kBoxLeft + 12, y + 32, clipped(node.below, kMostNodeText));
    const bool last = i + 1 == nodes.size();
    const size_t number = cut && i > kFirstNodes ? i + all - nodes.size() + 1 : i + 1;
    const std::string path =
        last ? fmt::format("M{} {}V{}H14V{}H{}", middle, y + kBoxHeight, y + kBoxHeight + 16,
                           4 + kBoxHeight / 2, kBoxLeft - 2)
             : fmt::format("M{} {}V{}", middle, y + kBoxHeight, y + kNodeStep - 2);
    svg += fmt::format("<g class=\"edge\"><path marker-end=\"url(#{}h)\" d=\"{}\"/>", id, path);
    if (!node.edge.empty()) {
      const size_t at = y + kBoxHeight + (last ? 17 : 22);
      svg += fmt::format(
          "<circle cx=\"{0}\" cy=\"{1}\" r=\"8\"/><text x=\"{0}\" y=\"{2}\">{3}</text>"
          "<text class=\"why\" x=\"{4}\" y=\"{2}\">{5}</text>",
          middle, at, at + 4, number, middle + 16, clipped(node.edge, kMostNodeText + 60));
    }
    svg += "</g>\n";
  }
  return svg + "</svg>";
}

}  // namespace tsomon::report
