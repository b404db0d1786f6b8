#include "monitor/explore/runtime/policy.h"

namespace tsomon::explore {
namespace {

uint64_t random_state = 1;
uint32_t priorities[2 * (kMaxThreads + 1)];
uint32_t lowest_priority = 0;
uint32_t changes[16];

uint64_t next_random() {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}

uint32_t bit_at(uint64_t mask, uint32_t place) {
  while (place-- != 0) {
    mask &= mask - 1;
  }
  return static_cast<uint32_t>(__builtin_ctzll(mask));
}

// Who may go on without what it waits for does so now and then.
Choice with_answer(Choice choice) {
  const Operation& next = threads[choice.thread].pending;
  if (choice.commit != 0 || next.op != Op::kAnswer || next.a == 1) {
    return choice;
  }
  const bool gives_up = (next.a >> kTimeOver & 1) != 0 && next_random() % 2 == 0;
  const bool wakes = (next.a >> kSpurious & 1) != 0 && next_random() % 8 == 0;
  choice.answer = gives_up ? kTimeOver : wakes ? kSpurious : kWaits;
  return choice;
}

Choice choose_at_random() {
  const auto enabled = static_cast<uint32_t>(__builtin_popcountll(enabled_now));
  const auto commits = static_cast<uint32_t>(__builtin_popcountll(commits_now));
  const auto place = static_cast<uint32_t>(next_random() % (enabled + commits));
  return place < enabled
             ? Choice{static_cast<uint16_t>(bit_at(enabled_now, place)), 0, 0}
             : Choice{static_cast<uint16_t>(bit_at(commits_now, place - enabled)), 1, 0};
}

// Priorities of threads and of their buffers, drawn when they are first seen.
Choice choose_by_priority() {
  uint32_t best = UINT32_MAX;
  for (uint32_t actor = 0; actor < 2 * thread_count; ++actor) {
    const uint64_t mask = actor % 2 == 0 ? enabled_now : commits_now;
    if (((mask >> (actor / 2)) & 1) == 0) {
      continue;
    }
    if (priorities[actor] == 0) {
      priorities[actor] = (1U << 20) + static_cast<uint32_t>(next_random() % (1U << 20));
    }
    best = best == UINT32_MAX || priorities[actor] > priorities[best] ? actor : best;
  }
  for (uint32_t i = 0; i + 1 < channel->depth && i < 16; ++i) {
    if (changes[i] == steps) {
      priorities[best] = (1U << 19) - ++lowest_priority;
      changes[i] = UINT32_MAX;
      return choose_by_priority();
    }
  }
  return {static_cast<uint16_t>(best / 2), static_cast<uint8_t>(best % 2), 0};
}

bool is_contended(uint16_t thread, bool load, uint64_t address, uint32_t size) {
  for (uint64_t byte = address; byte < address + (size == 0 ? 1 : size); ++byte) {
    if (table_has(channel->contended, contended_access(byte, thread, load))) {
      return true;
    }
  }
  return false;
}

// Whether no other thread can see the thread's next operation.
bool is_local(uint16_t thread, const Operation& next) {
  if (next.op == Op::kAnswer) {
    return next.a == 1;
  }
  return !has_cell(next.op) || (next.op == Op::kStore && channel->model == Model::kTso) ||
         !is_contended(thread, next.op == Op::kLoad, next.address,
                       is_object(next.op) ? 1 : next.size);
}

// False: there is none.
bool choose_local(Choice* choice) {
  for (uint32_t at = 0; at < thread_count; ++at) {
    const auto number = static_cast<uint16_t>(at);
    const Thread& thread = threads[number];
    if (((commits_now >> number) & 1) != 0 &&
        !is_contended(number, false, thread.buffer[0].address, thread.buffer[0].size)) {
      *choice = {number, 1, 0};
      return true;
    }
    if (((enabled_now >> number) & 1) != 0 && is_local(number, thread.pending)) {
      *choice = {number, 0, 0};
      return true;
    }
  }
  return false;
}

}  // namespace

void begin_policy() {
  random_state = channel->seed * 0x9E3779B97F4A7C15ULL + 0x1234567;
  random_state = random_state == 0 ? 1 : random_state;
  for (int i = 0; i < 8; ++i) {
    next_random();
  }
  for (uint32_t& change : changes) {
    change = static_cast<uint32_t>(next_random() % (channel->length == 0 ? 1 : channel->length));
  }
}

Choice choose_by_policy() {
  switch (channel->policy) {
    case Policy::kRandom:
      return with_answer(choose_at_random());
    case Policy::kPct:
      return with_answer(choose_by_priority());
    case Policy::kContinue:
      if (commits_now == 0 && ((enabled_now >> self) & 1) != 0) {
        return {static_cast<uint16_t>(self), 0, 0};
      }
      break;
    case Policy::kLocalFirst:
      if (Choice local; choose_local(&local)) {
        return local;
      }
      break;
    case Policy::kFirst:
      break;
  }
  return commits_now != 0 ? Choice{static_cast<uint16_t>(__builtin_ctzll(commits_now)), 1, 0}
                          : Choice{static_cast<uint16_t>(__builtin_ctzll(enabled_now)), 0, 0};
}

}  // namespace tsomon::explore
