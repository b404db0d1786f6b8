#include "decoders/perf/listing.h"

#include <array>
#include <iterator>
#include <vector>

#include <fmt/format.h>

#include "decoders/perf/sample.h"

namespace tsomon::perf {

namespace {

template <typename... Args>
void print(std::string& text, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
}

// As C's %#x: 0 has no prefix.
std::string hex(uint64_t number) {
  return number == 0 ? std::string("0") : fmt::format("0x{:x}", number);
}

std::string hex_bytes(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    print(text, "{:02x}", static_cast<unsigned char>(byte));
  }
  return text;
}

int32_t number(uint32_t id) { return static_cast<int32_t>(id); }

// Names come from the file: they must not break the line, nor reach the terminal as commands.
std::string name(std::string_view bytes) {
  std::string text(bytes);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7F) {
      c = '?';
    }
  }
  return text;
}

void add_mmap(const Record& record, std::string& text) {
  constexpr uint32_t kShared = 1;  // MAP_SHARED
  const auto map = parse_mmap(record);
  if (!map) {
    return;
  }
  print(text, " {}/{}: [{}({}) @ {}", number(map->pid), number(map->tid), hex(map->address),
        hex(map->size), hex(map->file_offset));
  if (record.type == RecordType::kMmap) {
    print(text, "]: {} {}", map->executable ? 'x' : 'r', name(map->path));
    return;
  }
  if (map->build_id.empty()) {
    print(text, " {:02x}:{:02x} {} {}", map->major, map->minor, map->inode, map->inode_generation);
  } else {
    print(text, " <{}>", hex_bytes(map->build_id));
  }
  print(text, "]: {}{}{}{} {}", (map->protection & 1) != 0 ? 'r' : '-',
        (map->protection & 2) != 0 ? 'w' : '-', map->executable ? 'x' : '-',
        (map->flags & kShared) != 0 ? 's' : 'p', name(map->path));
}

void add_switch(const Record& record, std::string& text) {
  if (const auto change = parse_switch(record)) {
    print(text, " {}",
          !change->out        ? "IN         "
          : change->preempted ? "OUT preempt"
                              : "OUT        ");
    if (change->cpu_wide) {
      print(text, "  {} pid/tid: {:5}/{:<5}", change->out ? "next" : "prev",
            number(change->other_pid), number(change->other_tid));
    }
  }
}

void add_auxtrace(const Record& record, std::string& text) {
  if (const auto trace = parse_auxtrace(record)) {
    print(text, " size: {}  offset: {}  ref: {}  idx: {}  tid: {}  cpu: {}", hex(trace->size),
          hex(trace->offset), hex(trace->reference), trace->buffer, number(trace->tid),
          number(trace->cpu));
  }
}

void add_aux(const Record& record, std::string& text) {
  if (const auto aux = parse_aux(record)) {
    print(text, " offset: {} size: {} flags: {} [{}{}{}{}]", hex(aux->offset), hex(aux->size),
          hex(aux->flags), (aux->flags & Aux::kTruncated) != 0 ? "T" : "",
          (aux->flags & Aux::kOverwrite) != 0 ? "O" : "",
          (aux->flags & Aux::kPartial) != 0 ? "P" : "",
          (aux->flags & Aux::kCollision) != 0 ? "C" : "");
  }
}

void add_registers(const char* whose, const Registers& registers, std::string& text) {
  static constexpr std::array<const char*, 24> kNames = {
      "AX", "BX", "CX", "DX", "SI", "DI", "BP",  "SP",  "IP",  "FLAGS", "CS",  "SS",
      "DS", "ES", "FS", "GS", "R8", "R9", "R10", "R11", "R12", "R13",   "R14", "R15"};
  if (registers.abi == 0) {
    return;
  }
  print(text, "... {} regs: mask 0x{:x} ABI {}\n", whose, registers.mask,
        registers.abi == 1   ? "32-bit"
        : registers.abi == 2 ? "64-bit"
                             : "unknown");
  size_t next = 0;
  for (size_t bit = 0; bit < 64 && next < registers.values.size(); ++bit) {
    if ((registers.mask >> bit & 1) != 0) {
      print(text, ".... {:<5} 0x{:016x}\n",
            bit < kNames.size() ? std::string(kNames[bit]) : fmt::format("#{}", bit),
            registers.values[next++]);
    }
  }
}

// perf_branch_entry: below this bit are mispredicted, predicted, in a transaction, aborted, 16 bits
// of cycles, and the kinds that newer kernels tell.
constexpr unsigned kBranchReserved = 33;

void add_branch(size_t index, const Branch& branch, std::string& text) {
  const auto flag = [&](unsigned bit, char letter) {
    return (branch.flags >> bit & 1) != 0 ? letter : ' ';
  };
  print(text, "..... {:2}: {:016x} -> {:016x} {} cycles {}{}{}{} {:x}\n", index, branch.from,
        branch.to, branch.flags >> 4 & 0xFFFF, flag(0, 'M'), flag(1, 'P'), flag(3, 'A'),
        flag(2, 'T'), branch.flags >> kBranchReserved);
}

// Ends the line itself.
void add_sample(const FileInfo& info, const Record& record, std::string& text) {
  const Attribute& attribute = info.attributes[record.attribute];
  const auto sample = parse_sample(attribute, record);
  if (!sample) {
    text += ": its fields cannot be read\n";
    return;
  }
  const bool threads = attribute.has(sample_type::kTid);
  print(text, "(IP, 0x{:x}): {}/{}: {} period: {} addr: {}\n", record.misc,
        threads ? number(sample->pid) : -1, threads ? number(sample->tid) : -1, hex(sample->ip),
        attribute.has(sample_type::kPeriod) ? sample->period : attribute.sample_period,
        hex(sample->address));
  if (attribute.has(sample_type::kCallchain)) {
    print(text, "... FP chain: nr:{}\n", sample->callchain.size());
    for (size_t i = 0; i < sample->callchain.size(); ++i) {
      print(text, "..... {:2}: {:016x}\n", i, sample->callchain[i]);
    }
  }
  if (attribute.has(sample_type::kBranchStack)) {
    print(text, "... branch stack: nr:{}\n", sample->branches.size());
    for (size_t i = 0; i < sample->branches.size(); ++i) {
      add_branch(i, sample->branches[i], text);
    }
  }
  add_registers("user", sample->user_registers, text);
  add_registers("intr", sample->interrupt_registers, text);
  const auto word = [&](uint64_t field, const char* what, uint64_t value) {
    if (attribute.has(field)) {
      print(text, "... {}: 0x{:x}\n", what, value);
    }
  };
  if (attribute.has(sample_type::kStackUser)) {
    print(text, "... ustack: size {}\n", sample->user_stack.size());
  }
  word(sample_type::kWeight | sample_type::kWeightStruct, "weight", sample->weight);
  word(sample_type::kDataSource, "data_src", sample->data_source);
  word(sample_type::kTransaction, "transaction", sample->transaction);
  word(sample_type::kPhysicalAddress, "phys_addr", sample->physical_address);
  word(sample_type::kCgroup, "cgroup", sample->cgroup);
  word(sample_type::kDataPageSize, "data page size", sample->data_page_size);
  word(sample_type::kCodePageSize, "code page size", sample->code_page_size);
}

void add_numbers(const std::vector<uint64_t>& numbers, std::string& text) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) {
      ++last;
    }
    print(text, "{}{}", i == 0 ? "" : ",", static_cast<int64_t>(numbers[i]));
    if (last > i) {
      print(text, "-{}", numbers[last]);
    }
    i = last;
  }
}

// What stands after the name in the line.
void add_details(const Record& record, std::string& text) {
  switch (record.type) {
    case RecordType::kMmap:
    case RecordType::kMmap2:
      return add_mmap(record, text);
    case RecordType::kComm:
      if (const auto comm = parse_comm(record)) {
        print(text, "{}: {}:{}/{}", comm->exec ? " exec" : "", name(comm->name), number(comm->pid),
              number(comm->tid));
      }
      return;
    case RecordType::kFork:
    case RecordType::kExit:
      if (const auto task = parse_task(record)) {
        print(text, "({}:{}):({}:{})", number(task->pid), number(task->tid),
              number(task->parent_pid), number(task->parent_tid));
      }
      return;
    case RecordType::kLost:
      if (const auto lost = parse_lost(record)) {
        print(text, ": id:{}: lost:{}", lost->id, lost->count);
      }
      return;
    case RecordType::kLostSamples:
      if (const auto lost = parse_lost(record)) {
        print(text, ": id:{}: lost samples :{}", record.sample_id.id, lost->count);
      }
      return;
    case RecordType::kAux:
      return add_aux(record, text);
    case RecordType::kItraceStart:
      if (const auto start = parse_itrace_start(record)) {
        print(text, " pid: {} tid: {}", number(start->pid), number(start->tid));
      }
      return;
    case RecordType::kSwitch:
    case RecordType::kSwitchCpuWide:
      return add_switch(record, text);
    case RecordType::kNamespaces:
      if (const auto spaces = parse_namespaces(record)) {
        print(text, " {}/{} - nr_namespaces: {}", number(spaces->pid), number(spaces->tid),
              spaces->links.size());
      }
      return;
    case RecordType::kKsymbol:
      if (const auto symbol = parse_ksymbol(record)) {
        print(text, " addr {:x} len {} type {} flags 0x{:x} name {}", symbol->address, symbol->size,
              symbol->type, symbol->flags, name(symbol->name));
      }
      return;
    case RecordType::kBpfEvent:
      if (const auto event = parse_bpf_event(record)) {
        print(text, " type {}, flags {}, id {}", event->type, event->flags, event->id);
      }
      return;
    case RecordType::kCgroup:
      if (const auto group = parse_cgroup(record)) {
        print(text, " cgroup: {} {}", group->id, name(group->path));
      }
      return;
    case RecordType::kTextPoke:
      if (const auto poke = parse_text_poke(record)) {
        print(text, " addr {} old len {} new len {}", hex(poke->address), poke->before.size(),
              poke->after.size());
      }
      return;
    case RecordType::kAuxOutputHwId:
      if (const auto id = parse_aux_output_hw_id(record)) {
        print(text, " hw_id: {}", hex(*id));
      }
      return;
    case RecordType::kAuxtraceInfo:
      if (const auto trace = parse_auxtrace_info(record)) {
        print(text, " type: {}", trace->type);
      }
      return;
    case RecordType::kAuxtrace:
      return add_auxtrace(record, text);
    case RecordType::kAuxtraceError:
      if (const auto error = parse_auxtrace_error(record)) {
        print(text, " type: {} code: {} cpu: {} pid: {} tid: {} ip: {}: {}", error->type,
              error->code, number(error->cpu), number(error->pid), number(error->tid),
              hex(error->ip), name(error->message));
      }
      return;
    case RecordType::kIdIndex:
      if (const auto entries = parse_id_index(record)) {
        print(text, " nr: {}", entries->size());
      }
      return;
    case RecordType::kThreadMap:
      if (const auto threads = parse_thread_map(record)) {
        print(text, " nr: {}", threads->size());
        for (const uint64_t thread : *threads) {
          print(text, " thread: {}", static_cast<int64_t>(thread));
        }
      }
      return;
    case RecordType::kCpuMap:
      if (const auto cpus = parse_cpu_map(record)) {
        text += ": ";
        add_numbers(*cpus, text);
      }
      return;
    case RecordType::kTimeConv:
      if (const auto conversion = parse_time_conversion(record)) {
        print(text, "\n... Time Shift      {}\n... Time Multiplier {}\n... Time Zero       {}",
              conversion->shift, conversion->mult, conversion->zero);
      }
      return;
    case RecordType::kStat:
      if (const auto stat = parse_stat(record)) {
        print(text, "\n... id {}, cpu {}, thread {}, value {}", stat->id, number(stat->cpu),
              stat->thread, stat->value);
      }
      return;
    default:
      return;
  }
}

}  // namespace

void append_listing(const FileInfo& info, const Record& record, std::string& text) {
  uint64_t fields = 0;
  for (const Attribute& attribute : info.attributes.all()) {
    fields |= attribute.sample_type;
  }
  const auto& attributes = info.attributes.all();
  const bool stamped =
      record.type == RecordType::kSample ||
      (!attributes.empty() && (attributes.front().flags & attribute_flag::kSampleIdAll) != 0);
  if (!stamped) {
    text += "-1 -1 ";
  } else {
    if ((fields & sample_type::kCpu) != 0) {
      print(text, "{} ", record.has_cpu() || record.of_tool() ? record.sample_id.cpu : UINT32_MAX);
    }
    if ((fields & sample_type::kTime) != 0) {
      print(text, "{} ",
            record.has_time() || record.of_tool() ? record.sample_id.time : UINT64_MAX);
    }
  }
  print(text, "{} [{}]: PERF_RECORD_{}", hex(record.offset), hex(record.size),
        record_name(record.type));
  if (record.type == RecordType::kSample) {
    add_sample(info, record, text);
    return;
  }
  add_details(record, text);
  text += '\n';
}

std::string header_listing(const FileInfo& info) {
  std::string text;
  const auto line = [&](const char* what, std::string_view value) {
    if (!value.empty()) {
      print(text, "# {}: {}\n", what, name(value));
    }
  };
  line("hostname", info.hostname);
  line("os release", info.os_release);
  line("perf version", info.perf_version);
  line("arch", info.architecture);
  line("cpu", info.cpu_description);
  std::string command;
  for (const std::string& word : info.command_line) {
    command += (command.empty() ? "" : " ") + word;
  }
  line("command", command);
  for (const Attribute& attribute : info.attributes.all()) {
    print(text, "# event: {} type {} config 0x{:x} sample_type 0x{:x} ids {}\n",
          attribute.name.empty() ? "?" : name(attribute.name), attribute.type, attribute.config,
          attribute.sample_type, attribute.ids.size());
  }
  for (const FileBuildId& entry : info.build_ids) {
    print(text, "# build-id: {} {}\n", hex_bytes(entry.id), name(entry.path));
  }
  return text;
}

}  // namespace tsomon::perf
