# SPDX-License-Identifier: Apache-2.0
# The runtime for Vulkan programs alone, as for a phone: one shared library with the C interface of tosaic/delegate.h. Of
# other projects it needs headers only (fmt, FlatBuffers, xxHash, volk, Vulkan; CMAKE_PREFIX_PATH says where they are), and
# flatc on the machine that builds.
set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
find_package(Threads REQUIRED)
set(FMT "")
add_compile_definitions(FMT_HEADER_ONLY)
add_compile_options(-ffunction-sections -fdata-sections)
foreach(header fmt/format.h flatbuffers/flatbuffers.h xxhash.h volk.h vulkan/vulkan.h)
  string(MAKE_C_IDENTIFIER HEADERS_${header} folder)
  find_path(${folder} ${header} REQUIRED)
  if(NOT ${folder} STREQUAL /usr/include)
    include_directories(SYSTEM ${${folder}})
  endif()
endforeach()
include(GNUInstallDirs)
add_subdirectory(src)
install(TARGETS tosaic_vulkan_runtime LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/tosaic/delegate.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tosaic)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
add_subdirectory(examples/vulkan_runtime ${CMAKE_BINARY_DIR}/example)
