# SPDX-License-Identifier: Apache-2.0
# lone_headers(HEADER...): what other projects have as headers only, for a compiler of another system. By themselves: the
# folder that they lie in has this system's C library as well. Of a header in a folder it is the whole folder.
function(lone_headers)
  set(headers ${CMAKE_BINARY_DIR}/headers)
  file(MAKE_DIRECTORY ${headers})
  foreach(header ${ARGN})
    string(MAKE_C_IDENTIFIER HEADERS_${header} folder)
    find_path(${folder} ${header} PATHS /usr/include /usr/local/include NO_CMAKE_FIND_ROOT_PATH REQUIRED)
    string(REGEX REPLACE "/.*" "" first ${header})
    file(CREATE_LINK ${${folder}}/${first} ${headers}/${first} SYMBOLIC)
  endforeach()
  include_directories(SYSTEM ${headers})
endfunction()
