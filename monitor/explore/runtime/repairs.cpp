#include "monitor/explore/runtime/repairs.h"

namespace tsomon::explore {
namespace {

const AtomicPlace* atomic_place(uint64_t pc) {
  for (uint32_t i = 0; pc != 0 && i < at_most(channel->atomic_count, kMaxRepairs); ++i) {
    if (channel->atomic[i].pc == pc) {
      return &channel->atomic[i];
    }
  }
  return nullptr;
}

bool has_fence(uint64_t pc) {
  for (uint32_t i = 0; pc != 0 && i < at_most(channel->fence_count, kMaxRepairs); ++i) {
    if (channel->fences[i] == pc) {
      return true;
    }
  }
  return false;
}

void put_fence(uint64_t pc) {
  Operation fence;
  fence.op = Op::kFence;
  fence.pc = pc;
  fence.inserted = true;
  step(fence);
}

bool stays(const Thread& thread, const Operation& operation, const AtomicPlace* place) {
  if (operation.op == Op::kEnd || thread.block_marks != thread.unit_marks) {
    return false;
  }
  return place == nullptr ||
         (place->block == thread.block && (place->order > 0 || place->order >= thread.block_order));
}

}  // namespace

void before_repaired(Thread& thread, const Operation& operation) {
  if (operation.inserted) {
    return;
  }
  if (thread.fence_due) {
    thread.fence_due = false;
    put_fence(operation.pc);
  }
  const AtomicPlace* const place = atomic_place(operation.pc);
  if (thread.in_block && !stays(thread, operation, place)) {
    if (thread.buffered != 0) {
      put_fence(operation.pc);
    }
    thread.in_block = false;
  }
  if (!thread.in_block && place != nullptr && place->block != 0 && thread.buffered != 0) {
    put_fence(operation.pc);
  }
}

void at_repaired(Thread& thread, const Operation& operation) {
  if (operation.inserted) {
    return;
  }
  thread.fence_due = operation.op == Op::kStore && has_fence(operation.pc);
  const AtomicPlace* const place = atomic_place(operation.pc);
  if (place == nullptr || place->block == 0) {
    return;
  }
  if (!thread.in_block) {
    thread.in_block = true;
    thread.block = place->block;
    thread.block_marks = thread.unit_marks;
  }
  thread.block_order = place->order;
}

void keep_blocks_whole() {
  for (uint32_t number = 0; number < thread_count; ++number) {
    if (!threads[number].exists || threads[number].ended || !threads[number].in_block) {
      continue;
    }
    const uint64_t mine = uint64_t{1} << number;
    if (((enabled_now | commits_now) & mine) == 0) {
      finish(End::kInterrupted, 0);
    }
    enabled_now &= mine;
    commits_now &= mine;
    return;
  }
}

}  // namespace tsomon::explore
