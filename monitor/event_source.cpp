#include "monitor/event_source.h"

#include <optional>
#include <utility>

#include <poll.h>

#include "decoders/std/reader.h"
#include "monitor/content_format.h"
#include "monitor/descriptor.h"
#include "monitor/load.h"
#include "monitor/mapped_input.h"
#include "monitor/perf_source.h"
#include "monitor/read_input.h"
#include "monitor/reorder.h"
#include "monitor/symbols.h"

namespace tsomon {
namespace {

constexpr size_t kEventsPerBlock = 4096;
constexpr int kInputPause = 20;  // milliseconds without input

class TextSource : public EventSource {
 public:
  TextSource(Descriptor descriptor, std::string input, EventOrder order, bool waits)
      : descriptor_(std::move(descriptor)),
        reader_(StdReader::from_descriptor(descriptor_.get(), input, options())),
        order_(order),
        waits_(waits) {
    input_ = std::move(input);
    format_ = InputFormat::kStd;
  }

  Result<bool> next(EventBlock& block) override {
    if (order_ == EventOrder::kInput) {
      return reader_.next(block);
    }
    block.clear();
    while (!ended_) {
      if (waits_ && reorder_.is_plain() && !more_read_ && pauses() &&
          reorder_.flush(block, origin_)) {
        return true;
      }
      const auto more = reader_.next(lines_);
      // A full block: the rest of what was read has not been looked at.
      more_read_ = lines_.events.size() == kEventsPerBlock;
      const bool ready = reorder_.add(lines_, block, origin_);
      if (!more) {
        ended_ = true;
        failure_ = more.error();
      } else if (!*more) {
        ended_ = true;
      }
      lines_.clear();
      if (ready) {
        return true;
      }
    }
    if (reorder_.flush(block, origin_)) {
      return true;
    }
    if (failure_) {
      return tl::unexpected<Error>(*failure_);
    }
    return false;
  }

  const Symbols& symbols() const override { return reader_.symbols(); }
  Symbols take_symbols() override { return reader_.take_symbols(); }
  const std::vector<capture::Module>& modules() const override { return no_modules_; }
  bool complete() const override { return reader_.complete(); }
  bool sampled() const override { return reader_.sampled(); }
  BasisSource basis() const override {
    return reader_.recorded() ? BasisSource::kProbe : BasisSource::kWritten;
  }
  bool may_cancel() const override { return reader_.may_cancel(); }
  Selection selection() const override { return reader_.selection(); }
  uint64_t lost_events() const override { return reader_.lost_events(); }
  std::vector<std::string> warnings() const override {
    if (reader_.complete()) {
      return {};
    }
    return {missing_events(reader_.lost_events())};
  }

 private:
  static StdOptions options() {
    StdOptions options;
    options.block_events = kEventsPerBlock;
    return options;
  }

  bool pauses() const {
    pollfd state{descriptor_.get(), POLLIN, 0};
    return ::poll(&state, 1, kInputPause) == 0;
  }

  Descriptor descriptor_;
  StdReader reader_;
  EventOrder order_;
  bool waits_;  // reading may have to wait for a writer
  bool more_read_ = false;
  bool ended_ = false;
  std::optional<Error> failure_;
  EventBlock lines_;
  Reorder reorder_;
  std::vector<capture::Module> no_modules_;
};

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
    reader_ = std::make_unique<capture::CaptureReader>(std::move(*reader));
    if (options.symbolise) {
      texts_ = std::make_shared<LocationTexts>(modules());
    }
    return true;
  }

  Result<bool> next(EventBlock& block) override {
    block.clear();
    const bool more = reader_->next(block, kEventsPerBlock);
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
    Symbols symbols = reader_->take_symbols();
    if (texts_) {
      symbols.locations = texts_->take();
    }
    return symbols;
  }
  const std::vector<capture::Module>& modules() const override {
    return reader_->capture().modules;
  }
  bool complete() const override { return reader_->capture().problems.empty(); }
  bool may_cancel() const override { return reader_->capture().may_cancel; }
  bool may_have_units() const override { return reader_->capture().may_have_units; }
  Selection selection() const override { return reader_->capture().trace.selection; }
  uint64_t lost_events() const override { return reader_->capture().trace.lost_events; }
  std::vector<std::string> warnings() const override {
    std::vector<std::string> all = reader_->capture().problems;
    const auto& notes = reader_->capture().notes;
    all.insert(all.end(), notes.begin(), notes.end());
    if (texts_) {
      all.insert(all.end(), texts_->warnings().begin(), texts_->warnings().end());
    }
    return all;
  }

 private:
  static constexpr uint64_t kReleaseAfter = 1U << 20;  // events

  MappedInput bytes_;
  std::unique_ptr<capture::CaptureReader> reader_;
  uint64_t since_release_ = 0;
};

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

}  // namespace

Result<std::unique_ptr<EventSource>> EventSource::open(const std::string& path,
                                                       const SourceOptions& options) {
  auto opened = open_perf_input(path);
  if (!opened) {
    return tl::unexpected<Error>(opened.error());
  }
  return open(std::move(*opened), path, options);
}

Result<std::unique_ptr<EventSource>> EventSource::open(OpenedInput opened, const std::string& path,
                                                       const SourceOptions& options) {
  std::string input = input_name(path);
  Descriptor descriptor = std::move(opened.descriptor);
  const bool regular = opened.regular;
  const InputFormat format =
      options.format == InputFormat::kAuto ? content_format(descriptor.get()) : options.format;
  if (format == InputFormat::kAxe) {
    Error error{ErrorKind::kUsage, input, {}, kOnlyConsistency};
    return tl::unexpected<Error>(std::move(error));
  }
  if (format != InputFormat::kPerf && options.perf.needs_pt()) {
    Error error{ErrorKind::kUsage, input, {}, kNeedsPt};
    return tl::unexpected<Error>(std::move(error));
  }
  if (format != InputFormat::kCapture && options.clock_margin != 0) {
    Error error{ErrorKind::kUsage, input, {}, kNeedsStamps};
    return tl::unexpected<Error>(std::move(error));
  }
  if (format != InputFormat::kStd) {
    auto bytes = MappedInput::of(std::move(descriptor), regular);
    if (!bytes) {
      Error error = bytes.error();
      error.input = input;
      return tl::unexpected<Error>(std::move(error));
    }
    return format == InputFormat::kCapture ? open_capture(std::move(*bytes), input, options)
                                           : open_perf_data(std::move(*bytes), input, options);
  }
  return std::make_unique<TextSource>(std::move(descriptor), std::move(input), options.order,
                                      !regular);
}

}  // namespace tsomon
