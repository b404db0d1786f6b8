# `cpack -G DEB` in a build folder makes Debian packages of what is installed: tsomon, tsomon-fleet, libtsomon-monitor0
# and libtsomon-monitor-dev (the components of Install.cmake). tools/package builds them from nothing, checks them, and says
# whether a second build gives the same.
set(CPACK_PACKAGE_NAME tsomon)
set(CPACK_PACKAGE_VENDOR tsomon)
set(CPACK_PACKAGE_CONTACT "tsomon maintainers <maintainers@tsomon.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                                                WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE amd64)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(version ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL tool fleet library development)
set(CPACK_DEBIAN_TOOL_PACKAGE_NAME tsomon)
set(CPACK_DEBIAN_TOOL_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_TOOL_DESCRIPTION "monitor of atomicity under x86-TSO
tsomon finds atomicity violations of multithreaded programs under the memory
model that x86 processors have, while they run or in recordings of them,
predicts races and deadlocks of other schedules, and explores every execution
of small programs.")
# The wrappers call a compiler, and link what is instrumented against the C library alone.
# systemd makes the service's user, where it is there.
set(CPACK_DEBIAN_TOOL_PACKAGE_RECOMMENDS "g++ | clang, binutils, libzstd-dev, systemd")
set(CPACK_DEBIAN_TOOL_PACKAGE_SUGGESTS "libtsomon-monitor-dev (= ${version}), tsomon-fleet (= ${version})")

set(CPACK_DEBIAN_FLEET_PACKAGE_NAME tsomon-fleet)
set(CPACK_DEBIAN_FLEET_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_FLEET_DESCRIPTION "monitor of atomicity under x86-TSO (many machines)
Captures and traces of many hosts are judged by any number of workers, with
one list of findings: the commands submit, worker and fleet of tsomon, through
PostgreSQL or NATS JetStream.")
set(CPACK_DEBIAN_FLEET_PACKAGE_DEPENDS "tsomon (= ${version})")

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libtsomon-monitor0)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "monitor of atomicity inside a program
A program that knows what its threads do feeds this library, and is told when
units of its work were not atomic under the memory model that x86 processors
have.
.
This package has the shared library.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libtsomon-monitor-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "monitor of atomicity inside a program (development)
A program that knows what its threads do feeds this library, and is told when
units of its work were not atomic under the memory model that x86 processors
have.
.
This package has the headers for C and C++, the static library, and what
CMake and pkg-config read.")
# The libraries behind the static one; find_package(tsomon) reads what the tool's package has.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "libtsomon-monitor0 (= ${version}), tsomon (= ${version}), libfmt-dev, libdw-dev, libzstd-dev, libzydis-dev, libsqlite3-dev, libpfm4-dev, libipt-dev")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)

configure_file(${PROJECT_SOURCE_DIR}/cmake/debian/changelog.in ${PROJECT_BINARY_DIR}/debian_changelog @ONLY)
set(CPACK_TSOMON_CHANGELOG ${PROJECT_BINARY_DIR}/debian_changelog)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian/prepare.cmake)
set(CPACK_POST_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian/finish.cmake)
set(CPACK_GENERATOR DEB)
set(CPACK_VERBATIM_VARIABLES ON)
include(CPack)
