#include <nlohmann/json.hpp>
#include <utility>

#include <fmt/format.h>

#include "monitor/explore/critical_races.h"
#include "tso/support/printable.h"

namespace tsomon::explore {
namespace {

using explain::CriticalRace;
using explain::CriticalRaces;
using explain::RaceLabel;

// "load" and where.
std::pair<std::string, std::string> access_and_place(const std::string& text) {
  const size_t end = text.find('\x1f');
  return {text.substr(0, end), end == std::string::npos ? "" : text.substr(end + 1)};
}

std::string labels_of(const CriticalRaces::Sequence& sequence) {
  std::string labels;
  for (const CriticalRace& race : sequence.races) {
    labels += labels.empty() ? "" : " ";
    labels += label_name(race.label);
  }
  return labels;
}

std::string access_text(const std::string& text) {
  const auto [access, place] = access_and_place(text);
  return fmt::format("{:16} {}", access, printable(place.empty() ? "?" : place));
}

const char* otherwise_text(RaceLabel label) {
  return label == RaceLabel::kGood  ? "W: nothing goes wrong"
         : label == RaceLabel::kBad ? "B: it always goes wrong"
                                    : "it depends on later races";
}

std::string sequence_text(const CriticalRaces::Sequence& sequence) {
  std::string text = fmt::format("sequence {}: {} faulty interleaving{}\n", labels_of(sequence),
                                 sequence.count, sequence.count == 1 ? "" : "s");
  for (const CriticalRace& race : sequence.races) {
    text += fmt::format("  {:5} {}\n", label_name(race.label), access_text(race.first));
    text += fmt::format("  |  \\_ {}: if it had come first, {}\n", access_text(race.second),
                        otherwise_text(race.otherwise));
  }
  return text + "  B\n";
}

nlohmann::ordered_json access_object(const std::string& text) {
  auto [access, place] = access_and_place(text);
  return {{"access", std::move(access)}, {"location", std::move(place)}};
}

}  // namespace

std::string races_text(const RacesExplored& explored, const ExploreOptions& options) {
  std::string text = fmt::format(
      "{}: interleavings under {}: {}, faulty: {}{}\n  nodes: {}, runs: {}\n",
      printable(explored.program), options.model == Model::kTso ? "TSO" : "SC",
      explored.races.leaves, explored.races.faulty,
      explored.complete() ? ", complete" : ", not complete", explored.races.nodes, explored.runs);
  for (const ExploreFinding& fault : explored.faults) {
    text += fmt::format("{}: {}\n", fault.kind, printable(fault.text));
    for (const std::string& location : fault.locations) {
      text += fmt::format("  at {}\n", printable(location));
    }
    text += fmt::format("  --replay '{}'\n", fault.schedule);
  }
  for (const CriticalRaces::Sequence& sequence : explored.races.sequences) {
    text += sequence_text(sequence);
  }
  for (const std::string& note : explored.notes) {
    text += fmt::format("not complete: {}\n", printable(note));
  }
  return text;
}

nlohmann::ordered_json decided_json(const RacesExplored& explored) {
  auto sequences = nlohmann::ordered_json::array();
  for (const CriticalRaces::Sequence& sequence : explored.races.sequences) {
    auto races = nlohmann::ordered_json::array();
    for (const CriticalRace& race : sequence.races) {
      races.push_back({{"label", label_name(race.label)},
                       {"first", access_object(race.first)},
                       {"second", access_object(race.second)},
                       {"otherwise", label_name(race.otherwise)}});
    }
    sequences.push_back(
        {{"labels", labels_of(sequence)}, {"count", sequence.count}, {"races", std::move(races)}});
  }
  return {{"leaves", explored.races.leaves},
          {"faulty", explored.races.faulty},
          {"root", label_name(explored.races.root)},
          {"nodes", explored.races.nodes},
          {"runs", explored.runs},
          {"complete", explored.complete()},
          {"sequences", std::move(sequences)}};
}

nlohmann::ordered_json races_json(const RacesExplored& explored, const ExploreOptions& options) {
  auto faults = nlohmann::ordered_json::array();
  for (const ExploreFinding& fault : explored.faults) {
    faults.push_back({{"kind", fault.kind},
                      {"text", fault.text},
                      {"locations", fault.locations},
                      {"schedule", fault.schedule},
                      {"steps", fault.steps}});
  }
  nlohmann::ordered_json json = {{"program", explored.program},
                                 {"model", options.model == Model::kTso ? "tso" : "sc"}};
  json.update(decided_json(explored));
  json["faults"] = std::move(faults);
  json["notes"] = explored.notes;
  json["seconds"] = explored.seconds;
  return json;
}

}  // namespace tsomon::explore
