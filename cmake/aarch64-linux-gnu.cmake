# SPDX-License-Identifier: Apache-2.0
# CMAKE_TOOLCHAIN_FILE for Debian's g++-aarch64-linux-gnu: keeps the runtime compiling for the processors of phones where
# no NDK is at hand.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
