# SPDX-License-Identifier: Apache-2.0
# embedded_text(target namespace FUNCTION FILE ...): for each pair, `std::string_view FUNCTION()` in the namespace gives the
# text of the file.
function(embedded_text target namespace)
  set(functions "")
  set(pairs ${ARGN})
  while(pairs)
    list(POP_FRONT pairs name file)
    embedded_literal(literal ${file})
    string(APPEND functions "std::string_view ${name}() {\n  return ${literal};\n}\n")
  endwhile()
  embedded_source(${target} ${namespace} "${functions}")
endfunction()

# embedded_files(target namespace FUNCTION PATTERN): `std::span<const std::pair<std::string_view, std::string_view>> FUNCTION()`
# gives the names and the texts of the files.
function(embedded_files target namespace name pattern)
  file(GLOB files CONFIGURE_DEPENDS ${pattern})
  set(pairs "")
  foreach(file ${files})
    cmake_path(GET file FILENAME file_name)
    embedded_literal(literal ${file})
    string(APPEND pairs "    {\"${file_name}\", ${literal}},\n")
  endforeach()
  set(type "std::pair<std::string_view, std::string_view>")
  embedded_source(${target} ${namespace}
    "std::span<const ${type}> ${name}() {\n  static constexpr ${type} files[] = {\n${pairs}  };\n  return files;\n}\n")
endfunction()

# The text of a file as C++ writes it.
function(embedded_literal out file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  set(${out} "R\"embedded(${text})embedded\"" PARENT_SCOPE)
endfunction()

function(embedded_source target namespace functions)
  set(out ${CMAKE_BINARY_DIR}/generated/${target}_texts.cpp)
  # As it is: configure would read what looks like a variable.
  set(content "// Generated from files of src. Do not edit.\n#include <span>\n#include <string_view>\n#include <utility>\nnamespace ${namespace} {\n${functions}}  // namespace ${namespace}\n")
  if(EXISTS ${out})
    file(READ ${out} old)
  endif()
  if(NOT "${old}" STREQUAL "${content}")
    file(WRITE ${out} "${content}")
  endif()
  target_sources(${target} PRIVATE ${out})
endfunction()
