// SPDX-License-Identifier: Apache-2.0
// Vulkan: devices, shaders, and payloads for them.
#include "api/errors/families.h"

namespace tosaic {
namespace {

constexpr std::string_view another_device =
    "choose another device (`tosaic run --list-devices`) or the CPU: --device cpu, or --target tosa-fp where the "
    "program has a Vulkan delegate";

// What there is no shader for, whatever the device.
constexpr std::string_view without_shader =
    "no Vulkan device runs it as it stands: run the program on the CPU (--device cpu), or compile its .pt2 with "
    "--target vulkan, which leaves such nodes outside the delegate";
constexpr std::string_view too_large_for_shaders =
    "no Vulkan device runs it as it stands: make the tensor smaller (the batch, say), run the program on the CPU "
    "(--device cpu), or compile its .pt2 with --target vulkan, which leaves such nodes outside the delegate";

ErrorFamily vulkan() {
  return {"vulkan",
          "a Vulkan device cannot run the program, or there is none",
          another_device,
          "$ tosaic run net.pte --device vulkan\n"
          "net.pte: error[vulkan.no-loader]: libvulkan.so.1, the Vulkan loader, is not installed",
          {
              {"ambiguous-shader", "a shader's result depends on the device: a defect of tosaic", "please report it"},
              {"device", "there is no such Vulkan device"},
              {"dtype", "there are no shaders for this type", without_shader},
              {"failed", "a function of Vulkan failed"},
              {"feature", "the device lacks a feature that a shader needs"},
              {"keep-f32", "--vulkan-keep-f32 names nothing of the program", "name nodes or modules of it"},
              {"limit", "a shader exceeds a limit of the device"},
              {"lost", "the Vulkan device was lost while it ran"},
              {"memory", "the device does not have enough memory"},
              {"no-driver", "there is no Vulkan driver", "install one: mesa-vulkan-drivers runs on the CPU"},
              {"no-extension", "no device has the ML extensions for Vulkan",
               "use --device vulkan, or install Arm's emulation layer"},
              {"no-kernel", "there is no shader for an operator", without_shader},
              {"no-loader", "the Vulkan loader is not installed", "install libvulkan1"},
              {"pool-window", "a pooling window is too large for the shaders", without_shader},
              {"precision", "what --vulkan-precision fp16 does in this program", "nothing"},
              {"resource", "a resource of a VGF file is of a kind that the device does not take"},
              {"segment", "a segment of a VGF file cannot run on the device"},
              {"storage-range", "a tensor is larger than every Vulkan device takes", too_large_for_shaders},
              {"symbolic-size", "there is no shader for an operator whose sizes change from run to run",
               "choose the sizes: --sizes NAME=SIZE"},
              {"tier", "the program has no tier that the device runs", "compile it with more --vulkan-tiers"},
              {"version", "the device or the loader has an older Vulkan than is needed"},
              {"wrong-result", "the driver computes a shader wrongly"},
          }};
}

ErrorFamily vulkan_program() {
  return {"vulkan-program",
          "the payload of a TosaicVulkan delegate is damaged or of another version",
          "compile the model again: `tosaic compile --target vulkan`",
          "$ tosaic run net.pte\n"
          "net.pte: error[vulkan-program.version]: the program has version 9, this runtime knows 1 to 4",
          {
              {"constant-outside", "constants are in a data file that is not given", "--data FILE.ptd"},
              {"format", "the payload contradicts itself"},
              {"shader", "a shader of the payload is not well-formed"},
              {"too-large", "the weights of a delegate take more than 2 GB", "use --weights int8 or int4"},
              {"version", "the payload is of a version that this runtime does not know"},
          }};
}

ErrorFamily vulkan_backend() {
  return {"vulkan-backend",
          "a delegate of ExecuTorch's own Vulkan flow (VulkanBackend) cannot be run",
          "write the program again with ExecuTorch 1.5, without what is refused here",
          "$ tosaic run net_vulkan.pte\n"
          "net_vulkan.pte: error[vulkan-backend.operator]: 'et_vk.custom' is an operator that tosaic does not know",
          {
              {"arguments", "an operator is called with arguments that it does not take"},
              {"data", "a constant is not in the program"},
              {"device", "there is no such device", "--device takes cpu and vulkan"},
              {"format", "ExecuTorch's Vulkan payload is damaged, or was made by another version",
               "write the program again with ExecuTorch 1.5", true},
              {"operator", "tosaic does not know the operator, or this form of it"},
              {"state", "an operator writes to one of its arguments"},
              {"symbolic", "a scalar is known only at run time"},
              {"version", "the payload has a format that tosaic does not read"},
          }};
}

}  // namespace

std::vector<ErrorFamily> errors_of_vulkan() { return {vulkan(), vulkan_program(), vulkan_backend()}; }

}  // namespace tosaic
