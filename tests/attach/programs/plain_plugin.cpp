// A module that is loaded, used and unloaded again and again (plain_host.cpp).

volatile long plugin_total = 0;

extern "C" __attribute__((noinline)) void plugin_work(long amount) {
  const long before = plugin_total;
  plugin_total = before + amount;
}
