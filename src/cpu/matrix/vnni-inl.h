// SPDX-License-Identifier: Apache-2.0
// Highway 1.0.3 leaves avx512vnni out of the compiler options of its AVX3_DL target, though it asks the processor
// for it at run time. Include after highway.h and before HWY_BEFORE_NAMESPACE, in every pass over the file.
#include <hwy/highway.h>
#if HWY_TARGET == HWY_AVX3_DL && HWY_MAJOR == 1 && HWY_MINOR == 0 && HWY_PATCH <= 3
#undef HWY_TARGET_STR
#define HWY_TARGET_STR \
  HWY_TARGET_STR_AVX3 ",vpclmulqdq,avx512vbmi,avx512vbmi2,vaes,avxvnni,avx512bitalg,avx512vpopcntdq,avx512vnni"
#endif
