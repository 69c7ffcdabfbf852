# SPDX-License-Identifier: Apache-2.0
# flatbuffers_header(target schema.fbs): generates schema_generated.h and puts it on the target's include path.
find_program(FLATC flatc REQUIRED)
add_custom_target(flatbuffers_headers)  # all of them, for tools that read the sources without building them
function(flatbuffers_header target schema)
  get_filename_component(stem ${schema} NAME_WE)
  set(out ${CMAKE_BINARY_DIR}/generated/${stem}_generated.h)
  add_custom_command(OUTPUT ${out}
    COMMAND ${FLATC} --cpp --scoped-enums --no-prefix --reflect-names -o ${CMAKE_BINARY_DIR}/generated ${CMAKE_CURRENT_SOURCE_DIR}/${schema}
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${schema} VERBATIM)
  add_custom_target(flatbuffers_${stem} DEPENDS ${out})
  add_dependencies(flatbuffers_headers flatbuffers_${stem})
  target_sources(${target} PRIVATE ${out})
  target_include_directories(${target} SYSTEM PUBLIC ${CMAKE_BINARY_DIR}/generated)
endfunction()
