#include "tests/probe/programs/hidden.h"

#define CPP_CASES
#include "tests/probe/programs/hidden_main.h"
