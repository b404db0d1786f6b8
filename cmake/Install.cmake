# `cmake --install BUILD --prefix PREFIX`: the program here; the probe, its header and the compiler
# wrappers in monitor/probe. find_package(tsomon) gives tsomon_instrument().
include(CMakePackageConfigHelpers)

install(TARGETS tsomon RUNTIME DESTINATION bin)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tsomonConfigVersion.cmake
                                 COMPATIBILITY SameMajorVersion)
file(WRITE ${PROJECT_BINARY_DIR}/tsomonConfig.cmake
     "include(\${CMAKE_CURRENT_LIST_DIR}/../../../share/tsomon/cmake/TsomonInstrument.cmake)\n")
install(FILES ${PROJECT_BINARY_DIR}/tsomonConfig.cmake ${PROJECT_BINARY_DIR}/tsomonConfigVersion.cmake
        DESTINATION lib/cmake/tsomon)
