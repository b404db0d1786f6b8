// Blocks of code: what a segment of a run is called in the program.
//
// Purpose     Numbers the lines of the methods whose calls are units of work, over all inputs of
//             one question, so that a segment of one trace is a block of code, and the block has
//             occurrences in another.
// Methods     Units with the same label whose first access is in the same function: what their other accesses are
//             in may differ from call to call. Their lines are those of the source where all of a
//             method's accesses are in one function of one file; else its places are numbered as
//             they first come.
// Blocks      Segments (segments.h) whose `operation` is a method and whose ends are lines.
// Occurrences Within a unit, the run of consecutive events whose lines lie in the block. A step
//             back to the first line of the block, or before it, begins another one: the next turn
//             of a loop that is around the block. The whole method is one. Events that are no
//             accesses go with those around them.
// Complexity  O(events) each. Thread-safety: const access is safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "offline/explain/segments.h"
#include "tso/model/trace.h"
#include "tso/model/units.h"

namespace tsomon::explain {

struct CodePlace {
  std::string function;  // "" and 0: not known
  std::string file;
  uint32_t line = 0;
};
// The location of an event as text, or its kind and what it accesses.
std::string location_of(const Trace& trace, uint32_t e);
// Finds the place that such a text names.
using PlaceOf = std::function<CodePlace(const std::string& location)>;

// Where a block is in the code.
struct BlockCode {
  // Its lines in a function, where all of its method is in one; empty: by locations alone.
  std::string function;
  std::string file;
  uint32_t first_line = 0;
  uint32_t last_line = 0;
  std::vector<std::string> inside;   // locations, in the order of the block
  std::vector<std::string> outside;  // others of the method
  bool whole = false;                // all of the method
};

class CodeMap {
 public:
  static constexpr uint32_t kNone = 0xFFFFFFFFU;

  // Every input is added before anything is asked.
  void add(const Trace& trace, const UnitTable& units, const PlaceOf& place_of);

  // The method of a unit with these events; kNone: an event of its own, or a method that no input
  // had.
  uint32_t method(const Trace& trace, const Unit& unit, const std::vector<uint32_t>& events) const;
  const std::string& method_name(uint32_t method) const { return methods_[method].label; }
  // The line of an event in the method; kNone: it is no access.
  uint32_t line(uint32_t method, const Trace& trace, uint32_t e) const;
  // The text of the location at the line.
  const std::string& location(uint32_t method, uint32_t line) const;

  // The least block that holds the events of a unit from `first` to `last` in one occurrence, which
  // the whole method does if nothing less. `unit_events`: of the unit, in program order; first and
  // last are places in it.
  Segment block_of(uint32_t method, const Trace& trace, const std::vector<uint32_t>& unit_events,
                   size_t first, size_t last) const;
  Segment whole(uint32_t method) const;
  BlockCode code_of(const Segment& block) const;

  // By event the occurrence it belongs to, numbered from 0; kNone: to none. `count`: how many.
  std::vector<uint32_t> occurrences(const Trace& trace, const UnitTable& units,
                                    const SegmentSet& blocks, uint32_t* count) const;

 private:
  struct Method {
    std::string label;
    bool one_function = true;  // then lines are those of the source
    std::string function;
    std::string file;
    std::map<std::string, uint32_t> ranks;  // by location, as they came
    std::map<std::string, uint32_t> lines;  // by location
    std::map<uint32_t, std::string> at_rank;
    std::map<uint32_t, std::string> at_line;
  };
  void add_place(const std::string& location, Method* method) const;
  std::string key_of(const Trace& trace, const Unit& unit,
                     const std::vector<uint32_t>& events) const;
  std::vector<uint32_t> lines_of(uint32_t method, const Trace& trace,
                                 const std::vector<uint32_t>& events) const;

  std::vector<Method> methods_;
  std::map<std::string, uint32_t> by_key_;
  std::map<std::string, CodePlace> places_;  // by location
};

// The events of each unit, its begin and end included, in program order.
std::vector<std::vector<uint32_t>> events_of_units(const Trace& trace, const UnitTable& units);

}  // namespace tsomon::explain
