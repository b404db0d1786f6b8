# What find_package(tsomon) reads. Components:
#   instrument  tsomon_instrument(target...)  programs whose runs are recorded (TsomonInstrument.cmake)
#   monitor     tsomon::monitor               <tsomon/monitor.h>, <tsomon/monitor_c.h>: programs that feed a monitor of their
#                                             own, in C++ or C
#               tsomon::monitor_shared        the same as libtsomon-monitor.so
#               tsomon::watcher               <tsomon/watcher.h>: programs that watch others, in C++
# Without COMPONENTS all that is installed is there. A component that is unknown or not installed is not found, and tsomon is
# not where it is required.
#
# The libraries behind tsomon::monitor (Debian: libfmt-dev, libdw-dev, libzstd-dev, libzydis-dev) are needed by programs that
# link with it, and looked up then; tsomon::monitor_shared has them with it. tsomon::watcher needs libsqlite3-dev,
# libpfm4-dev and libipt-dev besides.

# Of where it really is: what is found as /lib may be in /usr/lib.
get_filename_component(_tsomon_prefix ${CMAKE_CURRENT_LIST_DIR} REALPATH)
get_filename_component(_tsomon_prefix ${_tsomon_prefix}/../../.. ABSOLUTE)

# Each by files that it cannot be without, and the Debian package that has them.
set(_tsomon_instrument share/tsomon/cmake/TsomonInstrument.cmake lib/libtsomon_probe.a)
set(_tsomon_instrument_package tsomon)
set(_tsomon_monitor include/tsomon/monitor.h include/tsomon/watcher.h lib/libtsomon_monitor.a lib/libtsomon-monitor.so)
set(_tsomon_monitor_package libtsomon-monitor-dev)
set(_tsomon_components instrument monitor)

foreach(_tsomon_component IN LISTS _tsomon_components)
  set(tsomon_${_tsomon_component}_FOUND TRUE)
  foreach(_tsomon_file IN LISTS _tsomon_${_tsomon_component})
    if(NOT EXISTS ${_tsomon_prefix}/${_tsomon_file})
      set(tsomon_${_tsomon_component}_FOUND FALSE)
    endif()
  endforeach()
endforeach()
foreach(_tsomon_component IN LISTS tsomon_FIND_COMPONENTS)
  if(NOT _tsomon_component IN_LIST _tsomon_components)
    set(tsomon_${_tsomon_component}_FOUND FALSE)
    set(_tsomon_why "there is no component '${_tsomon_component}'; there are: ${_tsomon_components}")
  elseif(NOT tsomon_${_tsomon_component}_FOUND)
    set(_tsomon_why "the component '${_tsomon_component}' is not installed in ${_tsomon_prefix}")
    string(APPEND _tsomon_why " (Debian package: ${_tsomon_${_tsomon_component}_package})")
  endif()
  if(tsomon_FIND_REQUIRED_${_tsomon_component} AND NOT tsomon_${_tsomon_component}_FOUND)
    set(tsomon_FOUND FALSE)
    set(tsomon_NOT_FOUND_MESSAGE "${_tsomon_why}")
  endif()
endforeach()

if(tsomon_instrument_FOUND)
  include(${_tsomon_prefix}/share/tsomon/cmake/TsomonInstrument.cmake)
endif()

if(tsomon_monitor_FOUND AND NOT TARGET tsomon::monitor)
  include(CMakeFindDependencyMacro)
  find_dependency(Threads)
  add_library(tsomon::monitor STATIC IMPORTED)
  set_target_properties(tsomon::monitor PROPERTIES IMPORTED_LOCATION ${_tsomon_prefix}/lib/libtsomon_monitor.a
                                                   INTERFACE_INCLUDE_DIRECTORIES ${_tsomon_prefix}/include)
  target_link_libraries(
    tsomon::monitor
    INTERFACE ${_tsomon_prefix}/lib/libtsomon_decoders.a ${_tsomon_prefix}/lib/libtsomon_online.a
              ${_tsomon_prefix}/lib/libtsomon_offline.a
              ${_tsomon_prefix}/lib/libtsomon_tso.a fmt dw elf zstd Zydis Threads::Threads
              # Programs in C are linked without it.
              stdc++ m)
  # The decoders and probes beside the monitor, and the libraries that they need, are left out.
  target_link_options(tsomon::monitor INTERFACE LINKER:--gc-sections)

  add_library(tsomon::watcher INTERFACE IMPORTED)
  target_link_libraries(tsomon::watcher INTERFACE tsomon::monitor sqlite3 pfm ipt)

  add_library(tsomon::monitor_shared SHARED IMPORTED)
  set_target_properties(tsomon::monitor_shared PROPERTIES IMPORTED_LOCATION ${_tsomon_prefix}/lib/libtsomon-monitor.so
                                                          INTERFACE_INCLUDE_DIRECTORIES ${_tsomon_prefix}/include)
  get_property(_tsomon_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(CXX IN_LIST _tsomon_languages)
    set_property(TARGET tsomon::monitor tsomon::monitor_shared PROPERTY INTERFACE_COMPILE_FEATURES cxx_std_17)
  endif()
  unset(_tsomon_languages)
endif()

foreach(_tsomon_component IN LISTS _tsomon_components)
  unset(_tsomon_${_tsomon_component})
  unset(_tsomon_${_tsomon_component}_package)
endforeach()
unset(_tsomon_components)
unset(_tsomon_component)
unset(_tsomon_file)
unset(_tsomon_why)
unset(_tsomon_prefix)
