# SPDX-License-Identifier: Apache-2.0
# join_files(target type prefix files...): compiles TOSAIC_JOINED of the files of a generated list at a time, where that is
# not 0: four times as fast for small ones, where each is compiled once. For namespace tosaic alone.
#
# Each has names of its own in a nameless namespace, so what is called tosaic is another namespace inside tosaic in each of
# them. Not in the headers: they come first.
set(joined 0)
if(DEFINED ENV{CI})
  set(joined 16)  # there everything is compiled, and once
endif()
set(TOSAIC_JOINED ${joined} CACHE STRING "so many files of PyTorch's operators are compiled as one; 0: each alone")
function(join_files target type prefix)
  set(waiting ${ARGN})
  if(NOT TOSAIC_JOINED)
    return()
  endif()
  set_source_files_properties(${waiting} PROPERTIES HEADER_FILE_ONLY ON)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${waiting})  # their #include lines are read here
  set(number 0)
  while(waiting)
    list(SUBLIST waiting 0 ${TOSAIC_JOINED} files)
    list(REMOVE_ITEM waiting ${files})
    set(headers "")
    set(bodies "")
    set(declarations "")
    foreach(file ${files})
      cmake_path(GET file STEM stem)
      cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE place)  # one for all checkouts
      file(STRINGS ${file} lines REGEX "^#include")
      list(APPEND headers ${lines})
      string(APPEND bodies
"namespace tosaic::of_${stem} {
using namespace tosaic;
}
#define tosaic tosaic::of_${stem}
#include \"${place}\"
#undef tosaic
${type} tosaic::${prefix}_${stem}() { return of_${stem}::${prefix}_${stem}(); }
")
      string(APPEND declarations "${type} ${prefix}_${stem}();\n")
    endforeach()
    list(REMOVE_DUPLICATES headers)
    list(JOIN headers "\n" headers)
    set(out ${CMAKE_BINARY_DIR}/generated/${prefix}_joined_${number}.cpp)
    file(CONFIGURE OUTPUT ${out} @ONLY CONTENT
"// Generated. Do not edit.
${headers}
namespace tosaic {
${declarations}}
${bodies}")
    target_sources(${target} PRIVATE ${out})
    math(EXPR number "${number} + 1")
  endwhile()
endfunction()
