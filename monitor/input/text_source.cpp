#include "monitor/input/text_source.h"

#include <optional>
#include <utility>

#include <poll.h>

#include "decoders/std/reader.h"
#include "monitor/events/reorder.h"
#include "monitor/input/load.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr size_t kLinesPerBlock = 4096;
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
      const auto more = reader_.next(block);
      count(block);
      return more;
    }
    block.clear();
    while (!ended_) {
      if (waits_ && reorder_.is_plain() && !more_read_ && pauses() &&
          reorder_.flush(block, origin_)) {
        return true;
      }
      const auto more = reader_.next(lines_);
      count(lines_);
      // A full block: the rest of what was read has not been looked at.
      more_read_ = lines_.events.size() == kLinesPerBlock;
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
  Damage damage() const override { return reader_.damage(); }
  std::string nothing_counts() const override {
    return reader_.nothing_counts() ? "the trace says that what orders the threads is lost" : "";
  }
  BasisSource basis() const override {
    return reader_.recorded() ? BasisSource::kProbe : BasisSource::kWritten;
  }
  bool knows_atomics() const override { return reader_.atomics() || !reader_.recorded(); }
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
    options.block_events = kLinesPerBlock;
    return options;
  }

  // Of a pipe the size is not known before.
  void count(const EventBlock& block) const {
    if (waits_) {
      more_input(kBytesOfPipedEvent * block.events.size());
    }
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

}  // namespace

std::unique_ptr<EventSource> open_text(Descriptor descriptor, std::string input, EventOrder order,
                                       bool waits) {
  return std::make_unique<TextSource>(std::move(descriptor), std::move(input), order, waits);
}

}  // namespace tsomon
