// SPDX-License-Identifier: Apache-2.0
// run_payload PAYLOAD [INPUT.bin ...]: runs what `tosaic extract` takes out of a .pte, on this machine's Vulkan device;
// inputs are raw bytes, those that are not given are zeros. Prints types, the first numbers of each output, and times.
#include <tosaic/delegate.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

using Bytes = std::vector<char>;

bool read(const char* path, Bytes& bytes) {
  std::ifstream file(path, std::ios::binary);
  bytes.assign(std::istreambuf_iterator<char>(file), {});
  return file.good() || file.eof();
}

int refuse(const tosaic_delegate_error& why) {
  std::fprintf(stderr, "%s: %s\n%s%s%s\n", why.code, why.message, why.notes, *why.notes ? "\n" : "", why.help);
  return 1;
}

void print(const char* what, const tosaic_delegate_tensor_info& info, const Bytes& data, bool numbers) {
  std::printf("%s %s [", what, info.name);
  for (std::uint32_t i = 0; i < info.rank; ++i) std::printf(" %lld", static_cast<long long>(info.most[i]));
  std::printf(" ] of %u bytes each", info.element_bytes);
  const std::size_t count = std::min<std::size_t>(data.size() / info.element_bytes, numbers ? 10 : 0);
  for (std::size_t i = 0; i < count && info.dtype == TOSAIC_DTYPE_F32; ++i)
    std::printf(" %.6g", static_cast<double>(reinterpret_cast<const float*>(data.data())[i]));
  for (std::size_t i = 0; i < count && info.dtype == TOSAIC_DTYPE_I8; ++i) std::printf(" %d", data[i]);
  std::puts("");
}

}  // namespace

int main(int argc, char** argv) {
  Bytes payload;
  if (argc < 2 || !read(argv[1], payload) || payload.empty()) {
    std::fprintf(stderr, "usage: run_payload PAYLOAD [INPUT.bin ...]\n");
    return 2;
  }
  const tosaic_delegate_api* vulkan = tosaic_vulkan_delegate();
  tosaic_delegate_error why{};
  why.struct_bytes = sizeof why;
  tosaic_delegate_program program{};
  program.struct_bytes = sizeof program;
  program.name = argv[1];
  program.payload = payload.data();
  program.payload_bytes = payload.size();

  const auto begin = std::chrono::steady_clock::now();
  tosaic_delegate* open = nullptr;
  if (vulkan->open(vulkan->user, &program, nullptr, nullptr, &open, &why)) return refuse(why);
  tosaic_delegate_info info{};
  info.struct_bytes = sizeof info;
  if (vulkan->describe(open, &info, &why)) return refuse(why);

  const std::size_t count = info.input_count + info.output_count;
  std::vector<Bytes> memory(count);
  std::vector<tosaic_delegate_tensor> tensors(count);
  for (std::size_t i = 0; i < count; ++i) {
    const tosaic_delegate_tensor_info& t = info.tensors[i];
    std::size_t bytes = t.element_bytes;
    for (std::uint32_t d = 0; d < t.rank; ++d) bytes *= static_cast<std::size_t>(t.most[d]);
    const bool given = i < info.input_count && i + 2 < static_cast<std::size_t>(argc);
    if (given && (!read(argv[i + 2], memory[i]) || memory[i].size() != bytes)) {
      std::fprintf(stderr, "%s does not have the %zu bytes of input %zu\n", argv[i + 2], bytes, i);
      return 1;
    }
    memory[i].resize(bytes);
    tensors[i] = {memory[i].data(), bytes, t.dtype, t.rank, t.most, 0};
  }
  using Milliseconds = std::chrono::duration<double, std::milli>;
  std::vector<double> times;
  for (int run = 0; run < 20; ++run) {
    const auto start = std::chrono::steady_clock::now();
    if (vulkan->execute(open, tensors.data(), count, &why)) return refuse(why);
    times.push_back(Milliseconds(std::chrono::steady_clock::now() - start).count());
    if (run == 0)
      std::printf("%s, first result after %.1f ms\n", info.device,
                  Milliseconds(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(times.begin() + 1, times.end());
  std::printf("then %.3f ms a run\n", times[10]);
  for (std::size_t i = 0; i < count; ++i) {
    const bool output = i >= info.input_count;
    print(output ? "output" : "input", info.tensors[i], memory[i], output);
  }
  vulkan->close(open);
  return 0;
}
