# SPDX-License-Identifier: Apache-2.0
# CMAKE_TOOLCHAIN_FILE for Debian's g++-aarch64-linux-gnu: keeps everything compiling for aarch64, and the Vulkan runtime
# for the processors of phones where no NDK is at hand. Packages of the other architecture lie below TOSAIC_ARM64_ROOT
# (.ci/arm64-root), where qemu finds what programs load, too.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
if(TOSAIC_ARM64_ROOT)
  list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TOSAIC_ARM64_ROOT)
  list(PREPEND CMAKE_FIND_ROOT_PATH ${TOSAIC_ARM64_ROOT})
  set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
  set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
  # What shared libraries need in their turn.
  set(folder lib/aarch64-linux-gnu)
  add_link_options(-Wl,-rpath-link,${TOSAIC_ARM64_ROOT}/usr/${folder}:${TOSAIC_ARM64_ROOT}/${folder})
  find_program(QEMU_AARCH64 NAMES qemu-aarch64-static qemu-aarch64)
  if(QEMU_AARCH64)
    set(CMAKE_CROSSCOMPILING_EMULATOR ${QEMU_AARCH64};-L;${TOSAIC_ARM64_ROOT})
  endif()
  # The Python package: nanobind asks this system's interpreter for all but these.
  file(GLOB Python_INCLUDE_DIR ${TOSAIC_ARM64_ROOT}/usr/include/python3.*)
  string(REGEX REPLACE ".*python3[.]" "cpython-3" SKBUILD_SOABI "${Python_INCLUDE_DIR}-aarch64-linux-gnu")
endif()
