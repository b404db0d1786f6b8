#include "offline/explore/step_tree.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <utility>

namespace tsomon::explore {
namespace {

uint64_t end_of(const Step& step) {
  return step.address + (is_object(step.op) || step.size == 0 ? 1 : step.size);
}

// What threads have done that is certainly over, by starts and joins.
class ThreadClocks {
 public:
  // Who: the thread; then its clock counts its operations.
  void step(const Step& step) {
    const uint16_t thread = step.choice.thread;
    ++clocks_[thread][thread];
    const auto other = static_cast<uint16_t>(step.a);
    if (step.op == Op::kCreate && other <= kMaxThreads) {
      clocks_[other] = clocks_[thread];
    } else if (step.op == Op::kJoin && other <= kMaxThreads) {
      for (size_t i = 0; i <= kMaxThreads; ++i) {
        clocks_[thread][i] = std::max(clocks_[thread][i], clocks_[other][i]);
      }
    }
  }
  uint32_t now(uint16_t thread) const { return clocks_[thread][thread]; }
  bool is_over(uint16_t thread, uint16_t other, uint32_t when) const {
    return clocks_[thread][other] >= when;
  }

 private:
  std::array<std::array<uint32_t, kMaxThreads + 1>, kMaxThreads + 1> clocks_{};
};

struct LastAccess {
  uint32_t read = 0;  // by the clock of its thread; 0: none
  uint32_t write = 0;
};

struct KeyHash {
  uint64_t a = 0x9E3779B97F4A7C15U;
  uint64_t b = 0xC2B2AE3D27D4EB4FU;

  void add(uint64_t word) {
    a = (a ^ word) * 0xff51afd7ed558ccdU;
    a ^= a >> 32;
    b = (b + word) * 0xc4ceb9fe1a85ec53U;
    b ^= b >> 29;
  }
  void add(Value value) {
    add(static_cast<uint64_t>(value));
    add(static_cast<uint64_t>(value >> 64));
  }
  void add(const KeyHash& other) {
    add(other.a);
    add(other.b);
  }
};

// A cell of memory byte by byte, as accesses of several sizes may meet; an object as a whole.
class StateHash {
 public:
  StateHash(const Run& run, Judged judged) : run_(run), judged_(judged) {}

  std::string of(size_t depth, Model model) {
    size_t mark = 0;
    for (size_t i = 0; i < depth; ++i) {
      step(run_.steps[i], model);
    }
    for (; mark < run_.marks.size() && run_.marks[mark].step <= depth; ++mark) {
      if (const Mark& at = run_.marks[mark];
          judged_ != Judged::kEnd && at.kind != MarkKind::kIteration) {
        KeyHash& into = judged_ == Judged::kHistory ? history_ : threads_[at.thread];
        into.add(uint64_t{at.thread} << 32 | at.operation);
        into.add(uint64_t{static_cast<uint8_t>(at.kind)} << 32 | at.value);
      }
    }
    KeyHash all = history_;
    for (const auto& [number, thread] : threads_) {
      all.add(uint64_t{number});
      all.add(thread);
      all.add(commits_[number]);
    }
    for (const auto& [cell, content] : memory_) {
      all.add(cell.first * 2 + (cell.second ? 1 : 0));
      all.add(content);
    }
    std::string key(16, '\0');
    for (size_t i = 0; i < 8; ++i) {
      key[i] = static_cast<char>(all.a >> (8 * i));
      key[8 + i] = static_cast<char>(all.b >> (8 * i));
    }
    return key;
  }

 private:
  using Cell = std::pair<uint64_t, bool>;

  void step(const Step& step, Model model) {
    const uint16_t thread = step.choice.thread;
    const bool object = is_object(step.op);
    if (step.choice.commit != 0) {
      ++commits_[thread];
      write(step, object, thread, commits_[thread]);
      return;
    }
    KeyHash& mine = threads_[thread];
    mine.add(uint64_t{static_cast<uint8_t>(step.op)} << 8 | step.size);
    mine.add(step.op == Op::kAnswer ? static_cast<uint64_t>(step.b) : step.address);
    if (reads(step.op)) {
      mine.add(step.read);
      if (judged_ == Judged::kGraph) {
        mine.add(content(step, object));
      }
    }
    ++operations_[thread];
    const uint64_t serial = operations_[thread] << 32;
    if (step.op == Op::kStore && model == Model::kSc) {
      write(step, object, thread, serial);
    } else if (is_locked(step.op)) {
      Step made = step;
      const Effect effect = apply(step.op, step.read, step.a, step.b, step.size, thread);
      made.written = effect.value;
      if (effect.writes) {
        write(made, object, thread, serial);
      }
    }
  }

  void write(const Step& step, bool object, uint16_t thread, uint64_t serial) {
    const uint32_t size = object ? 1 : step.size;
    for (uint32_t i = 0; i < size; ++i) {
      KeyHash& content = memory_[{step.address + i, object}];
      if (judged_ == Judged::kGraph) {
        content.add(uint64_t{thread} << 56 ^ serial);
      } else {
        content = {};
        content.add(object ? step.written : (step.written >> (8 * i)) & 0xFF);
      }
    }
  }

  KeyHash content(const Step& step, bool object) const {
    KeyHash all;
    for (uint32_t i = 0; i < (object ? 1 : step.size); ++i) {
      if (const auto known = memory_.find({step.address + i, object}); known != memory_.end()) {
        all.add(known->second);
      }
    }
    return all;
  }

  const Run& run_;
  const Judged judged_;
  KeyHash history_;
  std::map<uint16_t, KeyHash> threads_;
  std::map<uint16_t, uint64_t> commits_;
  std::map<uint16_t, uint64_t> operations_;
  std::map<Cell, KeyHash> memory_;
};

// A commit has the place of its store, and what it stores.
void fill_commits(Run* run) {
  std::map<uint16_t, std::deque<size_t>> buffers;
  for (size_t i = 0; i < run->steps.size(); ++i) {
    Step& step = run->steps[i];
    std::deque<size_t>& buffer = buffers[step.choice.thread];
    if (step.choice.commit == 0) {
      if (step.op == Op::kStore) {
        buffer.push_back(i);
      }
    } else if (!buffer.empty()) {
      const Step& store = run->steps[buffer.front()];
      step.op = Op::kStore;
      step.address = store.address;
      step.size = store.size;
      step.written = store.written;
      step.pc = store.pc;
      buffer.pop_front();
    }
  }
}

}  // namespace

std::set<uint64_t> contended_accesses(const Run& run) {
  std::set<uint64_t> contended;
  ThreadClocks clocks;
  std::map<uint64_t, std::map<uint16_t, LastAccess>> bytes;
  for (const Step& step : run.steps) {
    if (step.choice.commit != 0) {
      continue;
    }
    clocks.step(step);
    if (!has_cell(step.op)) {
      continue;
    }
    const uint16_t thread = step.choice.thread;
    for (uint64_t byte = step.address; byte < end_of(step); ++byte) {
      auto& accesses = bytes[byte];
      const bool load = step.op == Op::kLoad;
      for (const auto& [other, last] : accesses) {
        if (other == thread) {
          continue;
        }
        for (const bool other_load : {false, true}) {
          if (!(load && other_load) &&
              !clocks.is_over(thread, other, other_load ? last.read : last.write)) {
            contended.insert(contended_access(byte, thread, load));
            contended.insert(contended_access(byte, other, other_load));
          }
        }
      }
      LastAccess& mine = accesses[thread];
      (load ? mine.read : mine.write) = clocks.now(thread);
    }
  }
  return contended;
}

StepTree::StepTree(Program& program, Model model, Judged judged, std::set<uint64_t> contended)
    : program_(program), model_(model), judged_(judged), contended_(std::move(contended)) {}

void StepTree::begin() {
  run_ = make_run(0, nullptr);
  path_.push_back({});
  path_.back().depth = after_local_steps(*run_, 0);
}

std::shared_ptr<const Run> StepTree::make_run(size_t depth, const Choice* then) {
  Request request;
  request.model = model_;
  request.policy = Policy::kLocalFirst;
  request.contended.assign(contended_.begin(), contended_.end());
  for (size_t i = 0; i < depth; ++i) {
    request.prefix.push_back(run_->steps[i].choice);
  }
  if (then != nullptr) {
    request.prefix.push_back(*then);
  }
  ++runs_;
  auto made = std::make_shared<Run>(program_.run(request));
  fill_commits(made.get());
  std::shared_ptr<const Run> run = std::move(made);
  const size_t before = contended_.size();
  contended_.merge(contended_accesses(*run));
  changed_ = changed_ || contended_.size() != before;
  const bool over = run->end == End::kFinished || run->end == End::kStuck ||
                    run->end == End::kCrashed || run->end == End::kExited ||
                    run->end == End::kInterrupted;
  if (!over || run->steps.size() < request.prefix.size()) {
    ended_ = true;
    run_ = run;
  }
  return run;
}

bool StepTree::is_local(const Step& step) const {
  if (step.op == Op::kAnswer) {
    return step.a == 1;
  }
  if (!has_cell(step.op) ||
      (step.choice.commit == 0 && step.op == Op::kStore && model_ == Model::kTso)) {
    return true;
  }
  for (uint64_t byte = step.address; byte < end_of(step); ++byte) {
    if (contended_.count(contended_access(byte, step.choice.thread, step.op == Op::kLoad)) != 0) {
      return false;
    }
  }
  return true;
}

size_t StepTree::after_local_steps(const Run& run, size_t depth) const {
  while (depth < run.steps.size() && is_local(run.steps[depth])) {
    ++depth;
  }
  return depth;
}

// The newest store in the thread's buffer that a load takes its value from; nothing: not all that
// others write to comes from there.
std::optional<Step> StepTree::forwarded_from(size_t depth, const HeldLoad& load) const {
  std::deque<const Step*> buffer;
  for (size_t i = 0; i < depth; ++i) {
    const Step& step = run_->steps[i];
    if (step.choice.thread != load.thread || step.op != Op::kStore) {
      continue;
    }
    if (step.choice.commit == 0) {
      buffer.push_back(&step);
    } else if (!buffer.empty()) {
      buffer.pop_front();
    }
  }
  std::optional<Step> newest;
  for (uint64_t byte = load.address; byte < load.address + load.size; ++byte) {
    if (contended_.count(contended_access(byte, load.thread, true)) == 0) {
      continue;
    }
    const auto store = std::find_if(buffer.rbegin(), buffer.rend(), [&](const Step* one) {
      return one->address <= byte && byte < end_of(*one);
    });
    if (store == buffer.rend()) {
      return std::nullopt;
    }
    newest = newest.value_or(**store);
  }
  return newest;
}

// The run through the node that makes this choice there.
std::shared_ptr<const Run> StepTree::run_with(const Frame& frame, const Choice& choice) {
  if (choice == run_->steps[frame.depth].choice) {
    return run_;
  }
  const auto tried = std::find_if(tried_.begin(), tried_.end(),
                                  [&](const auto& one) { return one.first == choice; });
  return tried != tried_.end() ? tried->second : make_run(frame.depth, &choice);
}

// Whether a thread has come to a load that may be forwarded, which is decided first.
bool StepTree::look_for_forwarding(const Step& at, Frame* frame) {
  uint64_t buffering = model_ == Model::kTso ? at.enabled & at.commits : 0;
  for (const HeldLoad& load : frame->held) {
    buffering &= ~(uint64_t{1} << load.thread);
  }
  for (uint16_t thread = 0; buffering != 0; ++thread, buffering >>= 1) {
    if ((buffering & 1) == 0) {
      continue;
    }
    const Choice choice{thread, 0, 0};
    auto run = run_with(*frame, choice);
    if (ended_ || changed_) {
      return false;
    }
    const Step& next = run->steps[frame->depth];
    const auto store = next.op == Op::kLoad
                           ? forwarded_from(frame->depth, {thread, next.address, next.size})
                           : std::nullopt;
    if (!store) {
      tried_.emplace_back(choice, std::move(run));
      continue;
    }
    Step waits = *store;
    waits.choice = {thread, 1, 0};
    frame->choices = {next, waits};
    frame->runs = {std::move(run), run_};
    frame->forwards = true;
    return true;
  }
  return false;
}

const std::vector<Step>& StepTree::choices() {
  Frame& frame = path_.back();
  if (frame.made || ended_ || frame.depth >= run_->steps.size()) {
    return frame.choices;
  }
  frame.made = true;
  const Step at = run_->steps[frame.depth];
  tried_.clear();
  if (look_for_forwarding(at, &frame)) {
    return frame.choices;
  }
  uint64_t enabled = at.enabled;
  for (const HeldLoad& load : frame.held) {
    enabled &= ~(uint64_t{1} << load.thread);
  }
  for (uint16_t thread = 0; thread <= kMaxThreads; ++thread) {
    for (const uint8_t commit : {uint8_t{0}, uint8_t{1}}) {
      if ((((commit != 0 ? at.commits : enabled) >> thread) & 1) == 0) {
        continue;
      }
      Choice choice{thread, commit};
      Value answers = 1;  // that are left
      for (; answers != 0; ++choice.answer, answers >>= 1) {
        if ((answers & 1) == 0) {
          continue;
        }
        auto run = ended_ || changed_ ? nullptr : run_with(frame, choice);
        if (ended_ || changed_) {
          frame.choices.clear();
          return frame.choices;
        }
        const Step& made = run->steps[frame.depth];
        answers = choice.answer == 0 && made.op == Op::kAnswer ? made.a : answers;
        frame.choices.push_back(made);
        frame.runs.push_back(std::move(run));
      }
    }
  }
  return frame.choices;
}

void StepTree::take(size_t which) {
  const Frame& frame = path_.back();
  run_ = frame.runs[which];
  Frame next;
  next.held = frame.held;
  if (frame.forwards && which == 1) {
    const Step& load = frame.choices.front();
    next.depth = frame.depth;
    next.held.push_back({load.choice.thread, load.address, load.size});
  } else {
    next.depth = after_local_steps(*run_, frame.depth + 1);
    std::erase_if(next.held,
                  [&](const HeldLoad& load) { return !forwarded_from(next.depth, load); });
  }
  path_.push_back(std::move(next));
}

void StepTree::back() {
  path_.pop_back();
  // Any run through the node will do.
  run_ = path_.back().runs.front();
}

std::string StepTree::key() const {
  std::string key = StateHash(*run_, judged_).of(path_.back().depth, model_);
  uint64_t held = 0;
  for (const HeldLoad& load : path_.back().held) {
    held |= uint64_t{1} << load.thread;
  }
  for (uint16_t thread = 0; held != 0; ++thread, held >>= 1) {
    if ((held & 1) != 0) {
      key += static_cast<char>(thread);
    }
  }
  return key;
}

}  // namespace tsomon::explore
