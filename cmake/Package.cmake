# `cpack -G DEB` in a build folder makes a Debian package of what is installed.
set(CPACK_PACKAGE_NAME tsomon)
set(CPACK_PACKAGE_VENDOR tsomon)
set(CPACK_PACKAGE_CONTACT "tsomon maintainers <maintainers@tsomon.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "monitor of atomicity under x86-TSO")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
    "tsomon finds atomicity violations of multithreaded programs under the memory model that x86
processors have, while they run or in recordings of them, predicts races and deadlocks of other
schedules, and explores every execution of small programs.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE amd64)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The wrappers call a compiler, and link what is instrumented against the C library alone.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "g++ | clang, binutils")
# Programs with a monitor of their own (tsomon/monitor.h).
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libfmt-dev, libdw-dev, libzstd-dev, libzydis-dev")
set(CPACK_GENERATOR DEB)
set(CPACK_VERBATIM_VARIABLES ON)
include(CPack)
