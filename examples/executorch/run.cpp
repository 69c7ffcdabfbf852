// SPDX-License-Identifier: Apache-2.0
// run PROGRAM.pte INPUT OUTPUT: ExecuTorch's Module on the bytes of the program's only input. That the program may be
// one of tosaic's, for a VGF or Ethos-U target, is a matter of linking the plug-in: only the check in main() knows of
// it.
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>
#include <tosaic/executorch.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <vector>

using executorch::extension::Module;

namespace {

int failed(const char* what, executorch::runtime::Error error) {
  std::fprintf(stderr, "%s: %s\n", what, executorch::runtime::to_string(error));
  return 1;
}

std::vector<char> read(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  if (*tosaic_executorch_problem()) {
    std::fprintf(stderr, "%s\n", tosaic_executorch_problem());
    return 1;
  }
  Module module(arguments[1]);
  const auto meta = module.method_meta("forward");
  if (!meta.ok()) return failed("the program", meta.error());
  const auto input = meta->input_tensor_meta(0);
  if (!input.ok()) return failed("the first input", input.error());
  std::vector<char> bytes = read(arguments[2]);
  if (bytes.size() != input->nbytes()) {
    std::fprintf(stderr, "the input has %zu bytes, the file %zu\n", input->nbytes(), bytes.size());
    return 1;
  }
  const std::vector<executorch::aten::SizesType> sizes(input->sizes().begin(), input->sizes().end());
  const auto tensor = executorch::extension::from_blob(bytes.data(), sizes, input->scalar_type());
  const auto begin = std::chrono::steady_clock::now();
  const auto outputs = module.forward(tensor);
  if (!outputs.ok()) return failed("the run", outputs.error());
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
  const auto output = outputs->at(0).toTensor();
  std::ofstream(arguments[3], std::ios::binary)
      .write(output.const_data_ptr<char>(), static_cast<long>(output.nbytes()));
  std::printf("backends %s, loaded and ran in %.1f ms\n", tosaic_executorch_backends(), taken.count());
  return 0;
}
