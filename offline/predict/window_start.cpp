#include "offline/predict/window_start.h"

#include <algorithm>
#include <iterator>

#include "tso/model/cancelled_units.h"
#include "tso/model/channels.h"

namespace tsomon::predict {
namespace {

bool same_place(const Event& a, const Event& b) {
  return a.address == b.address && a.size == b.size;
}

}  // namespace

void WindowStart::pass(const Event& event, uint64_t line) {
  if (event.thread >= threads_.size()) {
    threads_.resize(event.thread + 1);
  }
  Thread& mine = threads_[event.thread];
  const Carried now{event, line, passed_++};
  mine.last = now;
  if (is(event, kind_mask(EventKind::kUnitBegin))) {
    mine.units.push_back(now);
  } else if (is(event, kind_mask(EventKind::kUnitEnd) | kind_mask(kUnitCancel)) &&
             !mine.units.empty()) {
    mine.units.pop_back();
  }
  switch (event.kind()) {
    case EventKind::kAcquire:
    case EventKind::kAcquireShared:
      mine.acquisitions.push_back(now);
      break;
    case EventKind::kRelease:
    case EventKind::kReleaseShared:
      release(event, &mine);
      break;
    case EventKind::kSend:
      if (says_ignored(event.address)) {
        mine.ignored = now;
      } else if (says_benign(event.address)) {
        benign_.push_back(now);
      }
      break;
    case EventKind::kPost:
    case EventKind::kTake:
    case EventKind::kCount:
      count(now);
      break;
    case EventKind::kTry:
      mine.tried = now;
      return;
    default:
      break;
  }
  if (mine.tried && is(event, kinds::kAcquisitions | kind_mask(EventKind::kWait)) &&
      same_place(event, mine.tried->event)) {
    mine.tried.reset();
  }
}

// One that would be below 0 is posted by somebody else, too: it stays unknown.
void WindowStart::count(const Carried& now) {
  Carried& mine = counts_[{now.event.address, now.event.size}];
  const uint32_t before = mine.event.span_or_extra;
  mine = now;
  uint32_t& count = mine.event.span_or_extra;
  if (now.event.kind() == EventKind::kPost) {
    count = before + 1;
  } else if (now.event.kind() == EventKind::kTake) {
    count = before == 0 ? 0 : before - 1;
  }
  mine.event.set_kind(EventKind::kCount);
}

// Gives back an acquisition of the same mode, if there is one, else of the other one.
void WindowStart::release(const Event& event, Thread* thread) {
  const bool shared = event.kind() == EventKind::kReleaseShared;
  auto found = thread->acquisitions.rend();
  for (auto at = thread->acquisitions.rbegin(); at != thread->acquisitions.rend(); ++at) {
    if (!same_place(at->event, event)) {
      continue;
    }
    if ((at->event.kind() == EventKind::kAcquireShared) == shared) {
      found = at;
      break;
    }
    found = found == thread->acquisitions.rend() ? at : found;
  }
  if (found != thread->acquisitions.rend()) {
    thread->acquisitions.erase(std::next(found).base());
  }
}

std::vector<WindowStart::Carried> WindowStart::carried() const {
  std::vector<Carried> all;
  for (const Thread& thread : threads_) {
    all.insert(all.end(), thread.acquisitions.begin(), thread.acquisitions.end());
    all.insert(all.end(), thread.units.begin(), thread.units.end());
    if (thread.tried) {
      all.push_back(*thread.tried);
    }
    if (thread.ignored) {
      all.push_back(*thread.ignored);
    }
  }
  all.insert(all.end(), benign_.begin(), benign_.end());
  for (const auto& [place, count] : counts_) {
    all.push_back(count);
  }
  std::sort(all.begin(), all.end(),
            [](const Carried& a, const Carried& b) { return a.number < b.number; });
  return all;
}

std::vector<WindowStart::Carried> WindowStart::last_events() const {
  std::vector<Carried> all;
  for (const Thread& thread : threads_) {
    if (thread.last) {
      all.push_back(*thread.last);
    }
  }
  return all;
}

}  // namespace tsomon::predict
