// SPDX-License-Identifier: Apache-2.0
// f32 numbers of the caller that lie in a device's memory as f16, on their way there and back.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tosaic::vulkan {

// To nearest, ties to even; what f16 cannot hold becomes infinite.
void narrow(const float* from, std::size_t count, std::uint16_t* to);
void widen(const std::uint16_t* from, std::size_t count, float* to);

}  // namespace tosaic::vulkan
