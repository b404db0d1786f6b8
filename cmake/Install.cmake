# `cmake --install BUILD --prefix PREFIX`: the program and the embedded monitor here; the probe, its
# header and the compiler wrappers in monitor/probe. find_package(tsomon) gives tsomon_instrument() and
# the targets tsomon::monitor, tsomon::monitor_shared and tsomon::watcher.
#
# Components, which are Debian packages (Package.cmake): `tool`, all that is not of the others; `fleet`, what needs the libraries
# of servers; `library`, the shared library of the embedded monitor; `development`, what programs with such a monitor are built with.
include(CMakePackageConfigHelpers)

install(TARGETS tsomon RUNTIME DESTINATION bin)
install(TARGETS tsomon-fleet RUNTIME DESTINATION lib/tsomon COMPONENT fleet)
# Man pages and completions, of the same table as the help.
if(NOT TSOMON_SANITIZE)
  set(documents ${PROJECT_BINARY_DIR}/documents)
  add_custom_command(
    OUTPUT ${documents}/made
    COMMAND ${PROJECT_SOURCE_DIR}/tools/make-documents $<TARGET_FILE:tsomon> ${documents}
    COMMAND ${CMAKE_COMMAND} -E touch ${documents}/made
    DEPENDS tsomon ${PROJECT_SOURCE_DIR}/tools/make-documents ${PROJECT_SOURCE_DIR}/tools/tsomon-c++.1
    COMMENT "man pages, completions")
  add_custom_target(documents ALL DEPENDS ${documents}/made)
  install(DIRECTORY ${documents}/share DESTINATION .)
  install(TARGETS tsomon_monitor_shared LIBRARY DESTINATION lib COMPONENT library NAMELINK_COMPONENT development)
endif()
# The service: not begun by itself. Its configuration is where the unit looks for it when the prefix is / or /usr (Debian's package).
set(systemd ${PROJECT_SOURCE_DIR}/monitor/service/systemd)
install(FILES ${systemd}/tsomon-monitor.service DESTINATION lib/systemd/system)
install(FILES ${systemd}/sysusers.conf DESTINATION lib/sysusers.d RENAME tsomon.conf)
install(FILES ${systemd}/monitor.toml DESTINATION etc/tsomon)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/tsomon RENAME copyright)
install(FILES ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION share/doc/tsomon)
install(TARGETS tsomon_monitor tsomon_decoders tsomon_online tsomon_offline tsomon_tso
        ARCHIVE DESTINATION lib COMPONENT development)
install(FILES ${PROJECT_SOURCE_DIR}/monitor/live/monitor.h ${PROJECT_SOURCE_DIR}/monitor/live/monitor_c.h
              ${PROJECT_SOURCE_DIR}/monitor/service/watcher.h
        DESTINATION include/tsomon COMPONENT development)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tsomonConfigVersion.cmake
                                 COMPATIBILITY SameMajorVersion)
configure_file(${PROJECT_SOURCE_DIR}/cmake/tsomonConfig.cmake ${PROJECT_BINARY_DIR}/tsomonConfig.cmake
               COPYONLY)
install(FILES ${PROJECT_BINARY_DIR}/tsomonConfig.cmake ${PROJECT_BINARY_DIR}/tsomonConfigVersion.cmake
        DESTINATION lib/cmake/tsomon)
foreach(name tsomon-monitor tsomon-monitor-shared tsomon-watcher)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION lib/pkgconfig COMPONENT development)
endforeach()

# All that is installed, and no more: what cpack packs.
add_custom_target(installed)
foreach(target tsomon tsomon-fleet documents tsomon_monitor tsomon_monitor_shared tsomon_probe tsomon_as tsomon_accesses tsomon_calls tsomon_clang_twins tsomon_files tsomon_twins)
  if(TARGET ${target})
    add_dependencies(installed ${target})
  endif()
endforeach()
