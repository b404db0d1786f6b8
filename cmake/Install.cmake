# `cmake --install BUILD --prefix PREFIX`: the program and the embedded monitor here; the probe, its
# header and the compiler wrappers in monitor/probe. find_package(tsomon) gives tsomon_instrument() and
# the target tsomon::monitor.
include(CMakePackageConfigHelpers)

install(TARGETS tsomon RUNTIME DESTINATION bin)
install(TARGETS tsomon_monitor tsomon_decoders tsomon_online tsomon_offline tsomon_tso
        ARCHIVE DESTINATION lib)
install(FILES ${PROJECT_SOURCE_DIR}/monitor/live/monitor.h DESTINATION include/tsomon)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tsomonConfigVersion.cmake
                                 COMPATIBILITY SameMajorVersion)
configure_file(${PROJECT_SOURCE_DIR}/cmake/tsomonConfig.cmake ${PROJECT_BINARY_DIR}/tsomonConfig.cmake
               COPYONLY)
install(FILES ${PROJECT_BINARY_DIR}/tsomonConfig.cmake ${PROJECT_BINARY_DIR}/tsomonConfigVersion.cmake
        DESTINATION lib/cmake/tsomon)
