# Run by cpack on the trees that packages are made of (CPACK_PRE_BUILD_SCRIPTS).
foreach(component ${CPACK_COMPONENTS_ALL})
  string(TOUPPER ${component} upper)
  execute_process(
    COMMAND ${CMAKE_CURRENT_LIST_DIR}/prepare ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}
            ${CPACK_DEBIAN_${upper}_PACKAGE_NAME} ${CPACK_TSOMON_CHANGELOG}
    COMMAND_ERROR_IS_FATAL ANY)
endforeach()
