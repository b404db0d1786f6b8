#include "monitor/fleet/submission.h"

#include <utility>

#include <sys/stat.h>

#include "decoders/capture/chunks.h"
#include "decoders/pack/archive.h"
#include "decoders/perf/reader.h"
#include "monitor/events/mapped_input.h"
#include "monitor/fleet/contents.h"
#include "monitor/pack/make_pack.h"
#include "monitor/process/module_files.h"
#include "monitor/service/system_time.h"
#include "tso/support/printable.h"

namespace tsomon::fleet {
namespace {

tl::unexpected<Error> of_file(Error error, const std::string& path) {
  if (error.input.empty()) {
    error.input = printable(path);
  }
  return tl::unexpected<Error>(std::move(error));
}

Result<void> send_pack(std::string_view bytes, ContentSender* sender, Content* content) {
  pack::ArchiveReader archive(bytes);
  pack::Member member;
  for (;;) {
    const auto more = archive.next(member);
    if (!more) {
      return error_of(more);
    }
    if (!*more) {
      return {};
    }
    std::string whole;
    for (;;) {
      const auto piece = archive.read();
      if (!piece) {
        return error_of(piece);
      }
      if (piece->empty()) {
        break;
      }
      whole += *piece;
    }
    auto part = sender->send(member.name, whole, member.modified);
    if (!part) {
      return error_of(part);
    }
    content->parts.push_back(std::move(*part));
  }
}

Result<void> send_recording(const std::string& path, const SubmissionOptions& options,
                            ContentSender* sender, Content* content, Submitted* submitted) {
  PackOptions asked;
  asked.version = options.version;
  asked.search = options.search;
  asked.sources = options.sources;
  const auto packed = collect_pack(
      path, asked,
      [&](const std::string& name, std::string_view bytes, int64_t modified) -> Result<void> {
        auto part = sender->send(name, bytes, modified);
        if (!part) {
          return error_of(part);
        }
        content->parts.push_back(std::move(*part));
        return {};
      });
  if (!packed) {
    return error_of(packed);
  }
  content->build = packed->build.empty() ? std::string() : build_id_text(packed->build);
  for (const auto* list : {&packed->missing, &packed->notes}) {
    submitted->notes.insert(submitted->notes.end(), list->begin(), list->end());
  }
  return {};
}

}  // namespace

Result<Submitted> submit(Fleet& fleet, const std::string& path, const SubmissionOptions& options,
                         bool again) {
  auto opened = open_input(path);
  if (!opened) {
    return of_file(opened.error(), path);
  }
  const bool regular = opened->regular;
  const auto bytes = MappedInput::of(std::move(opened->descriptor), regular);
  if (!bytes) {
    return of_file(bytes.error(), path);
  }
  Submitted submitted;
  Work work;
  work.tenant = options.tenant;
  work.host = options.host;
  work.submitted = service::now_in_microseconds();
  work.content.name = path.substr(path.rfind('/') + 1);
  ContentSender sender(fleet);
  Result<void> done;
  const std::string_view view = bytes->view();
  if (pack::looks_like_pack(view)) {
    work.content.packed = true;
    done = send_pack(view, &sender, &work.content);
  } else if (regular && (capture::looks_like_capture(view) || perf::looks_like_perf_data(view))) {
    work.content.packed = true;
    done = send_recording(path, options, &sender, &work.content, &submitted);
  } else {
    auto part = sender.send("", view, 0);
    if (part) {
      work.content.parts.push_back(std::move(*part));
    } else {
      done = error_of(part);
    }
  }
  done = done ? sender.finish() : done;
  if (!done) {
    return of_file(done.error(), path);
  }
  for (const Question& question : options.questions) {
    work.question = question;
    work.id = id_of(work.content, question);
    const auto before = fleet.put(work, again);
    if (!before) {
      return of_file(before.error(), path);
    }
    for (uint64_t number = 1; again && *before == State::kParked && number <= parts_of(question);
         ++number) {
      if (const auto part = fleet.put(part_of(work, number), true); !part) {
        return of_file(part.error(), path);
      }
    }
    submitted.work.emplace_back(work.id, *before);
  }
  submitted.bytes = work.content.bytes();
  submitted.sent = sender.sent();
  return submitted;
}

}  // namespace tsomon::fleet
