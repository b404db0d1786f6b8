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

# With TSOMON_UNITY, TARGET is compiled sixteen sources at once, which takes less than half the time. So names in unnamed
# namespaces are unique in a library.
function(tsomon_unite target)
  if(TSOMON_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
    # GCC takes a header's class with a member of such a type for a mistake, unless a main file declares both.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>
    # A program that links with an installed library still takes what it needs of it alone (tsomonConfig.cmake).
                                             -ffunction-sections -fdata-sections)
  endif()
endfunction()

# A room is a folder of sources with one purpose:
#
#   tsomon_room(FOLDER/NAME USES rooms... LINK libraries... PRIVATE_LINK libraries... SOURCES more... LIBRARY name)
#
# USES names the rooms that it may include from, besides itself; tests/layers reads these lines and the includes. The sources of
# the rooms of a folder make one library, which tsomon_folder() declares behind them; LIBRARY names another one.
function(tsomon_room room)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LIBRARY" "USES;LINK;PRIVATE_LINK;SOURCES")
  string(REPLACE "/" "_" name ${room})
  string(REGEX REPLACE "/.*" "" folder ${room})
  if(arg_LIBRARY)
    set(folder ${arg_LIBRARY})
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${room}/*.cpp)
  add_library(tsomon_${name} OBJECT ${sources} ${arg_SOURCES})
  target_include_directories(tsomon_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(tsomon_${name} PUBLIC ${arg_LINK} PRIVATE ${arg_PRIVATE_LINK} tsomon_options)
  # Nobody replaces our functions when programs are loaded: calls of them may be compiled away.
  target_compile_options(tsomon_${name} PRIVATE -fno-semantic-interposition)
  foreach(used ${arg_USES})
    string(REPLACE "/" "_" used ${used})
    if(TARGET tsomon_${used})
      target_link_libraries(tsomon_${name} PUBLIC tsomon_${used})
    endif()
  endforeach()
  tsomon_unite(tsomon_${name})
  set_property(GLOBAL APPEND PROPERTY TSOMON_ROOMS_${folder} tsomon_${name})
  set_property(GLOBAL APPEND PROPERTY TSOMON_LINKS_${folder} ${arg_LINK} ${arg_PRIVATE_LINK})
endfunction()

# A room whose sources are compiled elsewhere, in a way of their own.
function(tsomon_separate_room room)
endfunction()

# The library tsomon_FOLDER of all its rooms, linked with LIBRARIES.
function(tsomon_folder folder)
  get_property(rooms GLOBAL PROPERTY TSOMON_ROOMS_${folder})
  get_property(links GLOBAL PROPERTY TSOMON_LINKS_${folder})
  list(TRANSFORM rooms REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
  add_library(tsomon_${folder} STATIC ${objects})
  target_include_directories(tsomon_${folder} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(tsomon_${folder} PUBLIC ${links} ${ARGN})
endfunction()
