// SPDX-License-Identifier: Apache-2.0
// The one place where volk's functions are compiled: they open libvulkan.so.1 at run time, so that nothing of tosaic
// needs it to start.
#define VOLK_IMPLEMENTATION
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wpedantic"
#include <volk.h>
