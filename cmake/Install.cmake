# `cmake --install BUILD --prefix PREFIX`: the program and the embedded monitor here; the probe, its
# header and the compiler wrappers in monitor/probe. find_package(tsomon) gives tsomon_instrument() and
# the target tsomon::monitor.
include(CMakePackageConfigHelpers)

install(TARGETS tsomon RUNTIME DESTINATION bin)
# Man pages and completions, of the same table as the help.
if(NOT TSOMON_SANITIZE)
  set(documents ${PROJECT_BINARY_DIR}/documents)
  add_custom_command(
    OUTPUT ${documents}/made
    COMMAND ${PROJECT_SOURCE_DIR}/tools/make-documents $<TARGET_FILE:tsomon> ${documents}
    COMMAND ${CMAKE_COMMAND} -E touch ${documents}/made
    DEPENDS tsomon ${PROJECT_SOURCE_DIR}/tools/make-documents
    COMMENT "man pages, completions")
  add_custom_target(documents ALL DEPENDS ${documents}/made)
  install(DIRECTORY ${documents}/share DESTINATION .)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/tsomon RENAME copyright)
install(FILES ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION share/doc/tsomon)
install(TARGETS tsomon_monitor tsomon_decoders tsomon_online tsomon_offline tsomon_tso
        ARCHIVE DESTINATION lib)
install(FILES ${PROJECT_SOURCE_DIR}/monitor/live/monitor.h DESTINATION include/tsomon)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tsomonConfigVersion.cmake
                                 COMPATIBILITY SameMajorVersion)
configure_file(${PROJECT_SOURCE_DIR}/cmake/tsomonConfig.cmake ${PROJECT_BINARY_DIR}/tsomonConfig.cmake
               COPYONLY)
install(FILES ${PROJECT_BINARY_DIR}/tsomonConfig.cmake ${PROJECT_BINARY_DIR}/tsomonConfigVersion.cmake
        DESTINATION lib/cmake/tsomon)
configure_file(${PROJECT_SOURCE_DIR}/cmake/tsomon-monitor.pc.in ${PROJECT_BINARY_DIR}/tsomon-monitor.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tsomon-monitor.pc DESTINATION lib/pkgconfig)
