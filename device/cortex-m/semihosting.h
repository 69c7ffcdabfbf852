/* SPDX-License-Identifier: Apache-2.0
 * For boards whose firmware runs under a debugger or in QEMU. */
#ifndef TOSAIC_SEMIHOSTING_H
#define TOSAIC_SEMIHOSTING_H

#include <stddef.h>
#include <stdint.h>

void semihosting_print(const char* text, size_t bytes);
__attribute__((noreturn)) void semihosting_end(int status);
uint64_t semihosting_nanoseconds(void); /* 0: nobody tells */
long semihosting_read(const char* name, void* to, size_t most);
int semihosting_write(const char* name, const void* from, size_t bytes);

#endif
