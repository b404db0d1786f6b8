// A shared library that is loaded while the program is recorded.
long calls = 0;

extern "C" long call_plugin() { return ++calls; }
