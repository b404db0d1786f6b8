// A correct program: what one thread stores the other one would only access where a condition holds,
// and none does. An optimiser may load it all the same.
#include <pthread.h>

#define ALONE __attribute__((noinline))

struct Node {
  struct Node *left, *right;
};

static int shared[16], flags[100];
static struct Node nodes[3];
static int to[64], chosen[64], from[64];

ALONE int load_in_loop(int n, int wanted) {
  int sum = 0;
  for (int i = 0; i < n; ++i) {
    if (wanted) sum += shared[0];
    flags[i] = sum;
  }
  return sum;
}
ALONE int load_by_element(int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) {
    if (flags[i]) sum += shared[1];
  }
  return sum;
}
ALONE void count_in_loop(int n) {
  for (int i = 0; i < n; ++i) {
    if (flags[i]) shared[2]++;
  }
}
ALONE struct Node* child(struct Node* node, int key) { return key < 5 ? node->left : node->right; }
ALONE int one_of_two(int first) { return first ? shared[3] : shared[4]; }
ALONE int load_if(int wanted) {
  int result = 7;
  if (wanted) result = shared[5];
  return result;
}
ALONE void move_chosen(int n, const int* which, int* restrict into, const int* out_of) {
  for (int i = 0; i < n; ++i) {
    if (which[i]) into[i] = out_of[i] + 1;
  }
}
ALONE int both(int a, int b) { return (a && shared[6]) | (b && shared[7]); }
ALONE int by_case(int which) {
  switch (which) {
    case 1:
      return shared[8];
    case 2:
      return shared[9];
    default:
      return 3;
  }
}
ALONE int before_loop(int n, int wanted) {
  int sum = wanted ? shared[10] : 0;
  for (int i = 0; i < n; ++i) {
    if (flags[i]) sum += shared[10] * 2;
  }
  return sum;
}
ALONE void store_if(int wanted) {
  if (wanted) {
    shared[11] = 1;
  } else {
    flags[50] = 0;
  }
}
ALONE void store_in_loop(int n) {
  for (int i = 0; i < n; ++i) {
    if (flags[i] > 5) shared[12] = i;
  }
}

static void* look(void* nothing) {
  volatile int used = 0;
  for (int i = 0; i < 3; ++i) {
    used += load_in_loop(5, 0) + load_by_element(40);
    count_in_loop(40);
    used += child(&nodes[0], 1) != 0;
    used += one_of_two(1) + load_if(0);
    move_chosen(64, chosen, to, from);
    used += both(0, 0) + by_case(0) + by_case(5) + before_loop(40, 0);
    store_if(0);
    store_in_loop(40);
  }
  return nothing;
}

static void* change(void* nothing) {
  for (int i = 0; i < 16; ++i) {
    if (i != 3) shared[i]++;
  }
  nodes[0].right = &nodes[1];
  for (int i = 0; i < 64; ++i) {
    to[i] = 5;
    from[i] = 3;
  }
  return nothing;
}

int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, look, 0);
  pthread_create(&b, 0, change, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  return 0;
}
