# tsomon_instrument(target... [DORMANT] [CONTROL]): compiles the targets with tsomon's instrumentation and links
# executables with its runtime, as the wrappers tsomon-c++ and tsomon-cc do.
#
# DORMANT: as their --dormant, g++ 12 and clang 14 (docs/guide/dormant.md); CONTROL: as their --control.
# From an installation: find_package(tsomon), with its prefix in CMAKE_PREFIX_PATH.
# In the build of tsomon itself the target tsomon_probe is used.
# A library that is only an ingredient of an executable is instrumented, not linked.
# Shared libraries need no runtime: the hooks are those of the executable.

set(_tsomon_module_dir ${CMAKE_CURRENT_LIST_DIR})

function(tsomon_instrument)
  cmake_parse_arguments(PARSE_ARGV 0 instrument "DORMANT;CONTROL" "" "")
  if(TARGET tsomon_probe)
    set(library $<TARGET_FILE:tsomon_probe>)
    set(root ${PROJECT_BINARY_DIR})
  else()
    get_filename_component(root ${_tsomon_module_dir}/../../.. ABSOLUTE)
    set(library ${root}/lib/libtsomon_probe.a)
    if(NOT EXISTS ${library})
      message(FATAL_ERROR "tsomon_instrument: ${library} was not found; install tsomon first")
    endif()
  endif()
  # For the gcc that built it.
  set(plugin_option "")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^12[.]"
     AND (TARGET tsomon_calls OR EXISTS ${root}/lib/tsomon/tsomon_calls.so))
    set(plugin_option "-fplugin=${root}/lib/tsomon/tsomon_calls.so")
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^14[.]"
     AND (TARGET tsomon_accesses OR EXISTS ${root}/lib/tsomon/tsomon_accesses.so))
    set(plugin_option "-fpass-plugin=${root}/lib/tsomon/tsomon_accesses.so")
  endif()
  # As tools/tsomon-c++ has it: a dormant program's twins are called by plain code, which calls the C library itself.
  set(dormant_options $<$<CXX_COMPILER_ID:GNU>:-fno-tree-loop-im> $<$<CXX_COMPILER_ID:GNU>:-fno-hoist-adjacent-loads>
                      -fpatchable-function-entry=5)
  set(wrap "-Wl,@${root}/share/tsomon/tsomon-wrap")
  set(twins "")
  if(instrument_DORMANT)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^12[.]"
       AND (TARGET tsomon_twins OR EXISTS ${root}/lib/tsomon/tsomon_twins.so))
      set(twins tsomon_twins)
      set(dormant_options "-fplugin=${root}/lib/tsomon/tsomon_twins.so" -fno-ipa-ra)
    elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^14[.]"
           AND (TARGET tsomon_clang_twins OR EXISTS ${root}/lib/tsomon/tsomon_clang_twins.so))
      set(twins tsomon_clang_twins)
      set(dormant_options "-fpass-plugin=${root}/lib/tsomon/tsomon_clang_twins.so")
    else()
      message(FATAL_ERROR "tsomon_instrument: DORMANT: only with g++ 12 and clang 14, where tsomon was built with the headers "
                          "for their plugins (apt-get install gcc-12-plugin-dev llvm-14-dev)")
    endif()
    set(wrap "-Wl,-z,start-stop-gc")
  endif()
  if(instrument_CONTROL)
    list(APPEND wrap "-Wl,--defsym=tsomon_control_by_build=1")
  endif()
  foreach(target IN LISTS instrument_UNPARSED_ARGUMENTS)
    target_compile_options(
      ${target}
      PRIVATE $<$<CXX_COMPILER_ID:Clang>:-Xclang$<SEMICOLON>-fsanitize=thread>
              "$<$<CXX_COMPILER_ID:Clang>:SHELL:-mllvm -tsan-instrument-read-before-write>"
              "$<$<CXX_COMPILER_ID:Clang>:SHELL:-mllvm -disable-licm-promotion>"
              $<$<CXX_COMPILER_ID:GNU>:-specs=${root}/share/tsomon/tsomon-gcc.specs>
              ${plugin_option}
              $<$<CXX_COMPILER_ID:Clang>:-fno-integrated-as>
              -B${root}/lib/tsomon/ -mno-red-zone
              $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan> -g ${dormant_options})
    target_include_directories(${target} SYSTEM PRIVATE ${root}/include/tsomon)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      target_link_options(
        ${target} PRIVATE
        LINKER:-T,${root}/share/tsomon/tsomon-sections.ld
        ${wrap}
        "LINKER:--export-dynamic-symbol=__tsan_*,--export-dynamic-symbol=__atomic_*,--export-dynamic-symbol=tsomon_runtime_*")
      target_link_libraries(${target} PRIVATE -Wl,--whole-archive ${library}
                                              -Wl,--no-whole-archive zstd stdc++ m pthread dl)
      if(TARGET tsomon_probe)
        add_dependencies(${target} tsomon_probe)
        foreach(plugin tsomon_calls tsomon_accesses ${twins})
          if(TARGET ${plugin})
            add_dependencies(${target} ${plugin})
          endif()
        endforeach()
        set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${library})
        # A dependency on a target is met before the program is linked, not before it is compiled.
        set(compiler_tools ${root}/lib/tsomon/as)
        if(plugin_option)
          string(REGEX REPLACE "^[^=]*=" "" plugin_file ${plugin_option})
          list(APPEND compiler_tools ${plugin_file})
        endif()
        if(twins)
          list(APPEND compiler_tools ${root}/lib/tsomon/${twins}.so)
        endif()
        get_target_property(sources ${target} SOURCES)
        set_property(SOURCE ${sources} APPEND PROPERTY OBJECT_DEPENDS ${compiler_tools})
      endif()
    endif()
  endforeach()
endfunction()
