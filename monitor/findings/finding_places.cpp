#include "monitor/findings/finding_places.h"

#include <charconv>

namespace tsomon {
namespace {

void add_known(const std::string& name, std::vector<std::string>* names) {
  if (!name.empty()) {
    names->push_back(name);
  }
}

}  // namespace

SourceFrame frame_of_text(std::string_view text) {
  SourceFrame frame;
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return frame;
  }
  int line = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data() + colon + 1, end, line);
  if (read.ec != std::errc() || read.ptr != end || line < 0) {
    return frame;
  }
  const size_t space = text.rfind(' ', colon);
  const size_t begin = space == std::string_view::npos ? 0 : space + 1;
  frame.file = text.substr(begin, colon - begin);
  frame.line = line;
  if (space != std::string_view::npos) {
    frame.function = text.substr(0, space);
  }
  return frame;
}

void FindingPlaces::add(const SourcePlace& place) {
  if (place.function.empty() && place.file.empty()) {
    add_text(place.text);
  }
  add_known(place.function, &functions);
  add_known(place.file, &files);
  add_known(place.module, &modules);
  for (const SourceFrame& caller : place.callers) {
    add_known(caller.function, &functions);
    add_known(caller.file, &files);
  }
}

void FindingPlaces::add_text(std::string_view text) {
  const SourceFrame frame = frame_of_text(text);
  add_known(frame.function, &functions);
  add_known(frame.file, &files);
}

FindingPlaces places_of(const ReportedCycle& cycle) {
  FindingPlaces places;
  places.fingerprint = fingerprint(cycle);
  for (const ReportedStep& step : cycle.steps) {
    add_known(step.label, &places.units);
    places.add(cycle.accesses[step.from].place);
    if (step.to != step.from) {
      places.add(cycle.accesses[step.to].place);
    }
  }
  return places;
}

FindingPlaces places_of(const std::vector<ReportedAccess>& accesses) {
  FindingPlaces places;
  places.fingerprint = fingerprint(accesses);
  for (const ReportedAccess& access : accesses) {
    places.add(access.place);
  }
  return places;
}

}  // namespace tsomon
