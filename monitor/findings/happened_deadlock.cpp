#include "monitor/findings/happened_deadlock.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "monitor/findings/event_text.h"
#include "tso/support/printable.h"

namespace tsomon {
namespace {

std::string name_of(const ReportedAccess& access) {
  return printable(access.variable.empty() ? access.operand : access.variable);
}

std::string place_of(const ReportedAccess& access) {
  return fmt::format("#{}{}{}", access.index, access.place.text.empty() ? "" : ", ",
                     printable(access.place.text));
}

std::string what_text(const HappenedDeadlock::Thread& thread) {
  switch (thread.waits_for) {
    case StuckThread::For::kThread:
      return "the end of " + printable(thread.wait.operand);
    case StuckThread::For::kCondition:
      return "a notification of " + name_of(thread.wait);
    case StuckThread::For::kLock:
      break;
  }
  return "lock " + name_of(thread.wait);
}

const char* what_name(StuckThread::For what) {
  return what == StuckThread::For::kThread      ? "thread"
         : what == StuckThread::For::kCondition ? "notification"
                                                : "lock";
}

}  // namespace

std::string HappenedDeadlock::text() const {
  if (!any()) {
    return {};
  }
  std::string out = fmt::format("deadlock, as it happened: {} thread{} for ever\n", threads.size(),
                                threads.size() == 1 ? " waits" : "s wait");
  for (const Thread& thread : threads) {
    out += fmt::format("  {} waits for {} ({})\n", printable(thread.wait.thread), what_text(thread),
                       place_of(thread.wait));
    if (thread.taken) {
      out += fmt::format("    which {} holds since {}\n", printable(thread.taken->thread),
                         place_of(*thread.taken));
    }
    for (const ReportedAccess& held : thread.holds) {
      out += fmt::format("    and holds lock {} since {}\n", name_of(held), place_of(held));
    }
  }
  return out + "\n";
}

FindingPlaces HappenedDeadlock::places() const {
  std::vector<ReportedAccess> waits;
  for (const Thread& thread : threads) {
    waits.push_back(thread.wait);
  }
  // In every run the same, however many threads wait at one place.
  const auto key = [](const ReportedAccess& wait) {
    return std::pair(wait.place.text, wait.address ? std::string() : wait.operand);
  };
  std::sort(waits.begin(), waits.end(),
            [&](const ReportedAccess& a, const ReportedAccess& b) { return key(a) < key(b); });
  waits.erase(std::unique(waits.begin(), waits.end(),
                          [&](const ReportedAccess& a, const ReportedAccess& b) {
                            return key(a) == key(b);
                          }),
              waits.end());
  FindingPlaces places = places_of(waits);
  for (const Thread& thread : threads) {
    for (const ReportedAccess& held : thread.holds) {
      places.add(held.place);
    }
  }
  return places;
}

nlohmann::ordered_json HappenedDeadlock::json() const {
  auto all = nlohmann::ordered_json::array();
  const auto lock_json = [](const ReportedAccess& access) {
    nlohmann::ordered_json object = {
        {"lock", access.variable.empty() ? access.operand : access.variable},
        {"location", access.place.text},
        {"event", access.index}};
    return object;
  };
  for (const Thread& thread : threads) {
    nlohmann::ordered_json waits = {{"kind", what_name(thread.waits_for)}};
    if (thread.waits_for == StuckThread::For::kThread) {
      waits["thread"] = thread.wait.operand;
    } else {
      waits["lock"] = thread.wait.variable.empty() ? thread.wait.operand : thread.wait.variable;
    }
    waits["location"] = thread.wait.place.text;
    waits["event"] = thread.wait.index;
    waits["held_by"] = thread.held_by;
    if (thread.taken) {
      waits["held_since"] = lock_json(*thread.taken);
    }
    auto holds = nlohmann::ordered_json::array();
    for (const ReportedAccess& held : thread.holds) {
      holds.push_back(lock_json(held));
    }
    all.push_back({{"thread", thread.wait.thread},
                   {"holds", std::move(holds)},
                   {"waits_for", std::move(waits)}});
  }
  return {{"threads", std::move(all)}, {"fingerprint", places().fingerprint}};
}

HappenedDeadlock happened_deadlock(const std::vector<StuckThread>& stuck, const Symbols& symbols,
                                   const ReportNames& names) {
  HappenedDeadlock deadlock;
  // What a request or a wait is for has no bytes either.
  const auto described = [&](const LastEvent& last) {
    ReportedAccess access = reported_access(last.index, last.event, symbols, names);
    if (access.variable.empty() && names.variable && last.event.address >= symbols.names.size()) {
      access.variable = names.variable(last.event.address);
    }
    return access;
  };
  for (const StuckThread& one : stuck) {
    HappenedDeadlock::Thread& thread = deadlock.threads.emplace_back();
    thread.waits_for = one.waits_for;
    thread.wait = described(one.wait);
    if (one.waits_for == StuckThread::For::kThread) {
      thread.wait.variable.clear();
      thread.wait.operand = thread_text(static_cast<ThreadId>(one.wait.event.address), symbols);
    }
    for (const ThreadId holder : one.held_by) {
      thread.held_by.push_back(thread_text(holder, symbols));
    }
    if (one.waits_for == StuckThread::For::kLock && one.taken) {
      thread.taken = described(*one.taken);
    }
    for (const LastEvent& held : one.holds) {
      thread.holds.push_back(described(held));
    }
  }
  return deadlock;
}

Error two_holders_error(const TwoHolders& holders, const Symbols& symbols) {
  const auto thread = [&](const LastEvent& event) {
    return thread_text(event.event.thread, symbols);
  };
  const std::string lock = operand_text(holders.first.event, symbols);
  return {ErrorKind::kMalformed,
          {},
          fmt::format("event {}", holders.second.index),
          fmt::format("two threads hold one lock: {} acquires {}, which {} has held since event {} "
                      "and gives back at event {}",
                      thread(holders.second), lock, thread(holders.first), holders.first.index,
                      holders.given_back.index)};
}

}  // namespace tsomon
