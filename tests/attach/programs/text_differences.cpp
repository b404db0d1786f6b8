// What in the code of a process differs from the files it came from: text_differences PID
//
// Prints each mapping that differs, and how many bytes do; probes are breakpoint instructions
// written into this process's copy of the code. Exit status: 0 no difference, 1 some, 2 cannot be
// told.

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 2) {
    return 2;
  }
  const std::string process = std::string("/proc/") + argv[1];
  std::ifstream maps(process + "/maps");
  std::ifstream memory(process + "/mem", std::ios::binary);
  if (!maps || !memory) {
    return 2;
  }
  int status = 0;
  size_t compared = 0;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t offset = 0;
    uint64_t inode = 0;
    char dash = 0;
    std::string permissions;
    std::string device;
    std::string path;
    fields >> std::hex >> begin >> dash >> end >> permissions >> offset >> device >> std::dec >>
        inode;
    std::getline(fields >> std::ws, path);
    if (inode == 0 || permissions.find('x') == std::string::npos) {
      continue;
    }
    std::vector<char> now(end - begin);
    std::vector<char> then(end - begin);
    memory.seekg(static_cast<std::streamoff>(begin));
    path.insert(0, "/root").insert(0, process);
    std::ifstream file(path, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    if (!memory.read(now.data(), static_cast<std::streamsize>(now.size())) || !file) {
      return 2;
    }
    file.read(then.data(), static_cast<std::streamsize>(then.size()));
    const auto size = static_cast<size_t>(file.gcount());
    size_t different = 0;
    for (size_t i = 0; i < size; ++i) {
      different += now[i] != then[i] ? 1 : 0;
    }
    compared += size;
    if (different != 0) {
      std::printf("%s: %zu bytes differ\n", path.c_str(), different);
      status = 1;
    }
  }
  return compared == 0 ? 2 : status;
}
