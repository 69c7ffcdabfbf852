// SPDX-License-Identifier: Apache-2.0
// What the shared library shows. Everything else in it is hidden.
#pragma once

#if defined(_WIN32) && defined(TOSAIC_EXPORTS)
#define TOSAIC_API __declspec(dllexport)
#elif defined(_WIN32)
#define TOSAIC_API
#else
#define TOSAIC_API __attribute__((visibility("default")))
#endif
