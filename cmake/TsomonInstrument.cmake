# tsomon_instrument(target...): compiles the targets with tsomon's instrumentation and links
# executables with its runtime, as the wrappers tsomon-c++ and tsomon-cc do.
#
# From an installation: find_package(tsomon), with its prefix in CMAKE_PREFIX_PATH.
# In the build of tsomon itself the target tsomon_probe is used.
# A library that is only an ingredient of an executable is instrumented, not linked.
# Shared libraries need no runtime: the hooks are those of the executable.

set(_tsomon_module_dir ${CMAKE_CURRENT_LIST_DIR})

function(tsomon_instrument)
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
  foreach(target IN LISTS ARGN)
    target_compile_options(
      ${target}
      PRIVATE $<$<CXX_COMPILER_ID:Clang>:-Xclang$<SEMICOLON>-fsanitize=thread>
              $<$<CXX_COMPILER_ID:GNU>:-specs=${root}/share/tsomon/tsomon-gcc.specs>
              $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan> -g -fpatchable-function-entry=5)
    target_include_directories(${target} SYSTEM PRIVATE ${root}/include/tsomon)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      target_link_options(
        ${target} PRIVATE
        $<$<CXX_COMPILER_ID:GNU>:LINKER:-T,${root}/share/tsomon/tsomon-sections.ld>
        "LINKER:--wrap=memcpy,--wrap=memmove,--wrap=memset"
        "LINKER:--wrap=__memcpy_chk,--wrap=__memmove_chk,--wrap=__memset_chk"
        "LINKER:--export-dynamic-symbol=__tsan_*,--export-dynamic-symbol=tsomon_runtime_*")
      target_link_libraries(${target} PRIVATE -Wl,--whole-archive ${library}
                                              -Wl,--no-whole-archive zstd stdc++ pthread dl)
      if(TARGET tsomon_probe)
        add_dependencies(${target} tsomon_probe)
        set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${library})
      endif()
    endif()
  endforeach()
endfunction()
