// A list whose nodes lie scattered in an array.
#include "traced.h"

struct Node {
  Node* next;
  long value;
};
static Node nodes[509];
static long sum;

int main() {
  for (int i = 0; i < 509; ++i) {
    nodes[i] = {&nodes[(i * 7 + 3) % 509], i};
  }
  begin_trace();
  Node* at = &nodes[5];
  for (int i = 0; i < 4000; ++i) {
    TRACE_VALUE(at);
    sum += at->value;
    at->value = sum;
    at = at->next;
  }
  end_trace();
  return 0;
}
