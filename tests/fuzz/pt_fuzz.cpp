// Any bytes as a PT stream over any bytes as code: decoding ends, and what it gives holds together;
// what is followed without libipt is what libipt follows.
// The input: two bytes, the size of the code; the code, mapped at 0x400000; the stream.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "decoders/pt/memory/trace.h"
#include "decoders/pt/packets/packets.h"
#include "tso/support/result.h"

namespace {

using namespace tsomon;

void read_packets(std::string_view bytes) {
  pt::PacketReader reader(bytes);
  pt::Packet packet;
  size_t at = 0;
  while (reader.next(packet) == pt::PacketStatus::kPacket) {
    TSOMON_CHECK(packet.size != 0 && reader.offset() == at + packet.size, "a packet's size");
    at = reader.offset();
  }
  TSOMON_CHECK(reader.offset() == at && at <= bytes.size(), "reading goes on after a failure");
}

std::vector<uint64_t> executed(const pt::Flow& flow) {
  std::vector<uint64_t> all;
  for (const pt::ThreadPath& path : flow.threads) {
    for (const pt::PathEntry& entry : path.entries) {
      if (entry.kind == pt::PathEntry::Kind::kBlock) {
        for (const x86::Instruction& instruction : entry.block->instructions) {
          all.push_back(instruction.address);
        }
      } else {
        all.push_back(static_cast<uint64_t>(entry.kind));
      }
    }
  }
  return all;
}

void decode(std::string_view code, std::string_view stream, int cpu) {
  const int file = ::memfd_create("code", 0);
  TSOMON_CHECK(
      file >= 0 && ::write(file, code.data(), code.size()) == static_cast<ssize_t>(code.size()),
      "no file for the code");
  pt::Input input;
  pt::TraceStream trace;
  trace.bytes = stream;
  trace.parts = {stream.size() / 2};
  trace.cpu = cpu;
  trace.process = 1;
  trace.thread = 1;
  input.streams = {trace};
  trace.parts.clear();
  input.streams.push_back(trace);
  input.code = {{fmt::format("/proc/self/fd/{}", file), 0, code.size(), 0x400000, kTimeMin, 1}};
  input.switches = {{100, 0, 1, 1}, {1000, 0, 1, 2}, {5000, 0, 0, 0}};
  input.clock = {64, 1, 3, 30};
  const pt::Flow flow = decode_flow(input);
  // Where the mode of execution was not told, libipt takes that of the blocks that it remembers: how
  // much it follows depends on what it has followed before.
  const bool remembers =
      std::any_of(flow.problems.begin(), flow.problems.end(), [](const std::string& problem) {
        return problem.find("unknown instruction") != std::string::npos;
      });
  if (flow.instructions_walked != 0 && !remembers) {
    const pt::Flow other = decode_flow(input, {.libipt = true});
    TSOMON_CHECK(executed(flow) == executed(other), "libipt follows another path");
  }
  pt::TraceOptions options;
  options.units.functions = {{"unit", 0x400000, 1}};
  options.branches = true;
  options.memory = cpu < 0;
  const pt::DecodedTrace decoded = make_trace(flow, options);
  int64_t last = kTimeMin;
  for (const Event& event : decoded.trace.events) {
    TSOMON_CHECK(event.lo >= last, "events out of order");
    TSOMON_CHECK(decoded.trace.lo(event) <= decoded.trace.hi(event), "an interval");
    last = event.lo;
  }
  TSOMON_CHECK(!decoded.trace.complete || flow.gaps == 0, "a gap in a complete trace");
  ::close(file);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2 || size > 4096) {
    return 0;
  }
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const size_t code = std::min<size_t>(data[0] | size_t{data[1]} << 8, bytes.size());
  read_packets(bytes);
  decode(bytes.substr(0, code), bytes.substr(code), -1);
  decode(bytes.substr(0, code), bytes.substr(code), 0);
  return 0;
}
