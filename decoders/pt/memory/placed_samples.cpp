#include <algorithm>
#include <optional>

#include "decoders/pt/flow/path_times.h"
#include "decoders/pt/memory/accesses.h"

namespace tsomon::pt {
namespace {

using Kind = PathEntry::Kind;

constexpr size_t kMostEntries = size_t{1} << 16;  // in question for one sample

class Placer {
 public:
  explicit Placer(const std::vector<PathEntry>& entries) : entries_(entries), times_(entries) {}

  std::optional<PlacedSample> place(const RegisterSample& sample) {
    sample_ = &sample;
    places_ = 0;
    const int64_t earliest = std::min(sample.earliest, sample.time);
    size_t first = times_.first_at(earliest);
    if (sample.after) {  // the moment may be in time, but no longer the instruction before it
      while (first != 0 && entries_[--first].kind == Kind::kValue) {
      }
    }
    for (size_t i = first; i < entries_.size() && places_ < 2; ++i) {
      const bool whole = times_.low(i) <= sample.time;
      if ((!whole && (i == 0 || times_.low(i - 1) > sample.time)) || i - first > kMostEntries) {
        places_ = i - first > kMostEntries ? 2 : places_;
        break;
      }
      if (entries_[i].kind == Kind::kGap) {
        places_ = 2;
      } else if (entries_[i].kind == Kind::kBlock) {
        block(i, whole);
      }
    }
    return places_ == 1 ? found_ : std::nullopt;
  }

 private:
  // `whole`: else only the place before it was in time.
  void block(size_t i, bool whole) {
    const auto& code = entries_[i].block->instructions;
    if (sample_->interrupt && !entries_[i].resumed) {
      return;
    }
    const size_t end = sample_->interrupt ? 1 : code.size();
    for (size_t j = 0; j < end; ++j) {
      if (code[j].address != sample_->ip || (!whole && (sample_->after || j != 0))) {
        continue;
      }
      ++places_;
      found_ = sample_->after ? behind(i, j) : PlacedSample{i, j, sample_->registers};
      if (found_ && code[j].repeats()) {
        found_->registers.forget(code[j].writes);  // it may have been half done
      }
    }
  }

  std::optional<PlacedSample> behind(size_t i, size_t j) const {
    if (j + 1 < entries_[i].block->instructions.size()) {
      return PlacedSample{i, j + 1, sample_->registers};
    }
    do {
      ++i;
    } while (i < entries_.size() && entries_[i].kind == Kind::kValue);
    if (i == entries_.size() || entries_[i].kind != Kind::kBlock) {
      return std::nullopt;
    }
    return PlacedSample{i, 0, sample_->registers};
  }

  const std::vector<PathEntry>& entries_;
  PathTimes times_;
  const RegisterSample* sample_ = nullptr;
  std::optional<PlacedSample> found_;
  size_t places_ = 0;
};

}  // namespace

std::vector<PlacedSample> place_samples(const ThreadPath& path,
                                        const std::vector<RegisterSample>& samples) {
  std::vector<PlacedSample> placed;
  std::optional<Placer> placer;
  for (const RegisterSample& sample : samples) {
    if (sample.process != path.process || sample.thread != path.thread) {
      continue;
    }
    if (!placer) {
      placer.emplace(path.entries);
    }
    if (const auto place = placer->place(sample)) {
      placed.push_back(*place);
    }
  }
  std::sort(placed.begin(), placed.end(), is_before);
  return placed;
}

}  // namespace tsomon::pt
