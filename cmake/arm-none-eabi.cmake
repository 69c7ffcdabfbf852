# SPDX-License-Identifier: Apache-2.0
# CMAKE_TOOLCHAIN_FILE for Debian's gcc-arm-none-eabi: boards without an operating system. TOSAIC_CPU says which.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR arm)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_CXX_COMPILER arm-none-eabi-g++)
set(CMAKE_ASM_COMPILER arm-none-eabi-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)  # a program needs a board's linker script
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(TOSAIC_CPU cortex-m55 CACHE STRING "the processor, as the compiler's -mcpu names it")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TOSAIC_CPU)
set(CMAKE_C_FLAGS_INIT "-mcpu=${TOSAIC_CPU} -mthumb -mfloat-abi=hard")
set(CMAKE_CXX_FLAGS_INIT "${CMAKE_C_FLAGS_INIT}")
set(CMAKE_ASM_FLAGS_INIT "${CMAKE_C_FLAGS_INIT}")
