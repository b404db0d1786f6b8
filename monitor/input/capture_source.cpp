#include "monitor/input/capture_source.h"

#include <utility>

#include "decoders/capture/reader.h"
#include "monitor/process/location_texts.h"
#include "monitor/process/twins_in_file.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr size_t kEventsPerBlock = 4096;

class CaptureSource : public EventSource {
 public:
  CaptureSource(MappedInput bytes, std::string input) : bytes_(std::move(bytes)) {
    input_ = std::move(input);
    format_ = InputFormat::kCapture;
  }

  Result<bool> start(const SourceOptions& options) {
    auto reader = capture::CaptureReader::open(bytes_.view(), options.clock_margin);
    if (!reader) {
      return tl::unexpected<Error>(reader.error());
    }
    bytes_.release();
    files_ = options.files;
    onlooker_ = options.onlooker;
    reader_ = std::make_unique<capture::CaptureReader>(std::move(*reader));
    if (options.symbolise) {
      texts_ = std::make_shared<LocationTexts>(modules(), options.files);
    }
    return true;
  }

  Result<bool> next(EventBlock& block) override {
    block.clear();
    const bool more = reader_->next(block, kEventsPerBlock);
    more_input(kBytesOfPackedEvent * block.events.size());
    if (onlooker_ != nullptr) {
      onlooker_->add(block);
    }
    if (texts_) {
      texts_->replace(symbols().locations, block);
    }
    since_release_ += block.events.size();
    if (since_release_ >= kReleaseAfter) {
      bytes_.release();
      since_release_ = 0;
    }
    return more;
  }

  const Symbols& symbols() const override { return reader_->capture().trace.symbols; }
  Symbols take_symbols() override {
    if (onlooker_ != nullptr) {
      onlooker_->end(symbols());
    }
    Symbols symbols = reader_->take_symbols();
    if (texts_) {
      symbols.locations = texts_->take();
    }
    return symbols;
  }
  const std::vector<capture::Module>& modules() const override {
    return reader_->capture().modules;
  }
  bool sampled() const override { return slice(); }
  bool slice() const override {
    return (reader_->capture().header.flags & capture::kFileSlice) != 0;
  }
  bool complete() const override { return reader_->capture().problems.empty(); }
  Damage damage() const override { return reader_->capture().damage(); }
  std::string nothing_counts() const override {
    const capture::Capture& capture = reader_->capture();
    return capture.not_understood   ? "asm statements are not understood"
           : capture.knowledge_lost ? "what is missing may say what orders the threads, and which "
                                      "accesses count"
                                    : "";
  }
  std::string other_writers() const override { return reader_->capture().other_writers; }
  bool knows_atomics() const override { return true; }
  bool may_cancel() const override { return reader_->capture().may_cancel; }
  bool may_have_units() const override { return reader_->capture().may_have_units; }
  Selection selection() const override { return reader_->capture().trace.selection; }
  uint64_t lost_events() const override { return reader_->capture().trace.lost_events; }
  std::vector<std::string> warnings() const override {
    std::vector<std::string> all = reader_->capture().problems;
    const auto& notes = reader_->capture().notes;
    all.insert(all.end(), notes.begin(), notes.end());
    if (texts_) {
      const std::vector<std::string> of_files = texts_->warnings();
      all.insert(all.end(), of_files.begin(), of_files.end());
      const std::vector<std::string> of_libraries = libraries_without_twins(modules(), files_);
      all.insert(all.end(), of_libraries.begin(), of_libraries.end());
    }
    return all;
  }

 private:
  static constexpr uint64_t kReleaseAfter = 1U << 20;  // events

  MappedInput bytes_;
  std::unique_ptr<capture::CaptureReader> reader_;
  uint64_t since_release_ = 0;
  EventOnlooker* onlooker_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<EventSource>> open_capture(MappedInput bytes, const std::string& input,
                                                  const SourceOptions& options) {
  auto source = std::make_unique<CaptureSource>(std::move(bytes), input);
  if (auto started = source->start(options); !started) {
    Error error = started.error();
    error.input = input;
    return tl::unexpected<Error>(std::move(error));
  }
  return source;
}

}  // namespace tsomon
