#include "monitor/explore/program_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/explore/channel.h"
#include "tso/support/work.h"

namespace tsomon::explore {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kStartSeconds = 30;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Error start_error(const std::string& program, const std::string& message) {
  return {ErrorKind::kEnvironment, program, {}, message};
}

tl::unexpected<Error> no_start(const std::string& program, const std::string& what, int error) {
  return tl::unexpected(start_error(program, what + ": " + std::strerror(error)));
}

tl::unexpected<Error> unusable(const std::string& program, const std::string& why) {
  Error error = start_error(program, why);
  error.kind = ErrorKind::kUnreadable;
  return tl::unexpected(error);
}

std::vector<std::string> environment_for(int memory) {
  std::vector<std::string> environment;
  const std::string own = std::string(kChannelVariable) + "=";
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (!text.starts_with(own) && !text.starts_with("TSOMON_OPTIONS=") &&
        !text.starts_with("LD_BIND_NOW=")) {
      environment.push_back(text);
    }
  }
  environment.push_back(own + std::to_string(memory));
  environment.emplace_back("LD_BIND_NOW=1");  // once, instead of in every execution
  return environment;
}

bool is_position_independent(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header{};
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  return !file || header.e_type == ET_DYN;
}

}  // namespace

Result<std::unique_ptr<ProgramProcess>> ProgramProcess::start(
    const std::vector<std::string>& command, const ProcessOptions& options) {
  std::unique_ptr<ProgramProcess> process(new ProgramProcess);
  process->options_ = options;
  process->options_.max_steps = std::min(options.max_steps, kMaxSteps);
  if (const auto begun = process->begin(command); !begun) {
    return tl::unexpected(begun.error());
  }
  return process;
}

Result<bool> ProgramProcess::begin(const std::vector<std::string>& command) {
  const int memory = memfd_create("tsomon-explore", 0);
  errors_ = memfd_create("tsomon-explore-errors", MFD_CLOEXEC);
  if (memory < 0 || errors_ < 0 || ftruncate(memory, sizeof(Channel)) != 0) {
    return no_start(command[0], "no memory to share with the program", errno);
  }
  void* const mapped =
      mmap(nullptr, sizeof(Channel), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (mapped == MAP_FAILED) {
    return no_start(command[0], "no memory to share with the program", errno);
  }
  channel_ = static_cast<Channel*>(mapped);
  channel_->processor = options_.processor;
  channel_->explorer = getpid();
  // A schedule that somebody looks at runs as what it is, a process with threads.
  channel_->run_in_place = !options_.fork && !options_.show_output;
  auto started = start_server(command, memory);
  ::close(memory);
  if (!started) {
    return started;
  }
  if (auto served = wait_for_runtime(command[0]); !served) {
    return served;
  }
  served_ = 1;
  return true;
}

Result<bool> ProgramProcess::start_server(const std::vector<std::string>& command, int memory) {
  std::array<int, 2> told{};
  if (pipe2(told.data(), O_CLOEXEC) != 0) {
    return no_start(command[0], "no pipe to the program", errno);
  }
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  // Between fork and exec nothing may be allocated: other threads may be in the allocator.
  const std::vector<std::string> environment = environment_for(memory);
  std::vector<char*> variables;
  variables.reserve(environment.size() + 1);
  for (const std::string& variable : environment) {
    variables.push_back(const_cast<char*>(variable.c_str()));
  }
  variables.push_back(nullptr);
  server_ = fork();
  if (server_ == 0) {
    personality(ADDR_NO_RANDOMIZE);
    if (!options_.show_output) {
      dup2(errors_, STDERR_FILENO);
      // A signal to the group ends the exploration, not the program under it.
      setpgid(0, 0);
    }
    execvpe(arguments[0], arguments.data(), variables.data());
    const int error = errno;
    const ssize_t sent = ::write(told[1], &error, sizeof error);
    _exit(sent == sizeof error ? 127 : 126);
  }
  const int fork_error = errno;
  ::close(told[1]);
  int exec_error = 0;
  ssize_t got = 0;
  while (server_ > 0 && (got = ::read(told[0], &exec_error, sizeof exec_error)) < 0 &&
         errno == EINTR) {
  }
  ::close(told[0]);
  if (server_ < 0) {
    return no_start(command[0], "no process can be made", fork_error);
  }
  if (got == sizeof exec_error) {
    return unusable(command[0], std::strerror(exec_error));
  }
  return true;
}

Result<bool> ProgramProcess::wait_for_runtime(const std::string& program) {
  const auto begin = Clock::now();
  while (channel_->done.load(std::memory_order_acquire) == 0) {
    int status = 0;
    if (waitpid(server_, &status, WNOHANG) == server_) {
      server_ = -1;
      return unusable(program,
                      "it is not linked with the tsomon runtime. Build it with tsomon-c++ or "
                      "tsomon-cc in the place of its compiler");
    }
    if (seconds_since(begin) > kStartSeconds || stop_asked()) {
      return tl::unexpected(start_error(program, "it did not come to the start of the runtime"));
    }
    sleep_on_done(0);
  }
  if (channel_->magic != kChannelMagic) {
    return unusable(program,
                    "it is linked with the runtime of another version of tsomon. Build it again");
  }
  return true;
}

ProgramProcess::~ProgramProcess() {
  if (server_ > 0) {
    kill(server_, SIGKILL);
    waitpid(server_, nullptr, 0);
  }
  if (channel_ != nullptr) {
    munmap(channel_, sizeof(Channel));
  }
  if (errors_ >= 0) {
    ::close(errors_);
  }
}

void ProgramProcess::share(uint64_t word) {
  if (table_add(channel_->shared, &channel_->shared_count, word)) {
    drop_ahead();
  }
}

bool ProgramProcess::split(uint64_t word, uint8_t starts) {
  uint32_t at = 0;
  while (at < channel_->split_count && channel_->split[at].word != word) {
    ++at;
  }
  if (at == kMaxSplit) {
    return false;
  }
  if (at == channel_->split_count) {
    channel_->split[at] = {word, 0};
    ++channel_->split_count;
  }
  const uint8_t before = channel_->split[at].starts;
  channel_->split[at].starts |= starts;
  if (channel_->split[at].starts != before) {
    drop_ahead();
  }
  return channel_->split[at].starts != before;
}

std::map<uint64_t, uint8_t> ProgramProcess::split_words() const {
  std::map<uint64_t, uint8_t> words;
  for (uint32_t i = 0; i < channel_->split_count; ++i) {
    words[channel_->split[i].word] = channel_->split[i].starts;
  }
  return words;
}

bool ProgramProcess::add_fence(uint64_t pc) {
  if (channel_->fence_count == kMaxRepairs) {
    return false;
  }
  drop_ahead();
  channel_->fences[channel_->fence_count++] = pc;
  return true;
}

bool ProgramProcess::add_atomic(const AtomicPlace& place) {
  if (channel_->atomic_count == kMaxRepairs) {
    return false;
  }
  drop_ahead();
  channel_->atomic[channel_->atomic_count++] = place;
  return true;
}

bool ProgramProcess::learn_shared() {
  if (!took_newest_) {
    return false;  // it found none, or would have been the last
  }
  const uint32_t before = channel_->shared_count;
  const uint32_t found = at_most(channel_->found_count, kMaxFound);
  channel_->found_count = 0;
  for (uint32_t i = 0; i < found; ++i) {
    share(channel_->found[i]);
  }
  return channel_->shared_count != before;
}

std::vector<uint64_t> ProgramProcess::shared_words() const {
  std::vector<uint64_t> words;
  for (const uint64_t word : channel_->shared) {
    if (word != 0) {
      words.push_back(word);
    }
  }
  std::sort(words.begin(), words.end());
  return words;
}

std::vector<ThreadOrigin> ProgramProcess::origins() const {
  std::vector<ThreadOrigin> origins;
  for (uint32_t number = 1; number <= kMaxThreads; ++number) {
    const ThreadName& name = channel_->threads[number];
    if (name.child != 0 && (name.parent != 0 || name.child != number)) {
      origins.push_back({number, name.parent, name.child});
    }
  }
  return origins;
}

std::vector<ThreadOrigin> ProgramProcess::named_threads() const {
  std::vector<ThreadOrigin> named;
  for (uint32_t number = 1; number <= kMaxThreads; ++number) {
    if (const ThreadName& name = channel_->threads[number]; name.child != 0) {
      named.push_back({number, name.parent, name.child});
    }
  }
  return named;
}

void ProgramProcess::forget_threads() {
  drop_ahead();
  std::fill(std::begin(channel_->threads), std::end(channel_->threads), ThreadName{});
}

void ProgramProcess::set_origin(const ThreadOrigin& origin) {
  ThreadName& name = channel_->threads[origin.number];
  if (name.parent != origin.parent || name.child != origin.child) {
    drop_ahead();
    name = {origin.parent, origin.child};
  }
}

const std::string& ProgramProcess::label(uint32_t number) {
  while (labels_.size() <= number && labels_.size() < at_most(channel_->label_count, kMaxLabels)) {
    const auto& text = channel_->labels[labels_.size()];
    labels_.emplace_back(text, strnlen(text, sizeof text));
  }
  static const std::string kNone;
  return number < labels_.size() ? labels_[number] : kNone;
}

std::string ProgramProcess::error_output() const {
  if (!took_newest_) {
    return {};  // likewise
  }
  std::string text(4096, '\0');
  const ssize_t size = pread(errors_, text.data(), text.size(), 0);
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return text;
}

std::string ProgramProcess::forked_because() const { return channel_->forked_because; }

NearProcess::NearProcess(const ProgramProcess& process) {
  if (sched_getaffinity(0, sizeof before_, &before_) != 0) {
    return;
  }
  cpu_set_t there;
  CPU_ZERO(&there);
  CPU_SET(process.channel_->runs_on, &there);
  sched_setaffinity(0, sizeof there, &there);
}
NearProcess::~NearProcess() { sched_setaffinity(0, sizeof before_, &before_); }

std::vector<capture::Module> ProgramProcess::modules() const {
  std::vector<capture::Module> modules;
  std::map<std::string, uint64_t> bases;
  std::ifstream maps(fmt::format("/proc/{}/maps", server_));
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    std::string range;
    std::string rights;
    std::string offset;
    std::string device;
    std::string node;
    std::string path;
    fields >> range >> rights >> offset >> device >> node;
    std::getline(fields >> std::ws, path);
    const size_t dash = range.find('-');
    if (path.empty() || path[0] != '/' || dash == std::string::npos) {
      continue;
    }
    capture::Module module;
    module.begin = std::stoull(range.substr(0, dash), nullptr, 16);
    module.end = std::stoull(range.substr(dash + 1), nullptr, 16);
    const auto base = bases.try_emplace(path, module.begin).first->second;
    module.bias = is_position_independent(path) ? base : 0;
    module.path = path;
    modules.push_back(module);
  }
  return modules;
}

}  // namespace tsomon::explore
