// What a fleet keeps, whoever keeps it: a queue behind five calls, chunks, verdicts, and what canaries say of themselves.
//
// Queue       put(), take(), extend(), done(), park(). A piece of work waits, is taken under a lease, and ends with a verdict, or is
//             parked. A lease that runs out puts it back. Tenants are served in turn, whoever has more waiting.
// Once        Work is called by the hash of what it is (work.h): put() of what is there, or has a verdict, adds nothing. The first
//             verdict stays, with its findings; another one is not kept.
// Lost        No server is trusted to keep what it said it has. Whoever submitted asks standing() until it is kDone, and puts
//             again what is kUnknown; a worker that does not find a chunk parks the work as kNeedsContent.
// Forgotten   Nothing, until prune() says how old what goes is.
// Errors      kUsage: the address, or what it names, is none. kEnvironment: the server cannot be reached, refuses the
//             credentials, is full; kMalformed: what it keeps is not as docs/formats/fleet.md says.
// Thread-safety: one thread for each object; any number of objects, on any machines.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/fleet/work.h"
#include "tso/support/result.h"

namespace tsomon::fleet {

enum class State : uint8_t { kUnknown, kWaiting, kRunning, kDone, kParked };
const char* name_of(State state);

struct Standing {
  State state = State::kUnknown;
  std::string reason;  // of kParked
  bool needs_content = false;
};

struct Taken {
  Work work;
  uint64_t tries = 1;  // this one included
  std::string lease;   // of whoever keeps the queue
};

enum class Parking : uint8_t {
  kBack,         // it waits as before: this was no try
  kLater,        // likewise, for kLaterPause: it waits for other work
  kAgain,        // it waits again, for another worker if there is one
  kForGood,      // until it is submitted again
  kNeedsContent  // likewise; some of its chunks are not there
};

struct ParkedWork {
  std::string id;
  std::string tenant;
  std::string name;
  std::string reason;
};

struct FleetStatus {
  uint64_t waiting = 0;
  uint64_t running = 0;
  uint64_t done = 0;
  uint64_t parked = 0;
  uint64_t done_lately = 0;                 // in the last minute
  std::vector<ParkedWork> parked_work;      // the last ones, kMostListed at most
  std::map<std::string, uint64_t> tenants;  // what waits of each
  std::string server;                       // what it is, in a few words
};

struct Pruned {
  uint64_t chunks = 0;
  uint64_t verdicts = 0;
  uint64_t sightings = 0;
  uint64_t parked = 0;
  uint64_t canaries = 0;
};

class Fleet {
 public:
  static constexpr size_t kMostListed = 100;
  static constexpr uint64_t kMostWaiting = 100'000;  // of one tenant
  static constexpr std::chrono::milliseconds kLaterPause{1000};

  virtual ~Fleet() = default;

  // What it was before. kEnvironment also when the tenant has kMostWaiting pieces waiting. `again`: parked work waits again.
  virtual Result<State> put(const Work& work, bool again) = 0;
  // Nothing waits: none. What cannot be read is parked.
  virtual Result<std::optional<Taken>> take(const std::string& worker,
                                            std::chrono::milliseconds lease) = 0;
  // False: somebody else has it now, or it is gone.
  virtual Result<bool> extend(const Taken& taken, std::chrono::milliseconds lease) = 0;
  // False: there is a verdict already.
  virtual Result<bool> done(const Taken& taken, const Verdict& verdict,
                            const std::vector<Sighting>& sightings) = 0;
  virtual Result<void> park(const Taken& taken, const std::string& worker, Parking how,
                            const std::string& reason) = 0;

  virtual Result<Standing> standing(const std::string& tenant, const std::string& id) = 0;
  virtual Result<std::optional<Verdict>> verdict(const std::string& id) = 0;

  // Which of them are not there. Those that are count as put now, where the server notes that (PostgreSQL, to within an hour).
  virtual Result<std::vector<std::string>> missing(const std::vector<std::string>& chunks) = 0;
  // `bytes`: compressed (contents.h).
  virtual Result<void> put_chunk(const std::string& digest, std::string_view bytes) = 0;
  virtual Result<std::optional<std::string>> chunk(const std::string& digest) = 0;
  // One that is not what its name says, so that it is missing().
  virtual Result<void> forget_chunk(const std::string& digest) = 0;

  virtual Result<void> put_canary(const Canary& canary) = 0;
  // In no order.
  virtual Result<void> canaries(const std::function<void(Canary&&)>& each) = 0;

  virtual Result<FleetStatus> status() = 0;
  // In no order. `fingerprint`: those that begin so.
  virtual Result<void> sightings(const std::string& fingerprint,
                                 const std::function<void(Sighting&&)>& each) = 0;

  // Removes chunks that were put longer than `chunks` ago, and what was stored longer than `results` ago: verdicts with their
  // sightings, parked work, what canaries said last. What waits or runs stays; if its chunks are gone it is parked as
  // kNeedsContent.
  virtual Result<Pruned> prune(std::chrono::microseconds chunks,
                               std::chrono::microseconds results) = 0;
};

}  // namespace tsomon::fleet
