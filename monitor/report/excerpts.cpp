#include "monitor/report/excerpts.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "monitor/report/diagram.h"
#include "monitor/report/render.h"
#include "monitor/report/timeline.h"

namespace tsomon::report {
namespace {

constexpr uint64_t kAround = 3;    // lines
constexpr size_t kMostLine = 240;  // characters

struct LineMark {
  size_t lane = Diagram::kNone;
  std::string text;
};
// By line.
using MarkedLines = std::map<uint64_t, std::vector<LineMark>>;

// By file, in the order in which they come.
class MarkedFiles {
 public:
  void add(const Place& place, size_t lane, std::string text) {
    if (place.file.empty() || place.line == 0) {
      return;
    }
    auto found = std::find_if(files_.begin(), files_.end(),
                              [&](const auto& file) { return file.first == place.file; });
    if (found == files_.end()) {
      if (files_.size() == kMostExcerpts) {
        return;
      }
      files_.emplace_back(place.file, MarkedLines());
      found = std::prev(files_.end());
    }
    std::vector<LineMark>& marks = found->second[place.line];
    if (marks.size() < kMostMarks) {
      marks.push_back({lane, std::move(text)});
    }
  }
  const std::vector<std::pair<std::string, MarkedLines>>& files() const { return files_; }

 private:
  std::vector<std::pair<std::string, MarkedLines>> files_;
};

MarkedFiles marked_files(const Finding& finding) {
  MarkedFiles files;
  const std::vector<std::string> lanes = lanes_of(finding);
  for (const Access& access : finding.accesses) {
    files.add(access.place, lane_of(lanes, access.thread),
              fmt::format("{} #{} {}", access.thread, access.event, access.what));
  }
  for (const Place& place : finding.places) {
    files.add(place, Diagram::kNone, place.text);
  }
  return files;
}

std::string detabbed(std::string_view line) {
  std::string text;
  for (const char c : line) {
    if (c == '\t') {
      text.append(4, ' ');
    } else {
      text += c;
    }
  }
  return text;
}

std::string line_html(const SourceFolders::File& file, uint64_t number,
                      const std::vector<LineMark>* marks) {
  std::string html = fmt::format("<tr{}><th scope=\"row\">{}</th><td><code>{}</code></td><td>",
                                 marks != nullptr ? " class=\"hit\"" : "", number,
                                 clipped(detabbed(file.line(number)), kMostLine));
  for (size_t i = 0; marks != nullptr && i < marks->size(); ++i) {
    const LineMark& mark = (*marks)[i];
    html += fmt::format("<span class=\"by{}\">{}</span> ",
                        mark.lane == Diagram::kNone
                            ? ""
                            : fmt::format(" t{}", std::min(mark.lane, Diagram::kMostLanes - 1) % 6),
                        clipped(mark.text, 80));
  }
  return html + "</td></tr>\n";
}

std::string excerpt_html(const SourceFolders::File& file, const MarkedLines& lines, uint64_t first,
                         uint64_t last) {
  std::string html =
      fmt::format("<table class=\"source\"><caption>{}</caption>\n", clipped(file.path, 300));
  for (uint64_t line = first; line <= last; ++line) {
    const auto found = lines.find(line);
    html += line_html(file, line, found == lines.end() ? nullptr : &found->second);
  }
  return html + "</table>\n";
}

}  // namespace

std::vector<std::string> source_files_of(const Results& results) {
  std::set<std::string> files;
  for (const Finding& finding : results.findings()) {
    for (const Access& access : finding.accesses) {
      files.insert(access.place.file);
    }
    for (const Place& place : finding.places) {
      files.insert(place.file);
    }
  }
  return {files.begin(), files.end()};
}

std::string excerpts_html(const Finding& finding, SourceFolders* folders) {
  if (!folders->any()) {
    return {};
  }
  std::string html;
  size_t shown = 0;
  const MarkedFiles marked = marked_files(finding);
  for (const auto& [name, lines] : marked.files()) {
    const SourceFolders::File* const file = folders->find(name);
    if (file == nullptr) {
      html += fmt::format(
          "<p class=\"note\">{}: under the folders of --source there is no such file, or several "
          "fit.</p>\n",
          clipped(name, 300));
      continue;
    }
    const uint64_t count = file->lines.size();
    for (auto line = lines.begin(); line != lines.end() && shown < kMostExcerpts;) {
      if (line->first > count) {
        html += fmt::format("<p class=\"note\">{} has no line {}: it is another version.</p>\n",
                            clipped(file->path, 300), line->first);
        break;
      }
      const uint64_t first = line->first > kAround ? line->first - kAround : 1;
      uint64_t last = std::min(line->first + kAround, count);
      const uint64_t most = first + 60;
      // Lines that are near are in the same excerpt.
      for (++line; line != lines.end() && line->first <= std::min(last + kAround + 1, most) &&
                   line->first <= count;
           ++line) {
        last = std::min(line->first + kAround, count);
      }
      html += excerpt_html(*file, lines, first, last);
      ++shown;
    }
  }
  return html.empty() ? html : "<h4>Source</h4>\n" + html;
}

}  // namespace tsomon::report
