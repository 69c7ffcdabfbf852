# SPDX-License-Identifier: Apache-2.0
# What tosaic needs, with the least version that works. CONTRIBUTING names the packages of several systems.
find_package(Threads REQUIRED)
set(TOSAIC_VENDOR "" CACHE PATH "a folder with unpacked sources of fmt, simdjson, Highway, zlib and libmd, to be compiled in, and scripts/ of the report")
if(TOSAIC_VENDOR AND CMAKE_CROSSCOMPILING)
  include(${CMAKE_CURRENT_LIST_DIR}/lone_headers.cmake)
  lone_headers(flatbuffers/flatbuffers.h CLI/CLI.hpp xxhash.h volk.h volk.c vulkan/vulkan.h vk_video/vulkan_video_codecs_common.h)
else()
  find_path(XXHASH xxhash.h REQUIRED)  # headers only
  find_path(VOLK volk.h REQUIRED)      # the same
endif()
if(TOSAIC_VENDOR)
  include(${CMAKE_CURRENT_LIST_DIR}/vendor.cmake)
  return()
endif()
find_package(fmt 9 REQUIRED)
# Not `find_package(simdjson 3.0)`: its package file says that only releases of the same minor version will do.
find_package(simdjson REQUIRED CONFIG)
if(simdjson_VERSION VERSION_LESS 3.0)
  message(FATAL_ERROR "simdjson ${simdjson_VERSION} in ${simdjson_DIR} is too old: 3.0 or newer is needed")
endif()
find_package(ZLIB 1.2 REQUIRED)
find_package(hwy 1.0 REQUIRED CONFIG)
find_path(MESSAGE_DIGEST_INCLUDE sha2.h REQUIRED)
find_library(MESSAGE_DIGEST md REQUIRED)  # libmd has no package file for CMake

# For linking: without the definitions that such a package gives to Windows' compilers, which would set the libraries'
# flags apart from those of their precompiled header. Where its headers are counts for all.
foreach(package fmt::fmt simdjson::simdjson hwy::hwy ZLIB::ZLIB)
  include_directories(SYSTEM $<TARGET_PROPERTY:${package},INTERFACE_INCLUDE_DIRECTORIES>)
endforeach()
set(FMT $<TARGET_LINKER_FILE:fmt::fmt>)
set(SIMDJSON $<TARGET_LINKER_FILE:simdjson::simdjson>)
set(HIGHWAY $<TARGET_LINKER_FILE:hwy::hwy>)
