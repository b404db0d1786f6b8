// Perfetto's own format: a Trace of TracePackets in protobuf. The numbers of the fields are those of Perfetto's
// trace_packet.proto, track_descriptor.proto, process_descriptor.proto, thread_descriptor.proto, track_event.proto and
// debug_annotation.proto.
#include <algorithm>
#include <ostream>
#include <vector>

#include <fmt/format.h>

#include "monitor/report/picture.h"
#include "monitor/report/protobuf.h"
#include "monitor/report/render.h"

namespace tsomon::report {
namespace {

constexpr uint32_t kTracePacket = 1;

namespace packet {
constexpr uint32_t kTimestamp = 8;  // nanoseconds
constexpr uint32_t kSequence = 10;  // trusted_packet_sequence_id
constexpr uint32_t kTrackEvent = 11;
constexpr uint32_t kSequenceFlags = 13;
constexpr uint32_t kClock = 58;
constexpr uint32_t kTrackDescriptor = 60;
constexpr uint64_t kStateCleared = 1;  // a sequence begins
constexpr uint64_t kBootTime = 6;  // a built-in clock, that of traces: needs no snapshot of clocks
}  // namespace packet

namespace track {
constexpr uint32_t kId = 1;
constexpr uint32_t kProcess = 3;
constexpr uint32_t kThread = 4;
constexpr uint32_t kParent = 5;
constexpr uint32_t kPid = 1;  // of a process, and of a thread
constexpr uint32_t kTid = 2;
constexpr uint32_t kSortIndex = 3;  // of either
constexpr uint32_t kThreadName = 5;
constexpr uint32_t kProcessName = 6;
}  // namespace track

namespace event {
constexpr uint32_t kAnnotation = 4;
constexpr uint32_t kType = 9;
constexpr uint32_t kTrack = 11;
constexpr uint32_t kCategory = 22;
constexpr uint32_t kName = 23;
constexpr uint32_t kFlow = 47;
constexpr uint32_t kFlowEnds = 48;
constexpr uint64_t kSliceBegins = 1;
constexpr uint64_t kSliceEnds = 2;
}  // namespace event

namespace annotation {
constexpr uint32_t kNumber = 3;
constexpr uint32_t kText = 6;
constexpr uint32_t kName = 10;
}  // namespace annotation

// As the JSON form has it, whose times are microseconds.
constexpr uint64_t kNanoseconds = 1000;

ProtobufMessage number_annotation(const char* name, uint64_t value) {
  ProtobufMessage message;
  message.add_text(annotation::kName, name);
  message.add_number(annotation::kNumber, value);
  return message;
}

ProtobufMessage text_annotation(const char* name, const std::string& value) {
  ProtobufMessage message;
  message.add_text(annotation::kName, name);
  message.add_text(annotation::kText, value);
  return message;
}

class PacketWriter {
 public:
  // `findings`: so many will be added.
  PacketWriter(size_t findings, std::ostream* out) : next_track_(findings), out_(*out) {}

  void add(const Finding& finding) {
    const Picture picture = picture_of(finding, ++process_);
    add_process(picture.name);
    const uint64_t first_track = next_track_ + 1;
    for (size_t i = 0; i < picture.tracks.size(); ++i) {
      add_thread(picture.tracks[i], i + 1);
    }
    add_slices(picture, first_track);
  }

 private:
  struct Moment {
    uint64_t time = 0;
    size_t slice = 0;
    bool ends = false;
  };

  // Processes and threads share their numbers, which are those of their tracks: viewers take the thread with the number
  // of its process for the main one.
  void add_process(const std::string& name) {
    ProtobufMessage process;
    process.add_number(track::kPid, process_);
    process.add_number(track::kSortIndex, process_);
    process.add_text(track::kProcessName, name);
    ProtobufMessage descriptor;
    descriptor.add_number(track::kId, process_);
    descriptor.add_message(track::kProcess, process);
    add_track(descriptor);
  }

  void add_thread(const std::string& name, size_t number) {
    ++next_track_;
    ProtobufMessage thread;
    thread.add_number(track::kPid, process_);
    thread.add_number(track::kTid, next_track_);
    thread.add_number(track::kSortIndex, number);
    thread.add_text(track::kThreadName, name);
    ProtobufMessage descriptor;
    descriptor.add_number(track::kId, next_track_);
    descriptor.add_number(track::kParent, process_);
    descriptor.add_message(track::kThread, thread);
    add_track(descriptor);
  }

  void add_track(const ProtobufMessage& descriptor) {
    ProtobufMessage packet = new_packet();
    packet.add_message(packet::kTrackDescriptor, descriptor);
    put(packet);
  }

  void add_slices(const Picture& picture, uint64_t first_track) {
    std::vector<ProtobufMessage> begins;
    std::vector<Moment> moments;
    for (size_t i = 0; i < picture.slices.size(); ++i) {
      const Slice& slice = picture.slices[i];
      begins.push_back(slice_begins(slice, first_track + slice.track));
      moments.push_back({slice.begin, i, false});
      moments.push_back({slice.end, i, true});
    }
    for (const Arrow& arrow : picture.arrows) {
      ++edge_;
      // Flows have no names.
      begins[arrow.from].add_message(event::kAnnotation, text_annotation("edge", arrow.name));
      begins[arrow.from].add_fixed(event::kFlow, edge_);
      begins[arrow.to].add_fixed(event::kFlowEnds, edge_);
    }
    // Where one slice ends and another begins, the end comes first.
    std::stable_sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) {
      return a.time != b.time ? a.time < b.time : a.ends && !b.ends;
    });
    for (const Moment& moment : moments) {
      ProtobufMessage packet = new_packet();
      packet.add_number(packet::kTimestamp, moment.time * kNanoseconds);
      packet.add_number(packet::kClock, packet::kBootTime);
      packet.add_message(packet::kTrackEvent,
                         moment.ends ? slice_ends(first_track + picture.slices[moment.slice].track)
                                     : begins[moment.slice]);
      put(packet);
    }
  }

  static ProtobufMessage slice_begins(const Slice& slice, uint64_t track) {
    ProtobufMessage message;
    message.add_number(event::kType, event::kSliceBegins);
    message.add_number(event::kTrack, track);
    message.add_text(event::kCategory, "tsomon");
    message.add_text(event::kCategory, category_of(slice.kind));
    message.add_text(event::kName, slice.name);
    if (slice.kind != Slice::Kind::kUnit) {
      message.add_message(event::kAnnotation, text_annotation("at", slice.place));
    }
    for (const auto& [name, number] : slice.numbers) {
      message.add_message(event::kAnnotation, number_annotation(name, number));
    }
    return message;
  }

  static ProtobufMessage slice_ends(uint64_t track) {
    ProtobufMessage message;
    message.add_number(event::kType, event::kSliceEnds);
    message.add_number(event::kTrack, track);
    return message;
  }

  ProtobufMessage new_packet() {
    ProtobufMessage packet;
    packet.add_number(packet::kSequence, 1);
    if (!begun_) {
      packet.add_number(packet::kSequenceFlags, packet::kStateCleared);
      begun_ = true;
    }
    return packet;
  }

  void put(const ProtobufMessage& packet) {
    ProtobufMessage trace;  // messages with one field, one after the other, are one message
    trace.add_message(kTracePacket, packet);
    out_ << trace.bytes();
  }

  uint64_t process_ = 0;
  uint64_t next_track_;
  uint64_t edge_ = 0;
  bool begun_ = false;
  std::ostream& out_;
};

}  // namespace

void write_perfetto_trace(const Results& results, std::ostream& out) {
  PacketWriter writer(results.findings().size(), &out);
  for (const Finding& finding : results.findings()) {
    writer.add(finding);
  }
}

}  // namespace tsomon::report
