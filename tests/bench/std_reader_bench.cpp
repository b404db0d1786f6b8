// How fast text traces become events, beside mawk counting one field of the same file and beside
// the floor, memchr over the newlines of the same bytes.
//
//   std_reader_bench [LINES [ROUNDS]]
//
// The trace is generated from a fixed seed. Every round runs all three, one after the other; the
// figures are medians over the rounds, the ratio is the median of the rounds' ratios.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "decoders/std/reader.h"

namespace {

using namespace tsomon;

struct Flavour {
  const char* name;
  bool addresses;  // byte ranges and intervals, as `tsomon script` writes them
  bool units;
};

std::string generate(size_t lines, const Flavour& flavour) {
  std::mt19937_64 random(2016);
  constexpr unsigned kThreads = 8;
  constexpr unsigned kNames = 5000;
  std::string text;
  std::vector<std::vector<unsigned>> held(kThreads);
  std::vector<bool> in_unit(kThreads);
  uint64_t stamp = 123456789012;
  for (size_t i = 0; i < lines; ++i) {
    const auto thread = static_cast<unsigned>(random() % kThreads);
    const unsigned dice = random() % 100;
    fmt::format_to(std::back_inserter(text), "T{}|", thread);
    // Few names are hot, as in programs.
    const double u = static_cast<double>(random() >> 11) * 0x1p-53;
    const auto name = static_cast<unsigned>(u * u * u * kNames);
    if (dice < 10 && !held[thread].empty()) {
      fmt::format_to(std::back_inserter(text), "rel(L{})", held[thread].back());
      held[thread].pop_back();
    } else if (dice < 10) {
      held[thread].push_back(name % 100);
      fmt::format_to(std::back_inserter(text), "acq(L{})", name % 100);
    } else if (dice < 20 && flavour.units) {
      text += in_unit[thread] ? "end" : "begin";
      in_unit[thread] = !in_unit[thread];
    } else if (flavour.addresses) {
      fmt::format_to(std::back_inserter(text), "{}(0x{:x}+8)", dice < 65 ? 'r' : 'w',
                     0x7f1234560000 + 8 * name);
    } else {
      fmt::format_to(std::back_inserter(text), "{}(V{})", dice < 65 ? 'r' : 'w', name);
    }
    fmt::format_to(std::back_inserter(text), "|{}", random() % 2000);
    if (flavour.addresses) {
      stamp += random() % 50;
      fmt::format_to(std::back_inserter(text), "|{}..{}", stamp, stamp + random() % 200);
    }
    text += '\n';
  }
  return text;
}

double seconds(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

size_t read_events(const std::string& path) {
  auto reader = StdReader::open(path);
  EventBlock block;
  size_t events = 0;
  for (;;) {
    const auto more = reader ? reader->next(block) : Result<bool>(tl::unexpected(reader.error()));
    if (!more) {
      std::fprintf(stderr, "%s\n", more.error().to_string().c_str());
      std::exit(1);
    }
    if (!*more) {
      return events;
    }
    events += block.events.size();
  }
}

size_t count_newlines(const std::string& text) {
  size_t lines = 0;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    at = static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(end - at))) + 1;
    ++lines;
  }
  return lines;
}

int run(int argc, char** argv) {
  const size_t lines = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 2000000;
  const size_t rounds = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 7;
  if (lines == 0 || rounds == 0) {
    std::fprintf(stderr, "usage: std_reader_bench [LINES [ROUNDS]]\n");
    return 2;
  }
  char path[] = "/tmp/std_reader_bench.XXXXXX";
  const int fd = ::mkstemp(path);
  if (fd < 0) {
    std::perror("mkstemp");
    return 4;
  }
  ::close(fd);
  const std::string mawk = fmt::format("mawk -F'|' '{{n[$2]++}}' {}", path);
  const bool have_mawk = std::system("command -v mawk >/dev/null 2>&1") == 0;
  if (!have_mawk) {
    fmt::print("mawk is not installed (apt-get install mawk): no ratio\n");
  }
  for (const Flavour& flavour :
       {Flavour{"names", false, false}, Flavour{"names and units", false, true},
        Flavour{"addresses, units, intervals", true, true}}) {
    const std::string text = generate(lines, flavour);
    std::ofstream(path, std::ios::binary) << text;
    std::vector<double> reader_times;
    std::vector<double> mawk_times;
    std::vector<double> floor_times;
    std::vector<double> ratios;
    for (size_t round = 0; round < rounds; ++round) {
      reader_times.push_back(seconds([&] {
        if (read_events(path) != lines) {
          std::exit(1);
        }
      }));
      floor_times.push_back(seconds([&] {
        if (count_newlines(text) != lines) {
          std::exit(1);
        }
      }));
      if (have_mawk) {
        mawk_times.push_back(seconds([&] {
          if (std::system(mawk.c_str()) != 0) {
            std::exit(1);
          }
        }));
        ratios.push_back(mawk_times.back() / reader_times.back());
      }
    }
    const auto rate = [&](const std::vector<double>& times) {
      return static_cast<double>(lines) / median(times) / 1e6;
    };
    fmt::print("{} ({:.1f} bytes a line): reader {:.1f} M lines/s, memchr {:.1f} M lines/s",
               flavour.name, static_cast<double>(text.size()) / static_cast<double>(lines),
               rate(reader_times), rate(floor_times));
    if (have_mawk) {
      fmt::print(", mawk {:.1f} M lines/s: reader / mawk = {:.2f}", rate(mawk_times),
                 median(ratios));
    }
    fmt::print("\n");
  }
  ::unlink(path);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "std_reader_bench: %s\n", error.what());
    return 1;
  }
}
