// A text trace as the report checker sees it: read, divided into units and ordered by plain loops,
// sharing no code with the program under test.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tsomon::reports {

struct PlainEvent {
  std::string thread;
  std::string op;        // as written: r w rmw fence acq rel fork join begin end wait
  std::string location;  // without value; the thread of fork and join; the label of begin
  uint64_t address = 0;  // of a byte range
  uint64_t size = 0;     // 0: a name
  std::optional<uint64_t> read, written;
  int64_t lo = 0;
  int64_t hi = 0;
  int unit = -1;  // index into PlainTrace::units; -1 for begin and end of inner units

  bool load() const { return op == "r"; }
  bool store() const { return op == "w" || op == "rel"; }
  bool drains() const { return op == "fence" || op == "rmw" || op == "acq" || op == "fork"; }
  bool access() const { return load() || store() || op == "rmw" || op == "acq"; }
  bool node() const { return op != "begin" && op != "end" && op != "wait"; }
};

struct PlainUnit {
  std::string thread, label;
  size_t first = 0;
  size_t last = 0;
};

struct PlainTrace {
  std::vector<PlainEvent> events;
  std::vector<PlainUnit> units;

  // Throws std::runtime_error: what the generator wrote is always well-formed.
  static PlainTrace parse(const std::string& text);

  // With these events alone, as if there were no others.
  PlainTrace only(const std::vector<size_t>& kept) const;

  size_t threads() const;
  bool same_bytes(size_t e, size_t f) const;
  bool conflict(size_t e, size_t f) const;  // different threads, common byte, not both loads
  bool earlier(size_t e, size_t f) const { return events[e].hi < events[f].lo; }
  bool inside(size_t load, size_t store) const;  // every byte of the load is one of the store
  // The newest own store that a load meets in its buffer at the latest commits.
  std::optional<size_t> newest_own_store(size_t load) const;
  // The same if the load can be forwarded from it; one that overlaps it in part cannot, and waits.
  std::optional<size_t> source(size_t load) const;
  // The next event of the store's thread that finds it committed.
  std::optional<size_t> settled_by(size_t store) const;
  // The store whose commit decides when e takes effect, if there is one.
  std::optional<size_t> held_by(size_t e) const;
  // Same thread, e before f: the order of e and f cannot be seen swapped under TSO.
  bool kept_in_thread(size_t e, size_t f) const;
  // Different threads: the trace proves that e takes effect before f.
  bool proved_before(size_t e, size_t f) const;
};

}  // namespace tsomon::reports
