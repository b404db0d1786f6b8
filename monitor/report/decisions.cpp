#include "monitor/report/decisions.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include <fmt/format.h>

#include "monitor/report/diagram.h"
#include "monitor/report/json_fields.h"

namespace tsomon::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostRaceText = 200;  // characters

std::string field_of(const Json& object, const char* access, const char* field) {
  const auto found = object.find(access);
  return found != object.end() && found->is_object() ? text_of(*found, field) : std::string();
}

// A race that was decided, and what may come after it.
struct DecisionNode {
  const Race* race = nullptr;    // nullptr: the root
  uint64_t count = 0;            // faulty interleavings below
  uint64_t ended = 0;            // of these, those in which no later race matters
  uint64_t left_out = 0;         // of these, those whose races are not shown
  std::vector<size_t> children;  // in the order of the sequences
};

class DecisionTree {
 public:
  explicit DecisionTree(const Decisions& decisions) : nodes_(1) {
    for (const RaceSequence& sequence : decisions.sequences) {
      add(sequence);
    }
  }

  std::string html() const {
    return "<ul class=\"decisions\">\n" + after_html(nodes_.front()) + "</ul>\n";
  }

 private:
  void add(const RaceSequence& sequence) {
    size_t at = 0;
    nodes_[at].count += sequence.count;
    for (const Race& race : sequence.races) {
      const auto known = children_.find({at, race});
      if (known == children_.end() && nodes_.size() == Decisions::kMostNodes) {
        nodes_[at].left_out += sequence.count;
        return;
      }
      if (known == children_.end()) {
        children_.emplace(std::pair(at, race), nodes_.size());
        nodes_[at].children.push_back(nodes_.size());
        at = nodes_.size();
        nodes_.emplace_back().race = &race;
      } else {
        at = known->second;
      }
      nodes_[at].count += sequence.count;
    }
    (sequence.cut ? nodes_[at].left_out : nodes_[at].ended) += sequence.count;
  }

  static std::string faulty_text(uint64_t count) {
    return fmt::format("{} faulty interleaving{}", count, count == 1 ? "" : "s");
  }

  static std::string access_html(const std::string& access, const std::string& at) {
    return fmt::format(
        "<code>{}</code>{}", clipped(access, kMostRaceText),
        at.empty() ? ""
                   : fmt::format(" <span class=\"place\">{}</span>", clipped(at, kMostRaceText)));
  }

  static std::string otherwise_html(const std::string& label) {
    const char* const kind = label == "W" ? "good" : label == "B" ? "bad" : "open";
    return fmt::format("<li class=\"{}\">the other way round: {}</li>\n", kind,
                       label == "W" ? "good, nothing goes wrong"
                       : label == "B"
                           ? "bad, it always goes wrong"
                           : clipped(label, kMostRaceText) + ", it depends on later races");
  }

  std::string node_html(const DecisionNode& node) const {
    return fmt::format(
        "<li><b>{}</b> {} before {} <span class=\"soft\">({})</span>\n<ul>\n{}{}</ul></li>\n",
        clipped(node.race->label, kMostRaceText),
        access_html(node.race->first, node.race->first_at),
        access_html(node.race->second, node.race->second_at), faulty_text(node.count),
        otherwise_html(node.race->otherwise), after_html(node));
  }

  // At most Decisions::kMostRaces deep.
  std::string after_html(const DecisionNode& node) const {
    std::string html;
    for (const size_t child : node.children) {
      html += node_html(nodes_[child]);
    }
    if (node.ended > 0) {
      html += fmt::format("<li class=\"bad\">bad, whatever comes later: {}</li>\n",
                          faulty_text(node.ended));
    }
    if (node.left_out > 0) {
      html += fmt::format("<li>... and more races of {}</li>\n", faulty_text(node.left_out));
    }
    return html;
  }

  std::vector<DecisionNode> nodes_;
  std::map<std::pair<size_t, Race>, size_t> children_;  // by parent and race
};

}  // namespace

Decisions decisions_of(const Json& object) {
  Decisions decisions;
  decisions.program = text_of(object, "program");
  decisions.model = text_of(object, "model");
  const Json& tree = object.contains("decided") ? object["decided"] : object;
  decisions.leaves = number_of(tree, "leaves");
  decisions.faulty = number_of(tree, "faulty");
  for_each_object(array_of(tree, "sequences"), [&](const Json& each) {
    RaceSequence sequence;
    sequence.count = number_of(each, "count");
    for_each_object(array_of(each, "races"), [&](const Json& race) {
      sequence.cut = sequence.races.size() == Decisions::kMostRaces;
      if (!sequence.cut) {
        sequence.races.push_back(
            {text_of(race, "label"), field_of(race, "first", "access"),
             field_of(race, "first", "location"), field_of(race, "second", "access"),
             field_of(race, "second", "location"), text_of(race, "otherwise")});
      }
    });
    decisions.sequences.push_back(std::move(sequence));
  });
  return decisions;
}

std::string decisions_html(const Decisions& decisions) {
  const uint64_t good = decisions.leaves - std::min(decisions.leaves, decisions.faulty);
  std::string html = fmt::format(
      "<details class=\"decided\" open><summary><h2>What decided in <code>{}</code></h2> <span "
      "class=\"soft\">{} good and {} faulty interleavings under {}</span></summary><div "
      "class=\"in scroll\" tabindex=\"0\" role=\"region\" aria-label=\"What decided\">\n",
      clipped(decisions.program, kMostRaceText), good, decisions.faulty,
      decisions.model == "tso" ? "TSO" : "SC");
  if (!decisions.sequences.empty()) {
    html +=
        "<p>The first race that matters comes first, below it the next one. G: this race decides. "
        "WG: one order is good, after the other one it may still go wrong. BG: one order is bad, "
        "after the other one all may still be well. GG: nothing is decided yet.</p>\n" +
        DecisionTree(decisions).html();
  }
  return html + "</div></details>\n";
}

}  // namespace tsomon::report
