// `tsomon pack`: a recording with what reports on it need, for another machine.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoders/pack/archive.h"
#include "monitor/pack/make_pack.h"
#include "monitor/process/descriptor.h"
#include "tools/command.h"
#include "tools/files_option.h"
#include "tools/input_memory.h"
#include "tools/output.h"
#include "tools/stop_signals.h"
#include "tso/support/open_file.h"
#include "tso/support/printable.h"

namespace tsomon {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPackTool = "tsomon pack";

struct PackArguments {
  std::string input;
  std::string output;
  FileSearch search;
  bool no_sources = false;
};

tl::unexpected<Error> not_written(const std::string& path, const std::string& why) {
  return tl::unexpected<Error>(
      Error{ErrorKind::kEnvironment, path, {}, "cannot be written: " + why});
}

Result<void> write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(fd, bytes.data(), bytes.size());
    if (done < 0 && errno != EINTR) {
      return not_written(path, std::strerror(errno));
    }
    bytes.remove_prefix(done < 0 ? 0 : static_cast<size_t>(done));
  }
  return {};
}

// A file beside the one that is written, which takes its place when all is there.
class NewFile {
 public:
  static Result<std::unique_ptr<NewFile>> open(const std::string& path, const std::string& input) {
    std::error_code none;
    const fs::path target = fs::weakly_canonical(path, none);  // a link stays
    if (fs::exists(target, none)) {
      const auto refused = [&](const char* why) {
        return tl::unexpected<Error>(Error{ErrorKind::kUsage, path, {}, why});
      };
      if (!fs::is_regular_file(target, none)) {
        return refused("is no file: not overwritten");
      }
      if (fs::equivalent(target, input, none)) {
        return refused("is the input, too: not overwritten");
      }
      if (fs::file_size(target, none) != 0 && !is_pack(target.string())) {
        return refused("is not a pack: not overwritten");
      }
    }
    std::unique_ptr<NewFile> file(new NewFile(path, target.string()));
    file->descriptor_ = Descriptor(::mkostemp(file->temporary_.data(), O_CLOEXEC));
    if (!file->descriptor_.is_open()) {
      return not_written(path, std::strerror(errno));
    }
    const mode_t mask = ::umask(0);
    ::umask(mask);
    ::fchmod(file->descriptor_.get(), 0666 & ~mask);
    return file;
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (!kept_ && descriptor_.is_open()) {
      ::unlink(temporary_.c_str());
    }
  }

  Result<void> write(std::string_view bytes) { return write_all(descriptor_.get(), bytes, path_); }
  Result<void> keep() {
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
      return not_written(path_, std::strerror(errno));
    }
    kept_ = true;
    return {};
  }

 private:
  NewFile(std::string path, std::string target)
      : path_(std::move(path)), target_(std::move(target)), temporary_(target_ + ".XXXXXX") {}

  static bool is_pack(const std::string& path) {
    const Descriptor file(open_regular_file(path));
    char first[sizeof pack::kMagic] = {};
    return file.is_open() && ::read(file.get(), first, sizeof first) == sizeof first &&
           pack::looks_like_pack({first, sizeof first});
  }

  std::string path_;
  std::string target_;
  std::string temporary_;
  Descriptor descriptor_;
  bool kept_ = false;
};

int refuse(const Error& error) { return put_error(kPackTool, error); }

void describe(const std::string& output, const PackReport& report) {
  std::string text = fmt::format(
      "{}: {} bytes: the recording, {} files with code, {} of separate debug information, {} "
      "source "
      "files\n",
      printable(output), report.bytes, report.code, report.debug, report.sources);
  put_lines(stdout, text);
}

int write_pack(const PackArguments& options) {
  const bool standard = options.output == "-";
  const std::string output = options.output.empty() ? options.input + ".pack" : options.output;
  PackOptions asked;
  asked.version = TSOMON_VERSION;
  asked.search = options.search;
  asked.sources = !options.no_sources;
  std::unique_ptr<NewFile> file;
  if (!standard) {
    auto opened = NewFile::open(output, options.input);
    if (!opened) {
      return refuse(opened.error());
    }
    file = std::move(*opened);
  }
  auto report = make_pack(options.input, asked, [&](std::string_view bytes) {
    return standard ? write_all(STDOUT_FILENO, bytes, "<stdout>") : file->write(bytes);
  });
  if (!report) {
    return refuse(report.error());
  }
  if (file != nullptr) {
    if (auto kept = file->keep(); !kept) {
      return refuse(kept.error());
    }
    describe(output, *report);
  }
  put_messages(kPackTool, options.input, report->warnings);
  for (const std::string& missing : report->missing) {
    put_message(kPackTool, missing);
  }
  for (const std::string& note : report->notes) {
    put_message(kPackTool, note);
  }
  return report->missing.empty() ? kExitClean : kExitInconclusive;
}

int run_pack(const PackArguments& options) {
  const StopSignals signals;
  try {
    return within_memory_of({options.input}, [&] { return write_pack(options); });
  } catch (const WorkEnded& end) {
    put_message(kPackTool, fmt::format("{}: {}: not packed", options.input, end.what()));
    return kExitInconclusive;
  }
}

}  // namespace

void add_pack_command(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "pack", "Pack a capture or perf.data with its binaries, debug information and sources");
  auto options = std::make_shared<PackArguments>();
  command->add_option("FILE", options->input, "A capture or perf.data")
      ->required()
      ->option_text(" ");
  command
      ->add_option("-o", options->output,
                   "The pack to write (FILE.pack); - is standard output. Replaces a pack, nothing "
                   "else")
      ->option_text("PACK");
  command->add_flag("--no-sources", options->no_sources,
                    "Leave the source files out that recorded events lie in");
  add_files_options(*command, options->search);
  command->footer(
      "check, predict, explain, report and script read a pack as they read FILE, on any machine.\n"
      "tar --zstd -xf unpacks it.\n"
      "Exit status: 0 packed, also where debug information is missing; 2 bad usage or bad input;\n"
      "3 packed, but for files with code, or interrupted; 4 it could not be written.");
  command->callback([options, &exit_status] { exit_status = run_pack(*options); });
}

}  // namespace tsomon
