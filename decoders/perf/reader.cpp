#include "decoders/perf/reader.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "decoders/perf/cursor.h"
#include "decoders/perf/inflate.h"

namespace tsomon::perf {

namespace {

constexpr size_t kMaxProblems = 16;

struct Section {
  uint64_t offset = 0;
  uint64_t size = 0;
};

Section take_section(Cursor& in) {
  Section section;
  section.offset = in.take<uint64_t>();
  section.size = in.take<uint64_t>();
  return section;
}

uint64_t magic_of(std::string_view bytes) { return Cursor(bytes).take<uint64_t>(); }

}  // namespace

bool looks_like_perf_data(std::string_view bytes) {
  const uint64_t magic = magic_of(bytes);
  return magic == kMagic || magic == kMagicSwapped || magic == kMagicOld;
}

class Reader::Impl {
 public:
  explicit Impl(std::string_view bytes) : bytes_(bytes) {}

  Result<void> start() {
    const uint64_t magic = magic_of(bytes_);
    if (magic == kMagicSwapped) {
      return fail(ErrorKind::kMalformed,
                  "perf.data of a big-endian machine; only little-endian ones are read: x86-64 "
                  "programs are recorded there");
    }
    if (magic == kMagicOld) {
      return fail(ErrorKind::kMalformed,
                  "perf.data in the format before Linux 2.6.39; record again with a newer perf");
    }
    if (magic != kMagic) {
      return fail(ErrorKind::kMalformed,
                  bytes_.empty() ? "the file is empty; expected a perf.data"
                                 : "expected a perf.data, which begins with \"PERFILE2\"");
    }
    Cursor in(bytes_.substr(sizeof kMagic));
    const auto header_size = in.take<uint64_t>();
    if (header_size == kPipeHeaderSize) {
      info_.pipe = true;
      at_ = kPipeHeaderSize;
      end_ = bytes_.size();
      return {};
    }
    if (bytes_.size() < kFileHeaderSize) {
      return fail(ErrorKind::kMalformed,
                  fmt::format("the header of the perf.data is cut off: it has {} of {} bytes",
                              bytes_.size(), kFileHeaderSize));
    }
    if (header_size < kFileHeaderSize) {
      return fail(ErrorKind::kMalformed,
                  fmt::format("byte 8: a perf.data header of {} bytes; expected {}, or {} of what "
                              "perf wrote into a pipe",
                              header_size, kFileHeaderSize, kPipeHeaderSize));
    }
    read_file_header(in);
    return {};
  }

  bool next(Record& record) {
    for (;;) {
      record = Record();
      if (block_ != nullptr && next_of_block(record)) {
        if (accept(record)) {
          return true;
        }
        continue;
      }
      if (!next_of_file(record)) {
        return false;
      }
      if (record.type == RecordType::kCompressed || record.type == RecordType::kCompressed2) {
        start_block(record);
      } else if (accept(record)) {
        return true;
      }
    }
  }

  FileInfo info_;
  std::vector<std::string> problems_;
  std::map<uint32_t, uint64_t> unknown_;

 private:
  void problem(uint64_t offset, const std::string& what) {
    if (problems_.size() < kMaxProblems) {
      problems_.push_back(fmt::format("byte {}: {}", offset, what));
    } else if (problems_.size() == kMaxProblems) {
      problems_.emplace_back("more is wrong that is not listed");
    }
  }

  // As much of the section as the file has.
  std::string_view view(const Section& section, const char* what) {
    if (section.offset > bytes_.size() || section.size > bytes_.size() - section.offset) {
      problem(std::min<uint64_t>(section.offset, bytes_.size()),
              fmt::format("{} should have {} bytes from {} on; the file ends at {}", what,
                          section.size, section.offset, bytes_.size()));
    }
    return bytes_.substr(std::min<uint64_t>(section.offset, bytes_.size()), section.size);
  }

  void read_file_header(Cursor& in) {
    const auto entry_size = in.take<uint64_t>();
    const Section attributes = take_section(in);
    const Section data = take_section(in);
    take_section(in);  // event types: only of very old files
    std::vector<uint32_t> features;
    for (uint32_t word = 0; word < kFeatureBits / 64; ++word) {
      const auto bits = in.take<uint64_t>();
      for (uint32_t bit = 0; bit < 64; ++bit) {
        if ((bits >> bit & 1) != 0) {
          features.push_back(64 * word + bit);
        }
      }
    }
    read_attributes(attributes, entry_size);
    at_ = std::min<uint64_t>(data.offset, bytes_.size());
    if (data.size == 0) {
      problem(40, "the recording was not ended: the header lacks the size of the data");
      end_ = bytes_.size();
      return;
    }
    end_ = at_ + view(data, "the data").size();
    if (end_ - at_ == data.size) {
      read_features(end_, features);
    }
  }

  void read_attributes(const Section& section, uint64_t entry_size) {
    constexpr uint64_t kSection = 16;
    if (entry_size < kSmallestAttribute + kSection) {
      problem(16, fmt::format("attributes of {} bytes; expected at least {}", entry_size,
                              kSmallestAttribute + kSection));
      return;
    }
    std::string_view entries = view(section, "the attributes");
    uint64_t may_read = bytes_.size();  // sections of ids that overlap are not honest
    for (uint64_t at = section.offset; entries.size() >= entry_size; at += entry_size) {
      auto attribute = parse_attribute(entries.substr(0, entry_size - kSection));
      if (!attribute) {
        problem(at, "an attribute whose size cannot be");
        return;
      }
      Cursor place(entries.substr(entry_size - kSection));
      const std::string_view ids = view(take_section(place), "the ids of an attribute");
      if (ids.size() > may_read) {
        problem(at, "the ids of the attributes overlap");
        return;
      }
      may_read -= ids.size();
      for (Cursor in(ids); in.left() >= 8;) {
        attribute->ids.push_back(in.take<uint64_t>());
      }
      info_.attributes.add(std::move(*attribute));
      entries.remove_prefix(entry_size);
    }
  }

  void read_features(uint64_t at, const std::vector<uint32_t>& features) {
    constexpr uint64_t kSection = 16;
    const std::string_view table = view({at, kSection * features.size()}, "the list of features");
    Cursor in(table);
    uint64_t may_read = bytes_.size();
    for (const uint32_t feature : features) {
      const Section section = take_section(in);
      if (!in.ok()) {
        return;
      }
      const std::string_view bytes = view(section, "a feature");
      if (bytes.size() > may_read) {
        problem(at, "the features overlap");
        return;
      }
      may_read -= bytes.size();
      if (!read_feature(feature, bytes, info_)) {
        problem(section.offset, fmt::format("feature {} is not what it should be", feature));
      }
    }
  }

  // The record at the begin of `bytes`; false: it is not whole.
  static bool read_header(std::string_view bytes, Record& record) {
    Cursor in(bytes);
    record.type = static_cast<RecordType>(in.take<uint32_t>());
    record.misc = in.take<uint16_t>();
    record.size = in.take<uint16_t>();
    if (!in.ok() || record.size < kRecordHeaderSize || record.size > bytes.size()) {
      return false;
    }
    record.payload = bytes.substr(kRecordHeaderSize, record.size - kRecordHeaderSize);
    return true;
  }

  bool next_of_file(Record& record) {
    if (at_ >= end_) {
      if (!tail_.empty()) {
        problem(end_, fmt::format("the last compressed record is cut off: {} bytes of it are there",
                                  tail_.size()));
        tail_.clear();
      }
      return false;
    }
    const std::string_view rest = bytes_.substr(at_, end_ - at_);
    record.offset = at_;
    if (!read_header(rest, record)) {
      if (rest.size() < kRecordHeaderSize) {
        problem(at_, fmt::format("{} bytes are left, too few for a record", rest.size()));
      } else if (record.size < kRecordHeaderSize) {
        problem(at_, fmt::format("a record of {} bytes; expected at least {}. The {} bytes from "
                                 "here on are not read",
                                 record.size, kRecordHeaderSize, rest.size()));
      } else {
        problem(at_, fmt::format("a record of {} bytes is cut off: {} are left", record.size,
                                 rest.size()));
      }
      at_ = end_;
      return false;
    }
    at_ += record.size;
    uint64_t follows = 0;
    if (record.type == RecordType::kAuxtrace) {
      follows = Cursor(record.payload).take<uint64_t>();
    } else if (record.type == RecordType::kHeaderTracingData) {
      follows = Cursor(record.payload).take<uint32_t>();
    }
    if (follows > end_ - at_) {
      problem(at_, fmt::format("{} bytes of data should follow the record at byte {}; {} are left",
                               follows, record.offset, end_ - at_));
      follows = end_ - at_;
    }
    record.follows = bytes_.substr(at_, follows);
    at_ += follows;
    return true;
  }

  void start_block(const Record& record) {
    std::string_view data = record.payload;
    if (record.type == RecordType::kCompressed2) {
      Cursor in(data);
      const auto size = in.take<uint64_t>();
      data = in.take_bytes(size);
      if (!in.ok()) {
        problem(record.offset, "a compressed record says that it holds more than it has");
        return;
      }
    }
    if (inflater_ == nullptr) {
      inflater_ = std::make_unique<Inflater>();
    }
    if (inflate_failed_) {
      return;
    }
    block_offset_ = record.offset;
    inflater_->give(data);
    block_ = std::make_shared<const std::string>();
    block_at_ = 0;
  }

  // False: all that the compressed record holds has been given out.
  bool next_of_block(Record& record) {
    for (;;) {
      const std::string_view rest = std::string_view(*block_).substr(block_at_);
      if (read_header(rest, record)) {
        block_at_ += record.size;
        record.offset = block_offset_;
        record.own = block_;
        return true;
      }
      if (rest.size() >= kRecordHeaderSize && record.size < kRecordHeaderSize) {
        problem(block_offset_, fmt::format("a compressed record of {} bytes; expected at least "
                                           "{}. No compressed records are read from here on",
                                           record.size, kRecordHeaderSize));
        stop_inflating();
        return false;
      }
      auto block = std::make_shared<std::string>(tail_ + std::string(rest));
      tail_.clear();
      const size_t before = block->size();
      const auto more = inflater_->next(*block);
      unfolded_ += block->size() - before;
      if (!more) {
        problem(block_offset_, fmt::format("compressed data are damaged ({}). No compressed "
                                           "records are read from here on",
                                           more.error().message));
        stop_inflating();
        return false;
      }
      if (unfolded_ > Reader::kUnfolded * bytes_.size() + Reader::kUnfoldedBase) {
        problem(block_offset_,
                fmt::format("compressed records hold more than {} times what the file has. No "
                            "compressed records are read from here on",
                            Reader::kUnfolded));
        stop_inflating();
        return false;
      }
      if (!*more) {
        tail_ = std::move(*block);  // goes on in the next compressed record
        block_ = nullptr;
        return false;
      }
      block_ = std::move(block);
      block_at_ = 0;
    }
  }

  void stop_inflating() {
    inflate_failed_ = true;
    block_ = nullptr;
    tail_.clear();
  }

  // Fills what the attributes say; false: the record is not given out.
  bool accept(Record& record) {
    const bool nested = record.own != nullptr && (record.type == RecordType::kCompressed ||
                                                  record.type == RecordType::kCompressed2);
    if (record_name(record.type) == nullptr || nested) {
      ++unknown_[static_cast<uint32_t>(record.type)];
      return false;
    }
    if (!attach(info_.attributes, record)) {
      problem(record.offset, fmt::format("{} of {} bytes lacks fields that its event should have",
                                         record_name(record.type), record.size));
      return false;
    }
    learn(record);
    return true;
  }

  void learn(const Record& record) {
    switch (record.type) {
      case RecordType::kHeaderAttr: {
        auto attribute = parse_attribute(record.payload);
        if (!attribute) {
          problem(record.offset, "an attribute whose size cannot be");
          return;
        }
        for (Cursor ids(record.payload.substr(attribute->size)); ids.left() >= 8;) {
          attribute->ids.push_back(ids.take<uint64_t>());
        }
        info_.attributes.add(std::move(*attribute));
        return;
      }
      case RecordType::kHeaderFeature: {
        Cursor in(record.payload);
        const auto feature = in.take<uint64_t>();
        if (!in.ok() || feature >= kFeatureBits ||
            !read_feature(static_cast<uint32_t>(feature), record.payload.substr(8), info_)) {
          problem(record.offset, fmt::format("feature {} is not what it should be", feature));
        }
        return;
      }
      case RecordType::kHeaderTracingData:
        if (!read_tracing_data(record.follows, info_.tracepoints)) {
          problem(record.offset, "the formats of the tracepoints are not what they should be");
        }
        return;
      case RecordType::kHeaderBuildId:
        if (const auto entry = parse_build_id(record.misc, record.payload)) {
          info_.build_ids.push_back({entry->pid, std::string(entry->id), std::string(entry->path)});
        }
        return;
      case RecordType::kEventUpdate:
        if (const auto update = parse_event_update(record);
            update && update->type == EventUpdate::kName) {
          const uint32_t attribute = info_.attributes.of_id(update->id);
          if (attribute != AttributeTable::kNone) {
            info_.attributes.set_name(attribute, std::string(update->data));
          }
        }
        return;
      default:
        return;
    }
  }

  std::string_view bytes_;
  uint64_t at_ = 0;   // the next record
  uint64_t end_ = 0;  // of the records

  std::unique_ptr<Inflater> inflater_;
  bool inflate_failed_ = false;
  uint64_t unfolded_ = 0;                     // bytes
  std::shared_ptr<const std::string> block_;  // decompressed; null: nothing is being given out
  size_t block_at_ = 0;
  uint64_t block_offset_ = 0;
  std::string tail_;  // the begin of a record that ends in the next compressed one
};

Reader::Reader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;
Reader::~Reader() = default;

Result<Reader> Reader::open(std::string_view bytes) {
  auto impl = std::make_unique<Impl>(bytes);
  if (auto started = impl->start(); !started) {
    return tl::unexpected<Error>(started.error());
  }
  return Reader(std::move(impl));
}

bool Reader::next(Record& record) { return impl_->next(record); }
const FileInfo& Reader::info() const { return impl_->info_; }
const std::vector<std::string>& Reader::problems() const { return impl_->problems_; }
const std::map<uint32_t, uint64_t>& Reader::unknown() const { return impl_->unknown_; }

}  // namespace tsomon::perf
