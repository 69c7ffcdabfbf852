/* SPDX-License-Identifier: Apache-2.0 */
/* QEMU's mps3-an547: vectors, the floating-point unit and Helium switched on, then newlib's own start. */
.syntax unified
.thumb
.section .vectors, "a"
.word 0x20080000
.word reset
.rept 14
.word fault
.endr
.text
.thumb_func
.global reset
reset:
  ldr r0, =0xE000ED88
  ldr r1, [r0]
  orr r1, r1, #(0xf << 20)
  str r1, [r0]
  dsb
  isb
  bl _start
.thumb_func
fault:
  b fault
