# SPDX-License-Identifier: Apache-2.0
# libtosaic, shared and static, and how other projects find it: find_package(tosaic), or pkg-config.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Which programs a library serves: before 1.0 those of its minor version, as find_package's answer below.
set(TOSAIC_SOVERSION ${PROJECT_VERSION_MAJOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(TOSAIC_SOVERSION 0.${PROJECT_VERSION_MINOR})
endif()
add_library(tosaic_shared SHARED ${CMAKE_SOURCE_DIR}/cmake/empty.cpp)
# The NPU as a device has users outside only.
link_whole(tosaic_shared tosaic_api tosaic_ethosu_device)
set_target_properties(tosaic_shared PROPERTIES OUTPUT_NAME tosaic VERSION ${PROJECT_VERSION} SOVERSION ${TOSAIC_SOVERSION})

# One archive of all folders' archives, for programs that want no shared library.
get_property(parts GLOBAL PROPERTY TOSAIC_LIBRARIES)
set(script "CREATE ${CMAKE_BINARY_DIR}/lib/libtosaic.a\n")
foreach(part ${parts})
  string(APPEND script "ADDLIB $<TARGET_FILE:${part}>\n")
endforeach()
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/libtosaic.mri CONTENT "${script}SAVE\nEND\n")
add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/lib/libtosaic.a
  COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/lib
  COMMAND ${CMAKE_COMMAND} -E rm -f ${CMAKE_BINARY_DIR}/lib/libtosaic.a
  COMMAND ${CMAKE_AR} -M < ${CMAKE_BINARY_DIR}/libtosaic.mri
  DEPENDS ${parts} ${CMAKE_BINARY_DIR}/libtosaic.mri VERBATIM)
add_custom_target(tosaic_static ALL DEPENDS ${CMAKE_BINARY_DIR}/lib/libtosaic.a)

configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/tosaicConfig.cmake.in ${CMAKE_BINARY_DIR}/tosaicConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tosaic PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/tosaicConfigVersion.cmake COMPATIBILITY SameMinorVersion)
# Relative, so that the tree can be installed anywhere and moved.
file(RELATIVE_PATH INCLUDE_FROM_PC /${CMAKE_INSTALL_LIBDIR}/pkgconfig /${CMAKE_INSTALL_INCLUDEDIR})
configure_file(${CMAKE_SOURCE_DIR}/cmake/tosaic.pc.in ${CMAKE_BINARY_DIR}/tosaic.pc @ONLY)

install(TARGETS tosaic RUNTIME COMPONENT tosaic)
install(TARGETS tosaic_shared LIBRARY COMPONENT tosaic RUNTIME COMPONENT tosaic ARCHIVE COMPONENT tosaic)
install(FILES ${CMAKE_BINARY_DIR}/lib/libtosaic.a DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT tosaic)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/tosaic DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT tosaic)
install(FILES ${CMAKE_BINARY_DIR}/tosaicConfig.cmake ${CMAKE_BINARY_DIR}/tosaicConfigVersion.cmake
  ${CMAKE_SOURCE_DIR}/cmake/tosaic_model.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tosaic COMPONENT tosaic)
install(FILES ${CMAKE_BINARY_DIR}/tosaic.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT tosaic)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tosaic)
