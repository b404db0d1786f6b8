#include "monitor/process/packed_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "decoders/pack/archive.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr int kManifestDepth = 4;

Result<Descriptor> member_to_file(pack::ArchiveReader& archive) {
  auto file = temporary_file();
  if (!file) {
    return file;
  }
  for (uint64_t size = 0;;) {
    const auto bytes = archive.read();
    if (!bytes) {
      return tl::unexpected<Error>(bytes.error());
    }
    if (bytes->empty()) {
      return file;
    }
    if (auto written = write_at(*file, bytes->data(), bytes->size(), size); !written) {
      return tl::unexpected<Error>(written.error());
    }
    size += bytes->size();
  }
}

Result<std::string> member_to_memory(pack::ArchiveReader& archive) {
  std::string text;
  for (;;) {
    const auto bytes = archive.read();
    if (!bytes) {
      return tl::unexpected<Error>(bytes.error());
    }
    if (bytes->empty()) {
      return text;
    }
    text += *bytes;
  }
}

// What the manifest says is here, as pairs of a path and a member.
using Listed = std::vector<std::pair<std::string, std::string>>;

Listed listed(const nlohmann::json& manifest, const char* list, const char* member) {
  Listed found;
  const auto entries = manifest.find(list);
  if (entries == manifest.end() || !entries->is_array()) {
    return found;
  }
  for (const nlohmann::json& entry : *entries) {
    const bool whole = entry.is_object() && entry.contains("path") && entry.contains(member) &&
                       entry["path"].is_string() && entry[member].is_string();
    if (whole) {
      found.emplace_back(entry["path"].get<std::string>(), entry[member].get<std::string>());
    }
  }
  return found;
}

Result<nlohmann::json> parsed(const std::string& manifest) {
  using nlohmann::json;
  const auto shallow = [](int depth, json::parse_event_t, json&) {
    return depth <= kManifestDepth;
  };
  json all = json::parse(manifest, shallow, false);
  if (!all.is_object() || !all.contains("schema") || all["schema"] != 1) {
    return tl::unexpected<Error>(Error{ErrorKind::kMalformed,
                                       {},
                                       fmt::format("member '{}'", kPackManifest),
                                       "expected an object with \"schema\":1"});
  }
  return all;
}

}  // namespace

std::string build_id_path(std::string_view build_id) {
  std::string hex;
  for (const char byte : build_id) {
    hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return build_id.size() < 2 ? std::string()
                             : ".build-id/" + hex.substr(0, 2) + "/" + hex.substr(2);
}

std::string PackedFiles::named(const std::string& member) const {
  const auto file = files_.find(member);
  return file == files_.end() ? std::string() : fmt::format("/proc/self/fd/{}", file->second.get());
}

std::string PackedFiles::code_at(const std::string& path) const {
  const auto member = code_.find(path);
  return member == code_.end() ? std::string() : named(member->second);
}

std::shared_ptr<const std::string> PackedFiles::source(const std::string& path) const {
  static const auto none = std::make_shared<const std::string>();
  const auto found = sources_.find(path);
  return found == sources_.end() ? none : found->second;
}

Result<Unpacked> unpack(std::string_view bytes) {
  pack::ArchiveReader archive(bytes);
  auto files = std::make_shared<PackedFiles>();
  Unpacked unpacked;
  std::map<std::string, std::string> texts;  // of the manifest and of source files, by member
  uint64_t text_bytes = 0;
  pack::Member member;
  for (;;) {
    const auto more = archive.next(member);
    if (!more) {
      return tl::unexpected<Error>(more.error());
    }
    if (!*more) {
      break;
    }
    const bool manifest = member.name == kPackManifest;
    const bool recording = member.name == kPackRecording;
    const bool source = member.name.starts_with(kPackSources);
    const auto malformed = [&](const std::string& what) {
      return tl::unexpected<Error>(Error{ErrorKind::kMalformed, {}, member.place(), what});
    };
    if ((recording && unpacked.recording.is_open()) || texts.count(member.name) != 0 ||
        files->files_.count(member.name) != 0) {
      return malformed("is there twice");
    }
    if (manifest || source) {
      const uint64_t most =
          manifest ? PackedFiles::kMostManifestBytes : PackedFiles::kMostSourceBytes - text_bytes;
      if (member.size > most) {
        return malformed(fmt::format("{} bytes: expected at most {}", member.size, most));
      }
      text_bytes += source ? member.size : 0;
      more_input(member.size);
      auto text = member_to_memory(archive);
      if (!text) {
        return tl::unexpected<Error>(text.error());
      }
      texts.emplace(member.name, std::move(*text));
    } else if (recording || member.name.starts_with(".build-id/")) {
      auto file = member_to_file(archive);
      if (!file) {
        return tl::unexpected<Error>(file.error());
      }
      if (recording) {
        more_input(member.size);
        unpacked.recording = std::move(*file);
      } else {
        files->files_.emplace(member.name, std::move(*file));
      }
    }  // else a later version's
  }
  if (texts.count(kPackManifest) == 0 || !unpacked.recording.is_open()) {
    return fail(ErrorKind::kMalformed, fmt::format("expected a pack with the members {} and {}",
                                                   kPackManifest, kPackRecording));
  }
  const auto manifest = parsed(texts[kPackManifest]);
  if (!manifest) {
    return tl::unexpected<Error>(manifest.error());
  }
  for (auto& [path, name] : listed(*manifest, "files", "code")) {
    files->code_.emplace(path, name);
  }
  for (auto& [path, name] : listed(*manifest, "sources", "member")) {
    if (const auto text = texts.find(name); text != texts.end() && name != kPackManifest) {
      files->sources_[path] = std::make_shared<const std::string>(text->second);
    }
  }
  unpacked.files = std::move(files);
  return unpacked;
}

}  // namespace tsomon
