# SPDX-License-Identifier: Apache-2.0
# embedded_text(target namespace FUNCTION FILE ...): for each pair, `std::string_view FUNCTION()` in the namespace gives the
# text of the file.
function(embedded_text target namespace)
  set(functions "")
  set(pairs ${ARGN})
  while(pairs)
    list(POP_FRONT pairs name file)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} text)
    string(APPEND functions "std::string_view ${name}() {\n  return R\"embedded(${text})embedded\";\n}\n")
  endwhile()
  set(out ${CMAKE_BINARY_DIR}/generated/${target}_texts.cpp)
  # As it is: configure would read what looks like a variable.
  set(content "// Generated from files of src. Do not edit.\n#include <string_view>\nnamespace ${namespace} {\n${functions}}  // namespace ${namespace}\n")
  if(EXISTS ${out})
    file(READ ${out} old)
  endif()
  if(NOT "${old}" STREQUAL "${content}")
    file(WRITE ${out} "${content}")
  endif()
  target_sources(${target} PRIVATE ${out})
endfunction()
