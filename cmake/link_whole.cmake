# SPDX-License-Identifier: Apache-2.0
# link_whole(target libraries...): with all of these static libraries in it, not only with what is asked for.
function(link_whole target)
  if(APPLE)
    target_link_libraries(${target} PRIVATE ${ARGN})
    foreach(library ${ARGN})
      target_link_options(${target} PRIVATE -Wl,-force_load,$<TARGET_FILE:${library}>)
    endforeach()
  else()
    target_link_libraries(${target} PRIVATE -Wl,--whole-archive ${ARGN} -Wl,--no-whole-archive)
  endif()
endfunction()
