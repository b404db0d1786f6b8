// Runs one command-line case: run_case FILE.case FOLDER... (folders to put in front of PATH).
//
// A case is a text file of these parts; lines that start with '#' before the first part are
// comments.
//
//   run: tsomon check --output json a.std     the command, for /bin/sh, in a fresh empty folder
//   status: 2                                 its exit status; 0 when not given
//   --- file a.std                            an input file, up to the next '---' line
//   --- stdin                                 the command's standard input
//   --- stdout                                expected standard output, whole; empty when not given
//   --- stderr                                each line must occur in the standard error
//
// In the expected output <*> stands for any text within the line, and a line `...` for any number
// of lines.

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace {

namespace fs = std::filesystem;

struct Case {
  std::string command;
  int status = 0;
  std::map<std::string, std::string> files;  // by name
  std::string input;
  std::string output;
  std::vector<std::string> messages;
};

[[noreturn]] void broken(const std::string& what) {
  std::fprintf(stderr, "broken case: %s\n", what.c_str());
  std::exit(2);
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

bool take_prefix(std::string& line, std::string_view prefix) {
  if (line.rfind(prefix, 0) != 0) {
    return false;
  }
  line.erase(0, prefix.size());
  return true;
}

Case parse(const std::string& text) {
  Case result;
  std::string* part = nullptr;
  std::string messages;
  for (std::string line : lines_of(text)) {
    if (take_prefix(line, "--- ")) {
      if (line == "stdin") {
        part = &result.input;
      } else if (line == "stdout") {
        part = &result.output;
      } else if (line == "stderr") {
        part = &messages;
      } else if (take_prefix(line, "file ")) {
        part = &result.files[line];
      } else {
        broken("unknown part '--- " + line + "'");
      }
    } else if (part != nullptr) {
      *part += line + "\n";
    } else if (take_prefix(line, "run: ")) {
      result.command = line;
    } else if (take_prefix(line, "status: ")) {
      result.status = std::atoi(line.c_str());
    } else if (!line.empty() && line[0] != '#') {
      broken("expected 'run:', 'status:' or '--- part', found '" + line + "'");
    }
  }
  if (result.command.empty()) {
    broken("no 'run:' line");
  }
  result.messages = lines_of(messages);
  return result;
}

bool line_matches(std::string_view pattern, std::string_view line) {
  const size_t wildcard = pattern.find("<*>");
  if (wildcard == std::string_view::npos) {
    return pattern == line;
  }
  if (line.substr(0, wildcard) != pattern.substr(0, wildcard)) {
    return false;
  }
  const std::string_view rest = pattern.substr(wildcard + 3);
  for (size_t start = wildcard; start <= line.size(); ++start) {
    if (line_matches(rest, line.substr(start))) {
      return true;
    }
  }
  return false;
}

bool lines_match(const std::vector<std::string>& pattern, size_t p,
                 const std::vector<std::string>& lines, size_t l) {
  if (p == pattern.size()) {
    return l == lines.size();
  }
  if (pattern[p] == "...") {
    for (size_t next = l; next <= lines.size(); ++next) {
      if (lines_match(pattern, p + 1, lines, next)) {
        return true;
      }
    }
    return false;
  }
  return l < lines.size() && line_matches(pattern[p], lines[l]) &&
         lines_match(pattern, p + 1, lines, l + 1);
}

// True when everything is as the case says; the differences go to standard error.
bool holds(const Case& expected, int status, const std::string& output, const std::string& errors) {
  bool good = true;
  if (status != expected.status) {
    std::fprintf(stderr, "exit status: expected %d, found %d\n", expected.status, status);
    good = false;
  }
  if (!lines_match(lines_of(expected.output), 0, lines_of(output), 0)) {
    std::fprintf(stderr, "standard output: expected\n%sfound\n%s", expected.output.c_str(),
                 output.c_str());
    good = false;
  }
  for (const std::string& message : expected.messages) {
    if (errors.find(message) == std::string::npos) {
      std::fprintf(stderr, "standard error does not contain: %s\n", message.c_str());
      good = false;
    }
  }
  if (!good) {
    std::fprintf(stderr, "standard error was\n%s", errors.c_str());
  }
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || !fs::is_regular_file(argv[1])) {
    broken("usage: run_case FILE.case FOLDER...");
  }
  const Case expected = parse(read_file(argv[1]));
  std::string path;
  for (int i = 2; i < argc; ++i) {
    path += fs::absolute(argv[i]).string() + ":";
  }
  if (const char* inherited = std::getenv("PATH")) {
    path += inherited;
  }
  setenv("PATH", path.c_str(), 1);
  setenv("LC_ALL", "C.UTF-8", 1);

  std::string folder = (fs::temp_directory_path() / "tsomon_case_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    broken("cannot create " + folder);
  }
  const fs::path root = folder;
  fs::create_directory(root / "work");
  for (const auto& [name, content] : expected.files) {
    std::ofstream(root / "work" / name, std::ios::binary) << content;
  }
  std::ofstream(root / "stdin", std::ios::binary) << expected.input;
  std::ofstream(root / "command", std::ios::binary) << expected.command << "\n";

  const std::string shell =
      "cd " + folder + "/work && exec /bin/sh ../command <../stdin >../stdout 2>../stderr";
  const int result = std::system(shell.c_str());
  const int status = WIFEXITED(result) ? WEXITSTATUS(result) : 128 + WTERMSIG(result);
  const bool good = holds(expected, status, read_file(root / "stdout"), read_file(root / "stderr"));
  std::error_code ignored;
  fs::remove_all(root, ignored);
  return good ? 0 : 1;
}
