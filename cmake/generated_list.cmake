# SPDX-License-Identifier: Apache-2.0
# generated_list(target prefix type header namespace FOLDERS folders...): one .cpp per operator in the folders, each
# defining `type prefix_<file>()`; generates the table of all of them, so that adding an operator is adding its file and
# nothing else. Where a folder is a pattern of folders with a file of one name in each (targets/*/target.cpp), the entries
# are named after the folders.
function(generated_list target prefix type header namespace)
  cmake_parse_arguments(arg "" "" "FOLDERS" ${ARGN})
  set(files "")
  foreach(folder ${arg_FOLDERS})
    if(folder MATCHES "[.]cpp$")
      file(GLOB found CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
    else()
      file(GLOB found CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp)
    endif()
    list(APPEND files ${found})
  endforeach()
  set(stems "")
  set(entries "")
  foreach(file ${files})
    if(arg_FOLDERS MATCHES "[.]cpp$")
      get_filename_component(stem ${file} DIRECTORY)
      get_filename_component(stem ${stem} NAME)
    else()
      get_filename_component(stem ${file} NAME_WE)
    endif()
    list(APPEND stems ${stem})
  endforeach()
  list(SORT stems)  # one order, whichever folders they lie in
  set(declarations "")
  foreach(stem ${stems})
    string(APPEND declarations "${type} ${prefix}_${stem}();\n")
    string(APPEND entries "    {\"${stem}\", &${prefix}_${stem}},\n")
  endforeach()
  set(out ${CMAKE_BINARY_DIR}/generated/${prefix}_list.cpp)
  file(CONFIGURE OUTPUT ${out} @ONLY CONTENT
"// Generated from the files of src: ${arg_FOLDERS}. Do not edit.
#include \"base/generated_list.h\"
#include \"${header}\"
namespace ${namespace} {
${declarations}
std::span<const tosaic::ListEntry<${type}>> ${prefix}_list() {
  static const tosaic::ListEntry<${type}> entries[] = {
${entries}    {\"\", nullptr}};
  return {entries, std::size(entries) - 1};
}
}  // namespace ${namespace}
")
  target_sources(${target} PRIVATE ${files} ${out})
  if(namespace STREQUAL "tosaic" AND NOT arg_FOLDERS MATCHES "[.]cpp$")
    join_files(${target} ${namespace}::${type} ${prefix} ${files})
  endif()
endfunction()
