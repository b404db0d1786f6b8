// A litmus test as a program: what its threads do is an argument.
//
//   explore_program 'MOV [x],$1; MOV EAX,[y] | MOV [y],$1; XCHG [x],EBX' '0:EAX y'
//
// Instructions: MOV [LOCATION],$NUMBER; MOV [LOCATION],REGISTER; MOV REGISTER,[LOCATION];
// MOV REGISTER,$NUMBER; XCHG [LOCATION],REGISTER, in either order; MFENCE. The second argument says
// what an execution comes to: final values of registers (THREAD:REGISTER) and locations.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <tsomon.h>

namespace {

constexpr size_t kNames = 26;
constexpr size_t kThreads = 16;

enum class Kind { kStore, kStoreRegister, kLoad, kSet, kExchange, kFence };
struct Instruction {
  Kind kind = Kind::kFence;
  size_t location = 0;
  size_t reg = 0;
  int value = 0;
};

std::atomic<int> memory[kNames];
int registers[kThreads][kNames];

std::vector<std::string> location_names;
std::vector<std::string> register_names;

size_t number_of(std::vector<std::string>* names, const std::string& name) {
  for (size_t i = 0; i < names->size(); ++i) {
    if ((*names)[i] == name) {
      return i;
    }
  }
  if (names->size() == kNames) {
    std::fprintf(stderr, "more than %zu names\n", kNames);
    std::exit(2);
  }
  names->push_back(name);
  return names->size() - 1;
}

bool parse(std::string text, Instruction* instruction) {
  for (char& c : text) {
    c = c == ',' ? ' ' : c;
  }
  std::istringstream words(text);
  std::string name;
  std::string to;
  std::string from;
  words >> name >> to >> from;
  const auto location = [](const std::string& word) {
    return number_of(&location_names, word.substr(1, word.size() - 2));
  };
  if (name == "MFENCE") {
    return true;
  }
  if (to.empty() || from.empty() || (name != "MOV" && name != "XCHG")) {
    return false;
  }
  if (name == "XCHG") {
    instruction->kind = Kind::kExchange;
    const bool memory_first = to[0] == '[';
    instruction->location = location(memory_first ? to : from);
    instruction->reg = number_of(&register_names, memory_first ? from : to);
    return true;
  }
  if (to[0] == '[') {
    instruction->location = location(to);
    instruction->kind = from[0] == '$' ? Kind::kStore : Kind::kStoreRegister;
  } else {
    instruction->reg = number_of(&register_names, to);
    instruction->kind = from[0] == '$' ? Kind::kSet : Kind::kLoad;
  }
  if (from[0] == '$') {
    instruction->value = std::atoi(from.c_str() + 1);
  } else if (from[0] == '[') {
    instruction->location = location(from);
  } else {
    instruction->reg = number_of(&register_names, from);
  }
  return true;
}

void run(size_t thread, const Instruction* instructions, size_t count) {
  int* const mine = registers[thread];
  for (size_t i = 0; i < count; ++i) {
    const Instruction& next = instructions[i];
    switch (next.kind) {
      case Kind::kStore:
        memory[next.location].store(next.value, std::memory_order_release);
        break;
      case Kind::kStoreRegister:
        memory[next.location].store(mine[next.reg], std::memory_order_release);
        break;
      case Kind::kLoad:
        mine[next.reg] = memory[next.location].load(std::memory_order_acquire);
        break;
      case Kind::kSet:
        mine[next.reg] = next.value;
        break;
      case Kind::kExchange:
        mine[next.reg] = memory[next.location].exchange(mine[next.reg]);
        break;
      case Kind::kFence:
        std::atomic_thread_fence(std::memory_order_seq_cst);
        break;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    return 2;
  }
  std::vector<std::vector<Instruction>> programs;
  std::istringstream columns(argv[1]);
  for (std::string column; std::getline(columns, column, '|');) {
    programs.emplace_back();
    std::istringstream lines(column);
    for (std::string line; std::getline(lines, line, ';');) {
      if (line.find_first_not_of(' ') == std::string::npos) {
        continue;
      }
      Instruction instruction;
      if (!parse(line, &instruction)) {
        std::fprintf(stderr, "not an instruction: %s\n", line.c_str());
        return 2;
      }
      programs.back().push_back(instruction);
    }
  }
  if (programs.size() > kThreads) {
    return 2;
  }
  // All that the threads read is there before the first of them starts.
  std::vector<std::thread> threads(programs.size());
  for (size_t i = 0; i < programs.size(); ++i) {
    threads[i] = std::thread(run, i, programs[i].data(), programs[i].size());
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::string outcome;
  std::istringstream asked(argv[2]);
  for (std::string name; asked >> name;) {
    const size_t colon = name.find(':');
    const int value = colon == std::string::npos
                          ? memory[number_of(&location_names, name)].load()
                          : registers[std::atoi(name.c_str())]
                                     [number_of(&register_names, name.substr(colon + 1))];
    outcome += (outcome.empty() ? "" : " ") + name + "=" + std::to_string(value);
  }
  tsomon_outcome("%s", outcome.c_str());
  return 0;
}
