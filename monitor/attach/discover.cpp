#include "monitor/attach/discover.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <thread>
#include <tuple>

#include <fmt/format.h>

#include "monitor/attach/address_names.h"

namespace tsomon::attach {
namespace {

constexpr auto kPause = std::chrono::milliseconds(20);  // between two looks into the rings

struct Counts {
  uint64_t loads = 0;
  uint64_t stores = 0;
  std::set<uint32_t> threads;
  std::set<uint32_t> storing_threads;
  std::map<uint64_t, uint64_t> ips;
};

}  // namespace

std::vector<SharedPlace> rank_shared_places(const std::vector<MemorySample>& samples,
                                            size_t limit) {
  std::map<uint64_t, Counts> counts;
  for (const MemorySample& sample : samples) {
    Counts& place = counts[sample.address / kPlaceBytes * kPlaceBytes];
    ++(sample.store ? place.stores : place.loads);
    ++place.ips[sample.ip];
    place.threads.insert(sample.thread);
    if (sample.store) {
      place.storing_threads.insert(sample.thread);
    }
  }
  std::vector<SharedPlace> places;
  for (const auto& [address, place] : counts) {
    if (place.threads.size() < 2 || place.stores == 0) {
      continue;
    }
    const auto busiest =
        std::max_element(place.ips.begin(), place.ips.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    places.push_back({address, place.loads, place.stores,
                      static_cast<uint32_t>(place.threads.size()),
                      static_cast<uint32_t>(place.storing_threads.size()), busiest->first});
  }
  std::sort(places.begin(), places.end(), [](const SharedPlace& a, const SharedPlace& b) {
    return std::tie(b.threads, b.stores, b.loads, a.address) <
           std::tie(a.threads, a.stores, a.loads, b.address);
  });
  places.resize(std::min(places.size(), limit));
  return places;
}

std::vector<Proposal> name_places(const Target& target, const std::vector<SharedPlace>& places) {
  const AddressNames names(target);
  std::vector<Proposal> proposals;
  proposals.reserve(places.size());
  for (const SharedPlace& place : places) {
    proposals.push_back({place, fmt::format("0x{:x}:{}", place.address, kPlaceBytes),
                         names.data(place.address), names.code(place.busiest_ip)});
  }
  return proposals;
}

Result<Discovery> discover(const Target& target, double seconds, size_t limit) {
  auto sampler = MemorySampler::open(target.threads());
  if (!sampler) {
    return tl::unexpected<Error>(sampler.error());
  }
  std::vector<MemorySample> samples;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end && !target.ended()) {
    std::this_thread::sleep_for(kPause);
    (*sampler)->read(samples);
  }
  if (target.ended() || !target.same_program()) {
    return fail(ErrorKind::kUnreadable, "the process has ended, or runs another program now");
  }
  return Discovery{name_places(target, rank_shared_places(samples, limit)), (*sampler)->events(),
                   samples.size(), (*sampler)->lost()};
}

}  // namespace tsomon::attach
