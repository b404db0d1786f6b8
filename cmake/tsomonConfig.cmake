# What find_package(tsomon) reads. Gives
#   tsomon_instrument(target...)  programs whose runs are recorded (TsomonInstrument.cmake)
#   tsomon::monitor               <tsomon/monitor.h>: programs that feed a monitor of their own
# The libraries behind tsomon::monitor (Debian: libfmt-dev, libdw-dev, libzstd-dev, libzydis-dev) are needed by
# programs that link with it, and looked up then.

get_filename_component(_tsomon_prefix ${CMAKE_CURRENT_LIST_DIR}/../../.. ABSOLUTE)
include(${_tsomon_prefix}/share/tsomon/cmake/TsomonInstrument.cmake)

if(NOT TARGET tsomon::monitor)
  include(CMakeFindDependencyMacro)
  find_dependency(Threads)
  add_library(tsomon::monitor STATIC IMPORTED)
  set_target_properties(
    tsomon::monitor
    PROPERTIES IMPORTED_LOCATION ${_tsomon_prefix}/lib/libtsomon_monitor.a
               IMPORTED_LINK_INTERFACE_LANGUAGES CXX
               INTERFACE_INCLUDE_DIRECTORIES ${_tsomon_prefix}/include
               INTERFACE_COMPILE_FEATURES cxx_std_17)
  target_link_libraries(
    tsomon::monitor
    INTERFACE ${_tsomon_prefix}/lib/libtsomon_decoders.a ${_tsomon_prefix}/lib/libtsomon_online.a
              ${_tsomon_prefix}/lib/libtsomon_offline.a
              ${_tsomon_prefix}/lib/libtsomon_tso.a fmt dw elf zstd Zydis Threads::Threads)
  # The decoders and probes beside the monitor, and the libraries that they need, are left out.
  target_link_options(tsomon::monitor INTERFACE LINKER:--gc-sections)
endif()
unset(_tsomon_prefix)
