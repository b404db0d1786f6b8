// perf.data on disk: the numbers that the kernel and the perf tool agree on.
//
// Source      The kernel's include/uapi/linux/perf_event.h (attributes, sample fields, records
//             below 64) and tools/perf/Documentation/perf.data-file-format.txt (the file header,
//             features, records from 64 on). Repeated here because files hold numbers that are
//             newer than the installed header.
// Byte order  Little-endian only. Everything is read by Cursor (cursor.h), nothing by casts.
#pragma once

#include <cstdint>

namespace tsomon::perf {

inline constexpr uint64_t kMagic = 0x32454C4946524550;         // "PERFILE2"
inline constexpr uint64_t kMagicSwapped = 0x50455246494C4532;  // written on a big-endian machine
inline constexpr uint64_t kMagicOld = 0x454C494646524550;      // "PERFFILE", before Linux 2.6.39

inline constexpr uint64_t kFileHeaderSize = 104;
inline constexpr uint64_t kPipeHeaderSize = 16;
inline constexpr uint64_t kRecordHeaderSize = 8;
inline constexpr int kFeatureBits = 256;
inline constexpr uint64_t kSmallestAttribute = 64;  // the first version of perf_event_attr

enum class RecordType : uint32_t {
  kMmap = 1,
  kLost = 2,
  kComm = 3,
  kExit = 4,
  kThrottle = 5,
  kUnthrottle = 6,
  kFork = 7,
  kRead = 8,
  kSample = 9,
  kMmap2 = 10,
  kAux = 11,
  kItraceStart = 12,
  kLostSamples = 13,
  kSwitch = 14,
  kSwitchCpuWide = 15,
  kNamespaces = 16,
  kKsymbol = 17,
  kBpfEvent = 18,
  kCgroup = 19,
  kTextPoke = 20,
  kAuxOutputHwId = 21,
  kFirstOfTool = 64,  // from here on written by the perf tool, without a sample_id trailer
  kHeaderAttr = 64,
  kHeaderEventType = 65,
  kHeaderTracingData = 66,  // its payload follows the record
  kHeaderBuildId = 67,
  kFinishedRound = 68,
  kIdIndex = 69,
  kAuxtraceInfo = 70,
  kAuxtrace = 71,  // its payload follows the record
  kAuxtraceError = 72,
  kThreadMap = 73,
  kCpuMap = 74,
  kStatConfig = 75,
  kStat = 76,
  kStatRound = 77,
  kEventUpdate = 78,
  kTimeConv = 79,
  kHeaderFeature = 80,
  kCompressed = 81,
  kFinishedInit = 82,
  kCompressed2 = 83,
};

// "MMAP2" as perf names it; nullptr for an unknown type.
const char* record_name(RecordType type);

// Bits of Record::misc.
namespace misc {
inline constexpr uint16_t kCpuModeMask = 7;
inline constexpr uint16_t kKernel = 1;
inline constexpr uint16_t kUser = 2;
inline constexpr uint16_t kMmapData = 1U << 13;          // kMmap
inline constexpr uint16_t kCommExec = 1U << 13;          // kComm
inline constexpr uint16_t kSwitchOut = 1U << 13;         // kSwitch, kSwitchCpuWide
inline constexpr uint16_t kExactIp = 1U << 14;           // kSample
inline constexpr uint16_t kSwitchOutPreempt = 1U << 14;  // kSwitch, kSwitchCpuWide
inline constexpr uint16_t kMmapBuildId = 1U << 14;       // kMmap2
inline constexpr uint16_t kBuildIdSize = 1U << 15;       // kHeaderBuildId
}  // namespace misc

// Attribute::type.
inline constexpr uint32_t kTypeSoftware = 1;
inline constexpr uint32_t kTypeTracepoint = 2;
inline constexpr uint32_t kTypeBreakpoint = 5;

// Attribute::sample_type.
namespace sample_type {
inline constexpr uint64_t kIp = 1U << 0;
inline constexpr uint64_t kTid = 1U << 1;
inline constexpr uint64_t kTime = 1U << 2;
inline constexpr uint64_t kAddress = 1U << 3;
inline constexpr uint64_t kRead = 1U << 4;
inline constexpr uint64_t kCallchain = 1U << 5;
inline constexpr uint64_t kId = 1U << 6;
inline constexpr uint64_t kCpu = 1U << 7;
inline constexpr uint64_t kPeriod = 1U << 8;
inline constexpr uint64_t kStreamId = 1U << 9;
inline constexpr uint64_t kRaw = 1U << 10;
inline constexpr uint64_t kBranchStack = 1U << 11;
inline constexpr uint64_t kRegsUser = 1U << 12;
inline constexpr uint64_t kStackUser = 1U << 13;
inline constexpr uint64_t kWeight = 1U << 14;
inline constexpr uint64_t kDataSource = 1U << 15;
inline constexpr uint64_t kIdentifier = 1U << 16;
inline constexpr uint64_t kTransaction = 1U << 17;
inline constexpr uint64_t kRegsIntr = 1U << 18;
inline constexpr uint64_t kPhysicalAddress = 1U << 19;
inline constexpr uint64_t kAux = 1U << 20;
inline constexpr uint64_t kCgroup = 1U << 21;
inline constexpr uint64_t kDataPageSize = 1U << 22;
inline constexpr uint64_t kCodePageSize = 1U << 23;
inline constexpr uint64_t kWeightStruct = 1U << 24;
inline constexpr uint64_t kAll = (1U << 25) - 1;
}  // namespace sample_type

// Attribute::read_format.
namespace read_format {
inline constexpr uint64_t kTimeEnabled = 1U << 0;
inline constexpr uint64_t kTimeRunning = 1U << 1;
inline constexpr uint64_t kId = 1U << 2;
inline constexpr uint64_t kGroup = 1U << 3;
inline constexpr uint64_t kLost = 1U << 4;
}  // namespace read_format

// Attribute::branch_sample_type.
inline constexpr uint64_t kBranchHardwareIndex = 1U << 17;
inline constexpr uint64_t kBranchCounters = 1U << 19;

// Attribute::flags.
namespace attribute_flag {
inline constexpr uint64_t kInherit = 1ULL << 1;
inline constexpr uint64_t kExclude = 0xF0ULL | 3ULL << 19;  // user, kernel, hv, idle, host, guest
inline constexpr uint64_t kFrequency = 1ULL << 10;
inline constexpr uint64_t kEnableOnExec = 1ULL << 12;
inline constexpr uint64_t kPrecise = 3ULL << 15;  // precise_ip
inline constexpr uint64_t kSampleIdAll = 1ULL << 18;
inline constexpr uint64_t kUseClockid = 1ULL << 25;
inline constexpr uint64_t kContextSwitch = 1ULL << 26;
inline constexpr uint64_t kAuxOutput = 1ULL << 31;  // samples go into the AUX area
}  // namespace attribute_flag

enum class Feature : uint32_t {
  kTracingData = 1,
  kBuildId = 2,
  kHostname = 3,
  kOsRelease = 4,
  kVersion = 5,
  kArch = 6,
  kCpuCount = 7,
  kCpuDescription = 8,
  kCpuId = 9,
  kTotalMemory = 10,
  kCommandLine = 11,
  kEventDescription = 12,
  kPmuMappings = 16,
  kSampleTime = 21,
  kClockid = 23,
  kCompressed = 27,
  kClockData = 29,
};

}  // namespace tsomon::perf
