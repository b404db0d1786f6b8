// Units that are cancelled: in scopes, inside other units, by the calls of C, and (with the option
// unit=in_function) of a function.
#include "tsomon.h"

int shared;

__attribute__((noinline)) void attempt(bool fails) {
  TSOMON_UNIT("attempt");
  shared = 1;
  if (fails) {
    TSOMON_UNIT_CANCEL();
    shared = 2;
  }
}

extern "C" __attribute__((noinline)) void in_function() {
  shared = 6;
  TSOMON_UNIT_CANCEL();
  shared = 7;
}

int main() {
  attempt(true);
  attempt(false);
  {
    TSOMON_UNIT("outer");
    attempt(true);
    shared = 3;
  }
  {
    TSOMON_UNIT("outer");
    TSOMON_UNIT_CANCEL();
    tsomon_unit_begin("of C");
    shared = 4;
    tsomon_unit_cancel();
    TSOMON_UNIT("after");
    shared = 5;
  }
  TSOMON_UNIT("caller");
  in_function();
}
