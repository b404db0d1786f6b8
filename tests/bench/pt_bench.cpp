// Intel PT from bytes to access events, beside libipt's own decoders on the same stream, and
// PTWRITE values at packet level.
//
//   pt_bench [COPIES [ROUNDS [PROGRAM]]]
//
// Processor time; one thread. The stream is that of a stepped program, COPIES times. Every round
// runs all of them, one after the other; the figures are those of the best round.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <intel-pt.h>

#include "decoders/pt/memory/trace.h"
#include "decoders/pt/values/ptwrite.h"
#include "tests/pt/traced_programs.h"

namespace {

using namespace tsomon;
using namespace tsomon::test;

double seconds(const std::function<void()>& work) {
  const auto now = [] {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double start = now();
  work();
  return now() - start;
}

class Count : public pt::AccessSink {
 public:
  void entry(const pt::PathEntry&, const std::vector<pt::FoundAccess>& accesses) override {
    for (const pt::FoundAccess& access : accesses) {
      known += access.source == pt::AddressSource::kUnknown ? 0 : 1;
    }
    all += accesses.size();
  }
  uint64_t known = 0;
  uint64_t all = 0;
};

struct Peer {
  pt_image_section_cache* sections = pt_iscache_alloc(nullptr);
  pt_image* image = pt_image_alloc(nullptr);
  pt_config config;

  Peer(const pt::Input& input, std::vector<uint8_t>& bytes) {
    pt_iscache_set_limit(sections, uint64_t{256} << 20);
    for (const pt::CodeSection& code : input.code) {
      const int isid =
          pt_iscache_add_file(sections, code.file.c_str(), code.offset, code.size, code.address);
      pt_image_add_cached(image, sections, isid, nullptr);
    }
    pt_config_init(&config);
    config.begin = bytes.data();
    config.end = bytes.data() + bytes.size();
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  ~Peer() {
    pt_image_free(image);
    pt_iscache_free(sections);
  }

  uint64_t instructions() {
    pt_insn_decoder* decoder = pt_insn_alloc_decoder(&config);
    pt_insn_set_image(decoder, image);
    uint64_t count = 0;
    pt_insn instruction;
    pt_event event;
    for (int status = pt_insn_sync_forward(decoder); status >= 0;) {
      while (status >= 0 && (status & pts_event_pending) != 0) {
        status = pt_insn_event(decoder, &event, sizeof event);
      }
      if (status < 0 || (status & pts_eos) != 0) {
        break;
      }
      status = pt_insn_next(decoder, &instruction, sizeof instruction);
      count += status >= 0 ? 1 : 0;
    }
    pt_insn_free_decoder(decoder);
    return count;
  }

  uint64_t blocks() {
    pt_block_decoder* decoder = pt_blk_alloc_decoder(&config);
    pt_blk_set_image(decoder, image);
    uint64_t count = 0;
    pt_block block;
    pt_event event;
    for (int status = pt_blk_sync_forward(decoder); status >= 0;) {
      while (status >= 0 && (status & pts_event_pending) != 0) {
        status = pt_blk_event(decoder, &event, sizeof event);
      }
      if (status < 0 || (status & pts_eos) != 0) {
        break;
      }
      block.ninsn = 0;
      status = pt_blk_next(decoder, &block, sizeof block);
      count += block.ninsn;
    }
    pt_blk_free_decoder(decoder);
    return count;
  }
};

uint64_t packets(const std::vector<uint8_t>& bytes) {
  pt::PacketReader reader({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, 0);
  pt::Packet packet;
  uint64_t count = 0;
  while (reader.next(packet) == pt::PacketStatus::kPacket) {
    ++count;
  }
  return count;
}

void run_program(const std::string& name, size_t copies, int rounds) {
  const SteppedRun& run = stepped(name);
  EncodeOptions options;
  options.psb_every = 4096;
  options.cyc = false;
  EncodedRun encoded = encode(run, options);
  const std::vector<uint8_t> once = encoded.streams[0].bytes;
  for (size_t i = 1; i < copies; ++i) {
    encoded.streams[0].bytes.insert(encoded.streams[0].bytes.end(), once.begin(), once.end());
  }
  std::vector<uint8_t>& bytes = encoded.streams[0].bytes;
  encoded.streams.resize(1);
  const pt::Input input = input_of(run, encoded);
  Peer peer(input, bytes);
  double flow = 1e9;
  double block = 1e9;
  double ours = 1e9;   // registers only
  double terms = 1e9;  // everything
  double path = 1e9;
  double floor = 1e9;
  uint64_t instructions = 0;
  Count count;
  for (int round = 0; round < rounds; ++round) {
    floor = std::min(floor, seconds([&] { packets(bytes); }));
    flow = std::min(flow, seconds([&] { peer.instructions(); }));
    block = std::min(block, seconds([&] { peer.blocks(); }));
    pt::Flow decoded;
    const double decoding = seconds([&] { decoded = decode_flow(input); });
    instructions = decoded.instructions;
    path = std::min(path, decoding);
    const auto accesses = [&](pt::AccessOptions options) {
      options.constants = &decoded.constants;
      return seconds([&] {
        for (const pt::ThreadPath& thread : decoded.threads) {
          find_accesses(thread, {}, options, count);
        }
      });
    };
    ours = std::min(ours, decoding + accesses({.registers_only = true}));
    terms = std::min(terms, decoding + accesses({}));
  }
  const double millions = static_cast<double>(instructions) * 1e-6;
  std::printf("%-16s %8.1f %8.1f %8.1f %8.1f %8.1f %8.1f %8.2f %8.2f %8.2f %8.2f\n", name.c_str(),
              millions / flow, millions / block, millions / path, millions / ours, millions / terms,
              static_cast<double>(bytes.size()) * 1e-6 / floor, flow / ours, ours / block,
              flow / terms, terms / block);
}

void run_values(int rounds) {
  // PTW with its address and a CYC packet each, a TSC packet now and then.
  std::vector<uint8_t> bytes;
  for (int i = 0; i < 8; ++i) {
    bytes.push_back(0x02);
    bytes.push_back(0x82);
  }
  uint64_t values = 0;
  for (; values < 2000000; ++values) {
    if (values % 256 == 0) {
      bytes.insert(bytes.end(), {0x19, static_cast<uint8_t>(values >> 8),
                                 static_cast<uint8_t>(values >> 16), 0, 1, 0, 0, 0});
    }
    bytes.push_back(0x53);
    bytes.insert(bytes.end(), {0x02, 0xB2});
    for (unsigned i = 0; i < 8; ++i) {
      bytes.push_back(static_cast<uint8_t>(values >> (8 * i)));
    }
    bytes.insert(bytes.end(), {0x3D, static_cast<uint8_t>(values), 0x40});
  }
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) {
    uint64_t got = 0;
    best =
        std::min(best, seconds([&] {
                   pt::PtwriteReader reader(
                       {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, {64, 1, 3, 30});
                   std::vector<pt::PtwriteValue> some;
                   while (reader.next(some)) {
                     got += some.size();
                   }
                 }));
    if (got != values) {
      std::fprintf(stderr, "values are missing\n");
      std::exit(1);
    }
  }
  std::printf("PTWRITE values at packet level: %.1f million a second\n",
              static_cast<double>(values) * 1e-6 / best);
}

}  // namespace

int main(int argc, char** argv) {
  const size_t copies = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 200;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  doctest::Context context;
  context.setAsDefaultForAssertsOutOfTestCases();
  std::printf(
      "million instructions a second; bytes of the packet reader in MB/s\n%-16s %8s %8s "
      "%8s %8s %8s %8s %8s %8s %8s %8s\n",
      "", "flow", "block", "path", "quick", "all", "packets", "to flow", "of block", "all/flow",
      "of block");
  const std::string only = argc > 3 ? argv[3] : "";
  for (const char* name : {"pointer_chasing", "hash_table", "strings", "indirect_calls"}) {
    if (only.empty() || only == name) {
      run_program(name, copies, rounds);
    }
  }
  run_values(rounds);
  return 0;
}
