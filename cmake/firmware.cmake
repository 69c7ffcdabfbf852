# SPDX-License-Identifier: Apache-2.0
# With TOSAIC_BARE: the libraries for boards, out of those of src/CMakeLists.txt that they are made of.
#   libtosaic_firmware.a       reader, runtime, the Ethos-U delegate
#   libtosaic_npu_simulator.a  stands in for the NPU
#   libtosaic_npu_registers.a  drives a real one
#   libtosaic_runner.a         loads a program, runs it
#   board/NAME/                of each board: libtosaic_board.a and its linker scripts
# `tosaic device build` links them around a program.
enable_language(C)
set(device ${CMAKE_SOURCE_DIR}/device)
include_directories(${device})
add_compile_options($<$<COMPILE_LANGUAGE:C>:-std=gnu11>)
file(WRITE ${CMAKE_BINARY_DIR}/device/flags "${CMAKE_CXX_FLAGS}\n")  # for who links with them
set(parts "")
foreach(part foundation dims types contract pte vela_stream runtime delegate_ethos_u)
  list(APPEND parts $<TARGET_OBJECTS:tosaic_${part}>)
endforeach()
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/device)
add_library(tosaic_firmware STATIC ${parts})
set_target_properties(tosaic_firmware PROPERTIES LINKER_LANGUAGE CXX)
add_library(tosaic_npu_simulator STATIC $<TARGET_OBJECTS:tosaic_ethosu> $<TARGET_OBJECTS:tosaic_simd>)
set_target_properties(tosaic_npu_simulator PROPERTIES LINKER_LANGUAGE CXX)
add_library(tosaic_npu_registers STATIC ${device}/npu/registers.cpp ${CMAKE_SOURCE_DIR}/src/ethosu_device/status_text.cpp ${CMAKE_SOURCE_DIR}/src/ethosu/container.cpp ${CMAKE_SOURCE_DIR}/src/ethosu/isa.cpp)
add_library(tosaic_runner STATIC ${device}/runner/main.cpp)
target_include_directories(tosaic_runner SYSTEM PRIVATE ${CMAKE_BINARY_DIR}/generated)
file(GLOB boards CONFIGURE_DEPENDS ${device}/boards/*/board.c)
foreach(board ${boards})
  get_filename_component(folder ${board} DIRECTORY)
  get_filename_component(name ${folder} NAME)
  add_library(tosaic_board_${name} STATIC ${board} ${device}/cortex-m/start.c ${device}/cortex-m/semihosting.c)
  set_target_properties(tosaic_board_${name} PROPERTIES OUTPUT_NAME tosaic_board ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/device/board/${name})
  file(COPY ${folder}/memory.ld ${device}/cortex-m/sections.ld DESTINATION ${CMAKE_BINARY_DIR}/device/board/${name})
endforeach()
