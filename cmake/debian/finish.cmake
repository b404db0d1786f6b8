# Run by cpack on the packages that it has made (CPACK_POST_BUILD_SCRIPTS).
foreach(package ${CPACK_PACKAGE_FILES})
  execute_process(COMMAND ${CMAKE_CURRENT_LIST_DIR}/finish ${package} ${CPACK_TSOMON_CHANGELOG} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
