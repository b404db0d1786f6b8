/* Not the C library's. */
int getline(char line[], int limit) {
  for (int i = 0; i < limit; ++i) {
    line[i] = (char)i;
  }
  return limit;
}
int strtok(int a, int b, int c, int d) { return a + b + c + d; }
unsigned long strlen(const char *text) {
  const char *end = text;
  while (*end) {
    ++end;
  }
  return (unsigned long)(end - text);
}
