# What every target of the project is compiled with, and the one way to declare a library.

add_library(tsomon_options INTERFACE)
target_compile_options(tsomon_options INTERFACE -Wall -Wextra)
if(TSOMON_WERROR)
  target_compile_options(tsomon_options INTERFACE -Werror)
endif()
if(TSOMON_SANITIZE)
  target_compile_options(tsomon_options INTERFACE -fsanitize=${TSOMON_SANITIZE}
                                                 -fno-omit-frame-pointer)
  target_link_options(tsomon_options INTERFACE -fsanitize=${TSOMON_SANITIZE})
  if(TSOMON_SANITIZE MATCHES "undefined")
    target_compile_options(tsomon_options INTERFACE -fno-sanitize-recover=undefined)
  endif()
endif()
if(TSOMON_BUILD_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "TSOMON_BUILD_FUZZERS needs clang (apt-get install clang); "
                        "use: cmake --preset fuzz")
  endif()
  target_compile_options(tsomon_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# With TSOMON_UNITY, TARGET is compiled eight sources at once, which takes less than half the time. So names in unnamed
# namespaces are unique in a library.
function(tsomon_unite target)
  if(TSOMON_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    # GCC takes a header's class with a member of such a type for a mistake, unless a main file declares both.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>
    # A program that links with an installed library still takes what it needs of it alone (tsomonConfig.cmake).
                                             -ffunction-sections -fdata-sections)
  endif()
endfunction()

# tsomon_add_library(NAME SOURCES... ) declares static library tsomon_NAME from the sources of the
# current folder. What it may include follows from what it is linked with in its CMakeLists.txt;
# tests/layers checks that the includes agree.
function(tsomon_add_library name)
  add_library(tsomon_${name} STATIC ${ARGN})
  target_include_directories(tsomon_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(tsomon_${name} PRIVATE tsomon_options)
  tsomon_unite(tsomon_${name})
endfunction()
