// SPDX-License-Identifier: Apache-2.0
// What the C interfaces of the simulator share. Private to src/ethosu and src/ethosu_device.
#pragma once
#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/system/thread_pool.h"
#include "tosaic/ethosu.h"

namespace tosaic::ethosu {

// `error` may be null. Texts are cut to what it holds; nothing is allocated.
inline void fill_error(tosaic_ethosu_error* error, std::string_view code, std::string_view message) {
  if (!error) return;
  const auto copy = [](char* to, std::size_t size, std::string_view text) {
    const std::size_t length = std::min(text.size(), size - 1);
    std::memcpy(to, text.data(), length);
    to[length] = 0;
  };
  copy(error->code, sizeof error->code, code);
  copy(error->message, sizeof error->message, message);
}

// 0: as many as the machine has, at most 8.
inline int threads_for(std::uint32_t asked) {
  return static_cast<int>(asked ? std::min<unsigned>(asked, 64) : std::min(hardware_threads(), 8u));
}

}  // namespace tosaic::ethosu
