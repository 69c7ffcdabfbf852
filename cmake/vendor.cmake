# SPDX-License-Identifier: Apache-2.0
# The libraries that tosaic links, compiled with it: what is built then needs the C++ library alone.
# `.ci/vendor-sources DIR` unpacks Debian's sources; folders of other releases do as well, by the beginning of their names.
enable_language(C)

# Folder of a library below TOSAIC_VENDOR, into the variable.
function(vendor_folder variable name)
  file(GLOB found LIST_DIRECTORIES true ${TOSAIC_VENDOR}/${name}*)
  list(FILTER found INCLUDE REGEX "/${name}[^/]*$")
  list(LENGTH found count)
  if(NOT count EQUAL 1)
    message(FATAL_ERROR "TOSAIC_VENDOR=${TOSAIC_VENDOR}: one folder ${name}* is needed, there are ${count}. "
                        "`.ci/vendor-sources ${TOSAIC_VENDOR}` downloads Debian's")
  endif()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# A static library of the files, whose headers all of tosaic sees.
function(vendor_library name folder)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "FILES;INCLUDE")
  list(TRANSFORM arg_FILES PREPEND ${folder}/)
  list(TRANSFORM arg_INCLUDE PREPEND ${folder}/)
  add_library(vendored_${name} STATIC ${arg_FILES})
  target_include_directories(vendored_${name} SYSTEM PRIVATE ${arg_INCLUDE})
  target_compile_options(vendored_${name} PRIVATE -O2 -w)
  set_target_properties(vendored_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden)
endfunction()

vendor_folder(folder fmt)
vendor_library(fmt ${folder} FILES src/format.cc src/os.cc INCLUDE include)
include_directories(SYSTEM ${folder}/include)
vendor_folder(folder simdjson)
vendor_library(simdjson ${folder} FILES src/simdjson.cpp INCLUDE include src)
include_directories(SYSTEM ${folder}/include)
vendor_folder(folder highway)
vendor_library(highway ${folder} FILES hwy/aligned_allocator.cc hwy/per_target.cc hwy/print.cc hwy/targets.cc INCLUDE .)
include_directories(SYSTEM ${folder})
vendor_folder(folder zlib)
vendor_library(zlib ${folder} FILES adler32.c compress.c crc32.c deflate.c inffast.c inflate.c inftrees.c trees.c uncompr.c zutil.c INCLUDE .)
include_directories(SYSTEM ${folder})
if(APPLE)
  target_compile_definitions(vendored_zlib PRIVATE fdopen=fdopen)  # else it takes this for a Mac of before 2001, and defines it
endif()
add_library(ZLIB::ZLIB ALIAS vendored_zlib)
vendor_folder(folder libmd)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/vendor/config.h CONTENT "#define HAVE_UNISTD_H 1
")  # of libmd: all that these files ask of it
vendor_library(md ${folder} FILES src/sha2.c src/sha256hl.c INCLUDE include src)
target_include_directories(vendored_md PRIVATE ${CMAKE_BINARY_DIR}/vendor)
if(APPLE OR WIN32)
  target_compile_definitions(vendored_md PRIVATE LIBMD_LOCAL_LINK_H)  # without the header that makes aliases of names, which only ELF has
endif()
include_directories(SYSTEM ${folder}/include)
set(FMT vendored_fmt)
set(SIMDJSON vendored_simdjson)
set(HIGHWAY vendored_highway)
set(MESSAGE_DIGEST vendored_md)
