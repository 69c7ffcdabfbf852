# SPDX-License-Identifier: Apache-2.0
# What runs a .pte on a board, from the sources that serve the host: no exceptions, no RTTI, no threads, no heap but the
# arena of base/system/bare. Of other projects it needs headers only (FlatBuffers, xxHash; fmt where errors have texts;
# Highway for the simulator), and flatc on the machine that builds.
set(TOSAIC_SYSTEM bare)
set(TOSAIC_SIZES fixed)
set(TOSAIC_SYSTEM_LIBRARIES "")
set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
set(FMT "")
set(HIGHWAY "")
set(CMAKE_POSITION_INDEPENDENT_CODE OFF)
add_compile_options(-ffunction-sections -fdata-sections $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions> $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>
                    $<$<COMPILE_LANGUAGE:CXX>:-fno-threadsafe-statics> $<$<COMPILE_LANGUAGE:CXX>:-fno-use-cxa-atexit>
                    $<$<COMPILE_LANGUAGE:CXX>:-Wno-psabi>)  # of GCC 7.1 and before, which cannot compile this
add_compile_definitions(TOSAIC_BARE HWY_COMPILE_ONLY_STATIC)

include(cmake/lone_headers.cmake)
if(TOSAIC_ERROR_TEXTS)
  add_compile_definitions(FMT_HEADER_ONLY FMT_STATIC_THOUSANDS_SEPARATOR=0)
else()
  set(TOSAIC_DIAGNOSTICS _codes)
  add_compile_definitions(TOSAIC_NO_ERROR_TEXTS)
  add_compile_options(-Wno-unused-parameter -Wno-unused-variable -Wno-unused-but-set-variable -Wno-unused-function)  # what texts would say
  include_directories(BEFORE ${CMAKE_SOURCE_DIR}/src/base/system/bare/without_texts)
endif()
lone_headers(flatbuffers/flatbuffers.h xxhash.h hwy/highway.h fmt/format.h)
add_subdirectory(src)
