// Operations in words.
#pragma once

#include "offline/explore/operation.h"

namespace tsomon::explore {

inline const char* operation_name(Op op) {
  switch (op) {
    case Op::kLoad:
      return "load";
    case Op::kStore:
      return "store";
    case Op::kExchange:
      return "exchange";
    case Op::kAdd:
    case Op::kAnd:
    case Op::kOr:
    case Op::kXor:
    case Op::kNand:
    case Op::kNegate:
      return "update";
    case Op::kCompareExchange:
      return "compare-exchange";
    case Op::kLock:
    case Op::kSpinLock:
    case Op::kWriteLock:
      return "lock";
    case Op::kReadLock:
      return "read lock";
    case Op::kTryLock:
    case Op::kTryReadLock:
    case Op::kTryWriteLock:
    case Op::kSpinTryLock:
      return "try lock";
    case Op::kUnlock:
    case Op::kReadWriteUnlock:
      return "unlock";
    case Op::kSemaphoreWait:
    case Op::kSemaphoreTryWait:
    case Op::kConditionLeave:
    case Op::kConditionAbandon:
    case Op::kBarrierLeave:
    case Op::kTimedOut:
      return "wait";
    case Op::kConditionEnter:
    case Op::kBarrierArrive:
      return "arrive";
    case Op::kSemaphorePost:
    case Op::kConditionSignal:
    case Op::kConditionBroadcast:
      return "signal";
    case Op::kOnceEnter:
    case Op::kOnceLeave:
      return "once";
    case Op::kFence:
      return "fence";
    case Op::kBegin:
      return "begin";
    case Op::kCreate:
      return "start";
    case Op::kJoin:
      return "join";
    case Op::kEnd:
      return "end";
    case Op::kCall:
      return "call";
    case Op::kAnswer:
      return "answer";
  }
  return "";
}

}  // namespace tsomon::explore
