#include "decoders/pt/code/units.h"

#include <utility>

namespace tsomon::pt {
namespace {

using x86::Branch;
using x86::Instruction;

// No function's table of jumps reaches so far; through a register, only few calls do.
constexpr uint64_t kFar = uint64_t{1} << 16;
constexpr size_t kMostOpenCalls = size_t{1} << 20;  // open ones

}  // namespace

UnitsOnPath::UnitsOnPath(const UnitOptions& options, int process, UnitEvents& events)
    : events_(events), written_(options.written) {
  for (const UnitFunction& function : options.functions) {
    if (function.process == process) {
      functions_.emplace(function.entry, &function.label);
    }
  }
  for (const UnitMarker& marker : options.markers) {
    if (marker.process == process) {
      (marker.begins ? begins_ : ends_).emplace(marker.address, &marker.label);
    }
  }
  for (const LeavingFunction& function : options.leaving) {
    if (function.process == process) {
      leaving_.insert(function.entry);
    }
  }
  none_ = functions_.empty() && begins_.empty() && written_.empty();
}

void UnitsOnPath::block(uint64_t ip) {
  const uint64_t expected = std::exchange(expected_, 0);
  if (expected != 0 && ip != expected) {
    dissolve();
  }
  closed_.clear();
  const uint64_t from = std::exchange(jumped_from_, 0);
  const uint64_t way = ip > from ? ip - from : from - ip;
  if (from != 0 && way > kFar && (jumped_by_register_ || behind_calls_.count(ip) != 0)) {
    interrupt();
  }
}

void UnitsOnPath::before(const Instruction& instruction) {
  const bool called = std::exchange(called_, false);
  if (std::exchange(arrived_, false) && leaving_.count(instruction.address) != 0) {
    interrupt();
  }
  if (called) {
    // A call or a jump from outside; a loop back to the first instruction is neither.
    const auto function = functions_.find(instruction.address);
    if (function != functions_.end()) {
      begin(*function->second, depth(), &instruction);
    }
  }
  if (const auto marker = ends_.find(instruction.address); marker != ends_.end()) {
    end_marked(*marker->second, &instruction);
  }
  if (const auto marker = begins_.find(instruction.address); marker != begins_.end()) {
    begin(*marker->second, kMarked, &instruction);
  }
}

void UnitsOnPath::after(const Instruction& instruction) {
  switch (instruction.branch) {
    case Branch::kIndirectJump:
      jumped_from_ = instruction.address;
      jumped_by_register_ = instruction.access_count == 0;
      called_ = arrived_ = true;
      break;
    case Branch::kJump:
      arrived_ = true;
      break;
    case Branch::kCall:
    case Branch::kIndirectCall:
      if (returns_.size() == kMostOpenCalls) {
        dissolve();
      }
      returns_.push_back(instruction.next());
      behind_calls_.insert(instruction.next());
      called_ = arrived_ = true;
      break;
    case Branch::kReturn:
      returned(instruction);
      break;
    default:
      break;
  }
}

void UnitsOnPath::value(uint64_t written) {
  for (const WrittenMarker& marker : written_) {
    if (written == marker.end) {
      end_marked(marker.label, nullptr);
    }
    if (written == marker.begin) {
      begin(marker.label, kMarked, nullptr);
    }
  }
}

void UnitsOnPath::interrupt() {
  cut(0, nullptr);
  returns_.clear();
  closed_.clear();
  expected_ = 0;
  jumped_from_ = 0;
  called_ = arrived_ = false;
}

void UnitsOnPath::begin(const std::string& label, int64_t depth, const Instruction* at) {
  open_.push_back({&label, depth, events_.begin_unit(label, at)});
}

void UnitsOnPath::end_marked(const std::string& label, const Instruction* at) {
  for (size_t i = open_.size(); i-- != 0;) {
    if (open_[i].depth == kMarked && *open_[i].label == label) {
      cut(i + 1, at);
      events_.end_unit(at);
      open_.pop_back();
      return;
    }
  }
}

void UnitsOnPath::cut(size_t first, const Instruction* at) {
  for (; open_.size() > first; open_.pop_back()) {
    events_.end_unit(at);
    ++incomplete_;
  }
}

void UnitsOnPath::returned(const Instruction& instruction) {
  closed_.clear();
  size_t first = open_.size();  // of the function that returns
  for (size_t i = open_.size(); i-- != 0;) {
    if (open_[i].depth >= depth()) {
      first = i;
    } else if (open_[i].depth != kMarked) {
      break;
    }
  }
  for (; open_.size() > first; open_.pop_back()) {
    incomplete_ += open_.back().depth == kMarked ? 1 : 0;
    closed_.push_back({open_.back().begin, events_.end_unit(&instruction)});
  }
  if (!returns_.empty()) {
    expected_ = returns_.back();
    returns_.pop_back();
  }
}

void UnitsOnPath::dissolve() {
  for (const Closed& closed : closed_) {
    events_.take_back(closed.begin);
    events_.take_back(closed.end);
  }
  for (const Open& open : open_) {
    events_.take_back(open.begin);
  }
  incomplete_ += closed_.size() + open_.size();
  open_.clear();
  closed_.clear();
  returns_.clear();
}

}  // namespace tsomon::pt
