# Every dependency comes from a Debian package; a missing one is named with the command that
# installs it.

function(tsomon_missing what package)
  message(FATAL_ERROR "${what} was not found. Install it with: apt-get install ${package}")
endfunction()

find_package(Threads REQUIRED)

find_package(fmt QUIET)
if(NOT fmt_FOUND)
  tsomon_missing("fmt" libfmt-dev)
endif()

find_package(tl-expected QUIET)
if(NOT tl-expected_FOUND)
  tsomon_missing("tl::expected" libexpected-dev)
endif()

find_package(CLI11 QUIET)
if(NOT CLI11_FOUND)
  tsomon_missing("CLI11" libcli11-dev)
endif()

find_package(nlohmann_json QUIET)
if(NOT nlohmann_json_FOUND)
  tsomon_missing("nlohmann-json" nlohmann-json3-dev)
endif()

find_package(tsl-robin-map QUIET)
if(NOT tsl-robin-map_FOUND)
  tsomon_missing("robin-map" robin-map-dev)
endif()

# Packages without a CMake configuration of their own: header and library are looked up directly.
function(tsomon_library target header library package)
  find_path(${target}_INCLUDE_DIR ${header} PATH_SUFFIXES postgresql)
  find_library(${target}_LIBRARY ${library})
  if(NOT ${target}_INCLUDE_DIR OR NOT ${target}_LIBRARY)
    tsomon_missing("${header} or lib${library}" ${package})
  endif()
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${target} SYSTEM INTERFACE ${${target}_INCLUDE_DIR})
  target_link_libraries(${target} INTERFACE ${${target}_LIBRARY})
endfunction()

tsomon_library(tsomon_zstd zstd.h zstd libzstd-dev)
tsomon_library(tsomon_xxhash xxhash.h xxhash libxxhash-dev)
tsomon_library(tsomon_dw elfutils/libdwfl.h dw libdw-dev)
tsomon_library(tsomon_elf libelf.h elf libelf-dev)
tsomon_library(tsomon_pfm perfmon/pfmlib.h pfm libpfm4-dev)
tsomon_library(tsomon_ipt intel-pt.h ipt libipt-dev)
tsomon_library(tsomon_sqlite sqlite3.h sqlite3 libsqlite3-dev)
tsomon_library(tsomon_seccomp seccomp.h seccomp libseccomp-dev)
# Of tsomon-fleet alone.
tsomon_library(tsomon_pq libpq-fe.h pq libpq-dev)
tsomon_library(tsomon_nats nats/nats.h nats libnats-dev)
tsomon_library(tsomon_crypto openssl/evp.h crypto libssl-dev)
if(NOT TSOMON_SANITIZE)
  tsomon_library(tsomon_mimalloc mimalloc.h mimalloc libmimalloc-dev)
endif()
tsomon_library(tsomon_zydis Zydis/Zydis.h Zydis libzydis-dev)

find_path(TSOMON_CONCURRENTQUEUE_DIR concurrentqueue/concurrentqueue.h)
if(NOT TSOMON_CONCURRENTQUEUE_DIR)
  tsomon_missing("moodycamel ConcurrentQueue" libconcurrentqueue-dev)
endif()

find_path(TSOMON_TOMLPLUSPLUS_DIR toml++/toml.h)
if(NOT TSOMON_TOMLPLUSPLUS_DIR)
  tsomon_missing("toml++" libtomlplusplus-dev)
endif()

if(TSOMON_BUILD_TESTS)
  find_package(doctest QUIET)
  if(NOT doctest_FOUND)
    tsomon_missing("doctest" doctest-dev)
  endif()
endif()

if(TSOMON_BUILD_BENCHMARKS)
  find_package(benchmark QUIET)
  if(NOT benchmark_FOUND)
    tsomon_missing("Google Benchmark" libbenchmark-dev)
  endif()
endif()
