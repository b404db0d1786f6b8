#include "monitor/pack/make_pack.h"

#include <algorithm>
#include <ctime>
#include <deque>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "decoders/capture/chunks.h"
#include "decoders/perf/reader.h"
#include "monitor/events/mapped_input.h"
#include "monitor/input/open_events.h"
#include "monitor/process/debug_session.h"
#include "monitor/process/location_texts.h"
#include "monitor/process/module_files.h"
#include "monitor/process/packed_files.h"
#include "monitor/process/source_lines.h"
#include "monitor/process/symbols.h"
#include "tso/support/open_file.h"
#include "tso/support/printable.h"

namespace tsomon {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostCode = 1000;  // a reader has a descriptor for each

int64_t modified(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mtime : 0;
}

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) {
      const size_t colon = line.find(": ");
      return colon == std::string::npos ? "" : line.substr(colon + 2);
    }
  }
  return {};
}

class Packing {
 public:
  Packing(std::string path, const PackOptions& options)
      : path_(std::move(path)), options_(options) {}

  Result<PackReport> collect(const MemberSink& sink) {
    auto done = take_recording();
    done = done ? read_events() : done;
    if (!done) {
      Error error = done.error();
      error.input = path_;
      return tl::unexpected<Error>(std::move(error));
    }
    for (const capture::Module& module : modules_) {
      take_module(module);
    }
    report_.build = modules_.empty() ? std::string() : modules_.front().build_id;
    done = sink(kPackManifest, manifest_text(), std::time(nullptr));
    for (const Member& member : members_) {
      done = done ? sink(member.name, member.bytes(), member.modified) : done;
    }
    if (!done) {
      return tl::unexpected<Error>(done.error());
    }
    return std::move(report_);
  }

 private:
  struct Member {
    std::string name;
    int64_t modified = 0;
    MappedInput file;
    std::string text;  // where there is no file
    std::string_view bytes() const { return text.empty() ? file.view() : text; }
  };

  Result<void> take_recording() {
    struct stat status {};
    if (::stat(path_.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
      return fail(ErrorKind::kUnreadable,
                  "expected a file: what is in a pipe or a folder is not packed");
    }
    auto opened = open_input(path_);
    if (!opened) {
      return tl::unexpected<Error>(opened.error());
    }
    auto bytes = MappedInput::of(std::move(opened->descriptor), true);
    if (!bytes) {
      return tl::unexpected<Error>(bytes.error());
    }
    const std::string_view view = bytes->view();
    if (pack::looks_like_pack(view)) {
      return fail(ErrorKind::kMalformed, "expected a capture or perf.data, found a pack");
    }
    if (!capture::looks_like_capture(view) && !perf::looks_like_perf_data(view)) {
      return fail(ErrorKind::kMalformed, "expected a capture or perf.data");
    }
    format_ = capture::looks_like_capture(view) ? InputFormat::kCapture : InputFormat::kPerf;
    members_.push_back({kPackRecording, modified(path_), std::move(*bytes), {}});
    return {};
  }

  // Which files have code in them, and which source files the events lie in.
  Result<void> read_events() {
    SourceOptions how;
    how.format = format_;
    how.order = EventOrder::kInput;
    how.files = options_.search;
    auto source = open_events(path_, how);
    if (!source) {
      return tl::unexpected<Error>(source.error());
    }
    LocationTexts texts((*source)->modules(), options_.search);
    EventBlock block;
    for (;;) {
      const auto more = (*source)->next(block);
      if (!more) {
        return tl::unexpected<Error>(more.error());
      }
      if (!*more) {
        break;
      }
      texts.replace((*source)->symbols().locations, block);
    }
    report_.warnings = (*source)->warnings();
    std::set<std::pair<std::string, std::string>> known;
    for (const capture::Module& module : (*source)->modules()) {
      if (known.emplace(module.path, module.build_id).second) {
        modules_.push_back(module);
      }
    }
    take_sources(texts.places());
    return {};
  }

  void take_sources(const SourcePlaces& places) {
    std::map<std::string, const SourcePlace*> files;  // in the order of their names
    for (const auto& [text, place] : places) {
      used_.insert(place.module);
      if (!place.file.empty() && place.line > 0) {
        files.emplace(source_path(place), &place);
      }
    }
    uint64_t left = PackedFiles::kMostSourceBytes;
    for (const auto& [file, place] : files) {
      std::string text = options_.sources ? source_text(*place) : std::string();
      if (text.empty() || text.size() > left || report_.sources == SourceLines::kMostFiles) {
        continue;
      }
      left -= text.size();
      const std::string member = fmt::format("{}{}", kPackSources, report_.sources++);
      sources_.push_back({{"path", file}, {"member", member}, {"bytes", text.size()}});
      members_.push_back({member, modified(file), {}, std::move(text)});
    }
  }

  void miss(const capture::Module& module, const char* what, const std::string& why) {
    missing_.push_back({{"path", module.path},
                        {"build_id", build_id_text(module.build_id)},
                        {"what", what},
                        {"why", why}});
    const bool code = std::string_view(what) == "code";
    if (code || used_.count(module.path) != 0) {
      (code ? report_.missing : report_.notes)
          .push_back(fmt::format("{}: {}", printable(module.path), why));
    }
  }

  // False: it cannot be read, or is packed already.
  bool add_file(const std::string& member, const std::string& path, Json* entry) {
    Descriptor descriptor(open_regular_file(path));
    auto bytes = descriptor.is_open() ? MappedInput::of(std::move(descriptor), true)
                                      : fail(ErrorKind::kUnreadable, "");
    if (!bytes || bytes->view().empty()) {
      return false;
    }
    const bool debug = member.ends_with(".debug");
    (*entry)[debug ? "debug" : "code"] = member;
    (*entry)[debug ? "debug_bytes" : "code_bytes"] = bytes->view().size();
    if (taken_.insert(member).second) {
      ++(debug ? report_.debug : report_.code);
      members_.push_back({member, modified(path), std::move(*bytes), {}});
    }
    return true;
  }

  void take_module(const capture::Module& module) {
    const bool vdso = module.path == "[vdso]";
    if (!vdso && (module.path.empty() || module.path[0] != '/' || module.path.starts_with("//"))) {
      return;  // has no file
    }
    if (module.build_id.size() < 2) {
      if (!vdso) {
        miss(module, "code", "has no build-id: nobody knows whether it is what was recorded");
      }
      return;
    }
    const std::string member = build_id_path(module.build_id);
    const std::string code = find_code_file(module.path, module.build_id, options_.search);
    Json entry = {{"path", module.path}, {"build_id", build_id_text(module.build_id)}};
    if (taken_.size() >= kMostCode || code.empty() || !add_file(member, code, &entry)) {
      if (!vdso) {
        miss(module, "code",
             taken_.size() >= kMostCode ? fmt::format("one of more than {} files", kMostCode)
                                        : "no file with the recorded build-id is here");
      }
      return;
    }
    if (!vdso) {
      take_debug(module, code, member, &entry);
    }
    files_.push_back(std::move(entry));
  }

  void take_debug(const capture::Module& module, const std::string& code, const std::string& member,
                  Json* entry) {
    capture::Module found = module;
    found.file = code;
    const ModuleFiles files = find_module_files(found, options_.search);
    report_.notes.insert(report_.notes.end(), files.warnings.begin(), files.warnings.end());
    DebugSession session(files.debug);
    const int fd = open_regular_file(code);
    if (fd < 0 || session.open(files.name, fd) == nullptr) {
      return;
    }
    const DebugSession::Found debug = session.look();
    if (!debug.any) {
      miss(module, "debug", "no debug information is here: its code is named by functions alone");
    } else if (!debug.file.empty() && !add_file(member + ".debug", debug.file, entry)) {
      miss(module, "debug", fmt::format("{} cannot be read", debug.file));
    }
    if (debug.shared) {
      miss(module, "debug", "some of its debug information is in a file that others share (dwz)");
    }
  }

  std::string manifest_text() const {
    utsname kernel{};
    ::uname(&kernel);
    Json manifest = {
        {"schema", 1},
        {"tool", "tsomon pack"},
        {"version", options_.version},
        {"created", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
        {"machine", {{"kernel", kernel.release}, {"processor", processor()}}},
        {"capture",
         {{"member", kPackRecording},
          {"name", path_.substr(path_.rfind('/') + 1)},
          {"format", format_ == InputFormat::kCapture ? "capture" : "perf"},
          {"bytes", members_.front().bytes().size()}}},
        {"files", files_},
        {"sources", sources_},
        {"missing", missing_}};
    return manifest.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

  std::string path_;
  const PackOptions& options_;
  InputFormat format_ = InputFormat::kCapture;
  std::vector<capture::Module> modules_;
  std::set<std::string> used_;   // paths of modules that events lie in
  std::set<std::string> taken_;  // members with code and debugging information
  std::deque<Member> members_;   // the recording first
  Json files_ = Json::array();
  Json sources_ = Json::array();
  Json missing_ = Json::array();
  PackReport report_;
};

}  // namespace

Result<PackReport> collect_pack(const std::string& path, const PackOptions& options,
                                const MemberSink& sink) {
  return Packing(path, options).collect(sink);
}

Result<PackReport> make_pack(const std::string& path, const PackOptions& options,
                             const pack::Sink& sink) {
  pack::ArchiveWriter archive(sink);
  auto report = collect_pack(
      path, options, [&](const std::string& name, std::string_view bytes, int64_t modified) {
        return archive.add(name, bytes, modified);
      });
  if (report) {
    if (auto done = archive.finish(); !done) {
      return tl::unexpected<Error>(done.error());
    }
    report->bytes = archive.written();
  }
  return report;
}

}  // namespace tsomon
