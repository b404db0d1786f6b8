// The packet reader against libipt's packet decoder, on streams of every packet type, cut at every
// byte; and the packets of PEBS blocks, which libipt does not know, against their definition.
#include "decoders/pt/packets/packets.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <intel-pt.h>

using namespace tsomon::pt;

namespace {

// Every type that libipt can write, with random contents.
std::vector<uint8_t> random_stream(std::mt19937_64& random, size_t packets) {
  std::vector<uint8_t> bytes(packets * 20 + 16);
  pt_config config;
  pt_config_init(&config);
  config.begin = bytes.data();
  config.end = bytes.data() + bytes.size();
  pt_encoder* encoder = pt_alloc_encoder(&config);
  REQUIRE(encoder != nullptr);
  for (size_t i = 0; i < packets; ++i) {
    pt_packet out;
    std::memset(&out, 0, sizeof out);
    out.type = i == 0 ? ppt_psb
                      : static_cast<pt_packet_type>(ppt_pad + random() % (ppt_ptw - ppt_pad + 1));
    const uint64_t value = random() >> random() % 64;
    switch (out.type) {
      case ppt_fup:
      case ppt_tip:
      case ppt_tip_pge:
      case ppt_tip_pgd: {
        static const pt_ip_compression kinds[] = {pt_ipc_suppressed, pt_ipc_update_16,
                                                  pt_ipc_update_32,  pt_ipc_sext_48,
                                                  pt_ipc_update_48,  pt_ipc_full};
        static const unsigned bits[] = {0, 16, 32, 48, 48, 64};
        const size_t kind = random() % 6;
        out.payload.ip.ipc = kinds[kind];
        out.payload.ip.ip = bits[kind] == 64 ? value : value & ((uint64_t{1} << bits[kind]) - 1);
        break;
      }
      case ppt_tnt_8:
      case ppt_tnt_64:
        out.payload.tnt.bit_size =
            static_cast<uint8_t>(1 + random() % (out.type == ppt_tnt_8 ? 6 : 47));
        out.payload.tnt.payload = value & ((uint64_t{1} << out.payload.tnt.bit_size) - 1);
        break;
      case ppt_mode:
        out.payload.mode.leaf = random() % 2 == 0 ? pt_mol_exec : pt_mol_tsx;
        if (out.payload.mode.leaf == pt_mol_exec) {
          out.payload.mode.bits.exec.csl = random() % 2;
        } else {
          out.payload.mode.bits.tsx.intx = random() % 2;
        }
        break;
      case ppt_pip:
        out.payload.pip.cr3 = value & 0xFFFFFFFFFFE0ULL;
        out.payload.pip.nr = random() % 2;
        break;
      case ppt_vmcs:
        out.payload.vmcs.base = value & 0xFFFFFFFFFF000ULL;
        break;
      case ppt_cbr:
        out.payload.cbr.ratio = static_cast<uint8_t>(value);
        break;
      case ppt_tsc:
        out.payload.tsc.tsc = value & 0xFFFFFFFFFFFFFFULL;
        break;
      case ppt_tma:
        out.payload.tma.ctc = static_cast<uint16_t>(value);
        out.payload.tma.fc = value >> 16 & 0x1FF;
        break;
      case ppt_mtc:
        out.payload.mtc.ctc = static_cast<uint8_t>(value);
        break;
      case ppt_cyc:
        out.payload.cyc.value = value;
        break;
      case ppt_mnt:
        out.payload.mnt.payload = value;
        break;
      case ppt_exstop:
        out.payload.exstop.ip = random() % 2;
        break;
      case ppt_mwait:
        out.payload.mwait.hints = static_cast<uint32_t>(value);
        out.payload.mwait.ext = static_cast<uint32_t>(random());
        break;
      case ppt_pwre:
        out.payload.pwre.state = value & 0xF;
        out.payload.pwre.sub_state = value >> 4 & 0xF;
        break;
      case ppt_pwrx:
        out.payload.pwrx.last = value & 0xF;
        out.payload.pwrx.interrupt = 1;
        break;
      case ppt_ptw:
        out.payload.ptw.plc = random() % 2;
        out.payload.ptw.ip = random() % 2;
        out.payload.ptw.payload = out.payload.ptw.plc == 0 ? value & 0xFFFFFFFF : value;
        break;
      default:
        break;
    }
    if (pt_enc_next(encoder, &out) < 0) {
      continue;  // a value that the encoder refuses
    }
  }
  uint64_t size = 0;
  pt_enc_get_offset(encoder, &size);
  pt_free_encoder(encoder);
  bytes.resize(size);
  return bytes;
}

PacketType type_of(pt_packet_type type) {
  static const std::vector<std::pair<pt_packet_type, PacketType>> types{
      {ppt_pad, PacketType::kPad},        {ppt_psb, PacketType::kPsb},
      {ppt_psbend, PacketType::kPsbEnd},  {ppt_fup, PacketType::kFup},
      {ppt_tip, PacketType::kTip},        {ppt_tip_pge, PacketType::kTipPge},
      {ppt_tip_pgd, PacketType::kTipPgd}, {ppt_tnt_8, PacketType::kTnt},
      {ppt_tnt_64, PacketType::kTnt},     {ppt_mode, PacketType::kMode},
      {ppt_pip, PacketType::kPip},        {ppt_vmcs, PacketType::kVmcs},
      {ppt_cbr, PacketType::kCbr},        {ppt_tsc, PacketType::kTsc},
      {ppt_tma, PacketType::kTma},        {ppt_mtc, PacketType::kMtc},
      {ppt_cyc, PacketType::kCyc},        {ppt_stop, PacketType::kTraceStop},
      {ppt_ovf, PacketType::kOvf},        {ppt_mnt, PacketType::kMnt},
      {ppt_exstop, PacketType::kExstop},  {ppt_mwait, PacketType::kMwait},
      {ppt_pwre, PacketType::kPwre},      {ppt_pwrx, PacketType::kPwrx},
      {ppt_ptw, PacketType::kPtw}};
  for (const auto& [theirs, ours] : types) {
    if (theirs == type) {
      return ours;
    }
  }
  return PacketType::kBip;
}

// The contents, where they are more than raw bytes.
bool same(const pt_packet& theirs, const Packet& ours) {
  if (type_of(theirs.type) != ours.type || theirs.size != ours.size) {
    return false;
  }
  switch (theirs.type) {
    case ppt_fup:
    case ppt_tip:
    case ppt_tip_pge:
    case ppt_tip_pgd:
      return theirs.payload.ip.ipc == ours.detail && theirs.payload.ip.ip == ours.payload;
    case ppt_tnt_8:
    case ppt_tnt_64:
      return theirs.payload.tnt.bit_size == ours.detail &&
             theirs.payload.tnt.payload == ours.payload;
    case ppt_pip:
      return theirs.payload.pip.cr3 == ours.payload && theirs.payload.pip.nr == ours.detail;
    case ppt_vmcs:
      return theirs.payload.vmcs.base == ours.payload;
    case ppt_cbr:
      return theirs.payload.cbr.ratio == ours.payload;
    case ppt_tsc:
      return theirs.payload.tsc.tsc == ours.payload;
    case ppt_tma:
      return theirs.payload.tma.ctc == ours.payload && theirs.payload.tma.fc == ours.extra;
    case ppt_mtc:
      return theirs.payload.mtc.ctc == ours.payload;
    case ppt_cyc:
      return theirs.payload.cyc.value == ours.payload;
    case ppt_mnt:
      return theirs.payload.mnt.payload == ours.payload;
    case ppt_exstop:
      return theirs.payload.exstop.ip == ours.detail;
    case ppt_mwait:
      return theirs.payload.mwait.hints == ours.payload && theirs.payload.mwait.ext == ours.extra;
    case ppt_ptw:
      return theirs.payload.ptw.payload == ours.payload && theirs.payload.ptw.ip == ours.detail &&
             (theirs.payload.ptw.plc == 0 ? 4U : 8U) == ours.extra;
    default:
      return true;
  }
}

// Both read the bytes to their end or to the first thing that is no packet. Gives how many packets.
size_t compare(const std::vector<uint8_t>& bytes) {
  pt_config config;
  pt_config_init(&config);
  std::vector<uint8_t> copy = bytes;  // libipt wants to write there
  config.begin = copy.data();
  config.end = copy.data() + copy.size();
  pt_packet_decoder* peer = pt_pkt_alloc_decoder(&config);
  if (peer == nullptr) {
    return 0;
  }
  size_t count = 0;
  PacketReader reader({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, 0);
  pt_pkt_sync_set(peer, 0);
  while (true) {
    pt_packet theirs;
    Packet ours;
    const int status = pt_pkt_next(peer, &theirs, sizeof theirs);
    const PacketStatus found = reader.next(ours);
    if (status < 0) {
      const PacketStatus expected = status == -pte_eos ? PacketStatus::kEnd : PacketStatus::kBad;
      CHECK(found == expected);
      if (found != expected) {
        MESSAGE("type " << static_cast<int>(ours.type) << " size " << int{ours.size} << " status "
                        << status << " behind packet " << count);
      }
      break;
    }
    const bool agree = found == PacketStatus::kPacket && same(theirs, ours);
    CHECK(agree);
    if (!agree) {
      MESSAGE("type " << theirs.type << " size " << int{theirs.size});
      break;
    }
    ++count;
  }
  pt_pkt_free_decoder(peer);
  return count;
}

// Perhaps there are packets of PEBS blocks, which libipt does not read.
bool known_here_only(const std::vector<uint8_t>& bytes) {
  for (size_t at = 0; at + 1 < bytes.size(); ++at) {
    if (bytes[at] == 2 &&
        (bytes[at + 1] == 0x63 || bytes[at + 1] == 0x33 || bytes[at + 1] == 0xB3)) {
      return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("packets are what libipt reads, wherever the bytes end") {
  std::mt19937_64 random(1);
  size_t packets = 0;
  for (int i = 0; i < 30; ++i) {
    std::vector<uint8_t> bytes = random_stream(random, 60);
    packets += compare(bytes);
    while (!bytes.empty()) {
      bytes.pop_back();
      compare(bytes);
    }
  }
  CHECK(packets > 1000);
}

TEST_CASE("packets with a bit that is wrong, reserved ones too") {
  std::mt19937_64 random(3);
  for (int i = 0; i < 30; ++i) {
    const std::vector<uint8_t> bytes = random_stream(random, 60);
    for (size_t at = 0; at < bytes.size(); ++at) {
      for (unsigned bit = 0; bit < 8; ++bit) {
        std::vector<uint8_t> wrong = bytes;
        wrong[at] ^= static_cast<uint8_t>(1U << bit);
        if (!known_here_only(wrong)) {
          compare(wrong);
        }
      }
    }
  }
}

TEST_CASE("random bytes are the same packets or none") {
  std::mt19937_64 random(2);
  for (int i = 0; i < 30000; ++i) {
    std::vector<uint8_t> bytes(1 + random() % 24);
    for (uint8_t& byte : bytes) {
      byte = static_cast<uint8_t>(random());
    }
    if (random() % 2 == 0) {
      bytes[0] = 2;
    }
    if (!known_here_only(bytes)) {
      compare(bytes);
    }
  }
}

TEST_CASE("PEBS blocks") {
  // A block of general registers with 8-byte items, one of 4-byte items, and what follows.
  const std::vector<uint8_t> bytes{0x02, 0x63, 0x01, 0x04, 1, 2, 3, 4,    5,    6,    7,    8,
                                   0x0C, 9,    9,    9,    9, 9, 9, 9,    9,    0x02, 0xB3, 0x02,
                                   0x63, 0x84, 0x14, 7,    0, 0, 0, 0x02, 0x33, 0x04};
  PacketReader reader({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, 0);
  const auto next = [&] {
    Packet packet;
    REQUIRE(reader.next(packet) == PacketStatus::kPacket);
    return packet;
  };
  Packet packet = next();
  CHECK(packet.type == PacketType::kBbp);
  CHECK(packet.payload == 1);
  CHECK(packet.extra == 8);
  packet = next();
  CHECK(packet.type == PacketType::kBip);
  CHECK(packet.extra == 0);
  CHECK(packet.payload == 0x0807060504030201);
  packet = next();
  CHECK(packet.extra == 1);
  packet = next();
  CHECK(packet.type == PacketType::kBep);
  CHECK(packet.detail == 1);
  packet = next();
  CHECK(packet.payload == 4);
  CHECK(packet.extra == 4);
  packet = next();
  CHECK(packet.type == PacketType::kBip);
  CHECK(packet.extra == 2);
  CHECK(packet.payload == 7);
  CHECK(next().type == PacketType::kBep);
  CHECK(next().type == PacketType::kTnt);  // the same byte that began an item
}
