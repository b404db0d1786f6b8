#include "monitor/attach/discover.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <tuple>

#include <doctest/doctest.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/monitor/waiting_process.h"

namespace tsomon::attach {

uint64_t discovered_counters[4];
void discovered_function() { asm volatile("nop\n nop\n nop"); }

namespace {

void append(std::vector<char>& bytes, const void* data, size_t size) {
  const char* const begin = static_cast<const char*>(data);
  bytes.insert(bytes.end(), begin, begin + size);
}

void append_header(std::vector<char>& bytes, uint32_t type, size_t body) {
  const perf_event_header header{type, 0, static_cast<uint16_t>(sizeof(perf_event_header) + body)};
  append(bytes, &header, sizeof header);
}

void append_sample(std::vector<char>& bytes, uint64_t ip, uint32_t thread, uint64_t address,
                   uint64_t operation, size_t more = 0) {
  append_header(bytes, PERF_RECORD_SAMPLE, 32 + more);
  const uint32_t process = 7;
  perf_mem_data_src source{};
  source.mem_op = operation & 31;
  source.mem_lvl = PERF_MEM_LVL_HIT;
  append(bytes, &ip, 8);
  append(bytes, &process, 4);
  append(bytes, &thread, 4);
  append(bytes, &address, 8);
  append(bytes, &source.val, 8);
  bytes.resize(bytes.size() + more);
}

using Fields = std::tuple<uint64_t, uint64_t, uint32_t, bool>;

std::vector<Fields> fields(const std::vector<MemorySample>& samples) {
  std::vector<Fields> all;
  all.reserve(samples.size());
  for (const MemorySample& sample : samples) {
    all.emplace_back(sample.ip, sample.address, sample.thread, sample.store);
  }
  return all;
}

using PlaceFields = std::tuple<uint64_t, uint64_t, uint64_t, uint32_t, uint32_t, uint64_t>;

std::vector<PlaceFields> fields(const std::vector<SharedPlace>& places) {
  std::vector<PlaceFields> all;
  all.reserve(places.size());
  for (const SharedPlace& place : places) {
    all.emplace_back(place.address, place.loads, place.stores, place.threads, place.storing_threads,
                     place.busiest_ip);
  }
  return all;
}

// Counts every place by itself and takes the best one out again and again.
std::vector<SharedPlace> naive_ranking(const std::vector<MemorySample>& samples, size_t limit) {
  std::vector<SharedPlace> places;
  std::set<uint64_t> done;
  for (const MemorySample& first : samples) {
    const uint64_t address = first.address & ~uint64_t{7};
    if (!done.insert(address).second) {
      continue;
    }
    SharedPlace place{address, 0, 0, 0, 0, 0};
    std::set<uint32_t> threads;
    std::set<uint32_t> storing;
    std::multiset<uint64_t> ips;
    for (const MemorySample& sample : samples) {
      if ((sample.address & ~uint64_t{7}) == address) {
        sample.store ? ++place.stores : ++place.loads;
        threads.insert(sample.thread);
        ips.insert(sample.ip);
        if (sample.store) {
          storing.insert(sample.thread);
        }
      }
    }
    place.threads = static_cast<uint32_t>(threads.size());
    place.storing_threads = static_cast<uint32_t>(storing.size());
    for (const uint64_t ip : ips) {
      if (place.busiest_ip == 0 || ips.count(ip) > ips.count(place.busiest_ip)) {
        place.busiest_ip = ip;
      }
    }
    if (place.threads > 1 && place.stores > 0) {
      places.push_back(place);
    }
  }
  std::vector<SharedPlace> ranked;
  while (!places.empty() && ranked.size() < limit) {
    size_t best = 0;
    for (size_t i = 1; i < places.size(); ++i) {
      const SharedPlace& a = places[i];
      const SharedPlace& b = places[best];
      const bool better = a.threads != b.threads ? a.threads > b.threads
                          : a.stores != b.stores ? a.stores > b.stores
                          : a.loads != b.loads   ? a.loads > b.loads
                                                 : a.address < b.address;
      best = better ? i : best;
    }
    ranked.push_back(places[best]);
    places.erase(places.begin() + static_cast<std::ptrdiff_t>(best));
  }
  return ranked;
}

}  // namespace

TEST_CASE("discover: samples are read from perf records") {
  constexpr uint64_t kKernel = 0xffff888000001000;
  std::vector<char> bytes;
  append_sample(bytes, 0x401000, 11, 0x7000, PERF_MEM_OP_LOAD);
  append_sample(bytes, 0x401004, 12, 0x7008, PERF_MEM_OP_STORE, 16);  // more than was asked for
  append_header(bytes, PERF_RECORD_THROTTLE, 24);
  bytes.resize(bytes.size() + 24);
  append_sample(bytes, 0x401008, 12, 0x7010, PERF_MEM_OP_NA);
  append_sample(bytes, 0x40100c, 12, 0x7010, 0);
  append_sample(bytes, 0x401010, 12, 0x7018, PERF_MEM_OP_PFETCH);
  append_sample(bytes, 0x401014, 12, kKernel, PERF_MEM_OP_LOAD);
  append_sample(bytes, kKernel, 12, 0x7020, PERF_MEM_OP_LOAD);
  append_sample(bytes, 0x401018, 12, 0, PERF_MEM_OP_LOAD);
  append_header(bytes, PERF_RECORD_LOST, 16);
  const uint64_t id = 3;
  const uint64_t lost = 41;
  append(bytes, &id, 8);
  append(bytes, &lost, 8);
  append_sample(bytes, 0x40101c, 13, 0x7028, PERF_MEM_OP_LOAD | PERF_MEM_OP_STORE);

  const std::vector<Fields> certain = {{0x401000, 0x7000, 11, false}, {0x401004, 0x7008, 12, true}};
  const Fields last{0x40101c, 0x7028, 13, true};
  for (const SampledAccess usual :
       {SampledAccess::kUnknown, SampledAccess::kLoad, SampledAccess::kStore}) {
    CAPTURE(static_cast<int>(usual));
    std::vector<Fields> expected = certain;
    if (usual != SampledAccess::kUnknown) {
      const bool store = usual == SampledAccess::kStore;
      expected.emplace_back(0x401008, 0x7010, 12, store);
      expected.emplace_back(0x40100c, 0x7010, 12, store);
    }
    expected.push_back(last);
    std::vector<MemorySample> samples;
    CHECK(decode_memory_samples(bytes, usual, samples) == 41);
    CHECK(fields(samples) == expected);
  }

  // Cut off anywhere, the whole records in front are read and nothing else.
  size_t most = 0;
  for (size_t size = 0; size <= bytes.size(); ++size) {
    std::vector<MemorySample> samples;
    const std::vector<char> part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    decode_memory_samples(part, SampledAccess::kLoad, samples);
    CHECK(samples.size() >= most);
    CHECK(samples.size() <= most + 1);
    most = samples.size();
  }
  CHECK(most == 5);

  // A record without a length is none.
  std::vector<char> endless(64);
  std::vector<MemorySample> none;
  CHECK(decode_memory_samples(endless, SampledAccess::kLoad, none) == 0);
  CHECK(none.empty());
}

TEST_CASE("discover: what many threads access and some write comes first") {
  const std::vector<MemorySample> samples = {
      {1, 0x1000, 1, true},  {1, 0x1000, 1, true},   // one thread's own
      {1, 0x2000, 1, false}, {1, 0x2000, 2, false},  // never written
      {1, 0x3004, 1, true},  {2, 0x3000, 2, false},  // shared
      {3, 0x4000, 1, false}, {3, 0x4000, 2, true},  {3, 0x4000, 3, false},
      {4, 0x5000, 1, true},  {5, 0x5000, 2, true},  {5, 0x5000, 2, false},
  };
  const std::vector<PlaceFields> expected = {
      {0x4000, 2, 1, 3, 1, 3}, {0x5000, 1, 2, 2, 2, 5}, {0x3000, 1, 1, 2, 1, 1}};
  CHECK(fields(rank_shared_places(samples, 10)) == expected);
  CHECK(rank_shared_places(samples, 2).size() == 2);
  CHECK(rank_shared_places({}, 2).empty());
}

TEST_CASE("discover: the ranking is that of counting one by one") {
  std::mt19937_64 random(6);
  for (int round = 0; round < 300; ++round) {
    std::vector<MemorySample> samples(random() % 60);
    for (MemorySample& sample : samples) {
      sample = {0x400 + random() % 4, 0x1000 + random() % 64,
                static_cast<uint32_t>(1 + random() % 4), random() % 3 == 0};
    }
    const size_t limit = 1 + random() % 10;
    CHECK(fields(rank_shared_places(samples, limit)) == fields(naive_ranking(samples, limit)));
  }
}

TEST_CASE("discover: places have the names of the process") {
  const testing::WaitingProcess process;
  const auto target = Target::open(process.pid());
  REQUIRE(target);
  const auto code = reinterpret_cast<uint64_t>(&discovered_function);
  SharedPlace variable{reinterpret_cast<uint64_t>(&discovered_counters[1]), 1, 1, 2, 1, code + 1};
  SharedPlace nowhere{0x10, 1, 1, 2, 1, 0x20};
  const std::vector<Proposal> proposals = name_places(*target, {variable, nowhere});
  REQUIRE(proposals.size() == 2);
  CHECK(proposals[0].data == "tsomon::attach::discovered_counters+0x8");
  CHECK(proposals[0].code == "tsomon::attach::discovered_function+0x1 (test_monitor)");
  char watch[40];
  std::snprintf(watch, sizeof watch, "0x%llx:8", static_cast<unsigned long long>(variable.address));
  CHECK(proposals[0].watch == watch);
  CHECK(proposals[1].data == "0x10");
  CHECK(proposals[1].code == "0x20");
}

TEST_CASE("discover: a machine that samples no accesses says so and what to do") {
  const testing::WaitingProcess process;
  const auto target = Target::open(process.pid());
  REQUIRE(target);
  const auto found = discover(*target, 0.05, 5);
  if (found) {
    CHECK_FALSE(found->events.empty());  // a process that waits has nothing to propose
    CHECK(found->proposals.empty());
  } else {
    CHECK(found.error().kind == ErrorKind::kEnvironment);
    CHECK(found.error().message.find("; ") != std::string::npos);
    MESSAGE(found.error().message);
  }
}

}  // namespace tsomon::attach
