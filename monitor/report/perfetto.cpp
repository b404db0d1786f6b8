// The trace event format, in JSON.
#include <fmt/format.h>

#include "monitor/findings/result_json.h"
#include "monitor/report/json_list.h"
#include "monitor/report/picture.h"
#include "monitor/report/render.h"

namespace tsomon::report {
namespace {

using Json = nlohmann::ordered_json;

class EventWriter {
 public:
  explicit EventWriter(JsonList* events) : events_(*events) {}

  void add(const Finding& finding) {
    const Picture picture = picture_of(finding, ++process_);
    add_name("process_name", 0, picture.name);
    events_.add({{"name", "process_sort_index"},
                 {"ph", "M"},
                 {"pid", process_},
                 {"tid", 0},
                 {"args", {{"sort_index", process_}}}});
    for (size_t i = 0; i < picture.tracks.size(); ++i) {
      add_name("thread_name", i + 1, picture.tracks[i]);
    }
    for (const Slice& slice : picture.slices) {
      add_slice(slice);
    }
    for (const Arrow& arrow : picture.arrows) {
      ++edge_;
      add_end("s", arrow.name, picture.slices[arrow.from]);
      add_end("f", arrow.name, picture.slices[arrow.to]);
    }
  }

 private:
  void add_name(const char* what, uint64_t thread, const std::string& text) {
    events_.add({{"name", what},
                 {"ph", "M"},
                 {"pid", process_},
                 {"tid", thread},
                 {"args", {{"name", text}}}});
  }

  void add_slice(const Slice& slice) {
    Json arguments = Json::object();
    if (slice.kind != Slice::Kind::kUnit) {
      arguments["at"] = slice.place;
    }
    for (const auto& [name, number] : slice.numbers) {
      arguments[name] = number;
    }
    events_.add({{"name", slice.name},
                 {"cat", fmt::format("tsomon,{}", category_of(slice.kind))},
                 {"ph", "X"},
                 {"pid", process_},
                 {"tid", slice.track + 1},
                 {"ts", slice.begin},
                 {"dur", slice.end - slice.begin},
                 {"args", std::move(arguments)}});
  }

  // Of an arrow, in the middle of its slice.
  void add_end(const char* phase, const std::string& text, const Slice& slice) {
    Json event = {{"name", text},
                  {"cat", "cycle"},
                  {"ph", phase},
                  {"id", edge_},
                  {"pid", process_},
                  {"tid", slice.track + 1},
                  {"ts", (slice.begin + slice.end) / 2}};
    if (*phase == 'f') {
      event["bp"] = "e";  // in the slice around it
    }
    events_.add(event);
  }

  JsonList& events_;
  size_t process_ = 0;
  uint64_t edge_ = 0;
};

}  // namespace

void write_perfetto(const Results& results, std::ostream& out) {
  std::string head = json_line({{"displayTimeUnit", "ns"}}, "tsomon report");
  head.pop_back();  // the object goes on
  out << head << R"(,"traceEvents":)";
  JsonList events(&out);
  EventWriter writer(&events);
  for (const Finding& finding : results.findings()) {
    writer.add(finding);
  }
  events.end();
  out << "}\n";
}

}  // namespace tsomon::report
