// SPDX-License-Identifier: Apache-2.0
// The files that the runner (device/runner) reads and writes: 64 bytes with the tensor's type and a line feed, then its
// elements.
#include <fmt/format.h>
#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/system/external_process.h"
#include "base/system/output.h"
#include "boards/firmware.h"
#include "boards/tools.h"

namespace tosaic::boards {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t header_bytes = 64;

std::string file_of(const Tensor& tensor) {
  std::string file = to_string(tensor.type);
  file.resize(header_bytes - 1, ' ');
  file += '\n';
  file.append(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
  return file;
}

Result<Tensor> read_tensor(const std::string& path) {
  TOSAIC_TRY(const Bytes file, map_file(path));
  const auto wrong = [&] { return error("device.run", fmt::format("{} is no tensor of the runner", path)); };
  if (file.size() < header_bytes) return wrong();
  std::string_view line = file.text().substr(0, header_bytes);
  line = line.substr(0, line.find_last_not_of(" \n") + 1);
  TensorType type;
  std::vector<std::int64_t> sizes;
  for (std::size_t end; (end = line.find('x')) != line.npos; line.remove_prefix(end + 1)) {
    std::int64_t size = 0;
    for (char c : line.substr(0, end)) {
      if (c < '0' || c > '9') return wrong();
      size = 10 * size + (c - '0');
    }
    sizes.push_back(size);
  }
  const auto dtype = dtype_named(line);
  if (!dtype) return wrong();
  type.dtype = *dtype;
  type.shape = Shape(sizes);
  if (file.size() != header_bytes + type.storage_bytes()) return wrong();
  return Tensor{type, Bytes::copy(file.data() + header_bytes, type.storage_bytes())};
}

}  // namespace

Result<std::string> find_tool(const std::string& program) {
  std::string found = find_program(program);
  if (!found.empty()) return found;
  return error("device.tool", fmt::format("{} is not installed", program))
      .hint("apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi libstdc++-arm-none-eabi-newlib qemu-system-arm");
}

Result<Ran> run_firmware(const std::string& elf, const Bytes& pte, const std::vector<Tensor>& inputs,
                         const std::string& plugin) {
  TOSAIC_TRY(const Bytes program, map_file(elf));
  if (program.size() < 20 || program.text().substr(0, 4) != "\177ELF" || program.text()[18] != 40)
    return error("device.run", "this is no firmware for an Arm processor")
        .at({elf, 0, ""})
        .hint("`tosaic device build` makes one of a .pte");
  TOSAIC_TRY(const std::string qemu, find_tool("qemu-system-arm"));
  TOSAIC_TRY(const Temporary temporary, Temporary::folder());
  const fs::path folder(temporary.path());
  if (!pte.empty()) TOSAIC_CHECK(write_file((folder / "program.pte").string(), pte.text()));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    TOSAIC_CHECK(write_file((folder / fmt::format("input{}", i)).string(), file_of(inputs[i])));
  std::vector<std::string> command{qemu,
                                   "-M",
                                   "mps3-an547",
                                   "-cpu",
                                   "cortex-m55",
                                   "-nographic",
                                   "-monitor",
                                   "none",
                                   "-serial",
                                   "none",
                                   "-semihosting-config",
                                   fmt::format("enable=on,target=native,arg=tosaic,arg={}", folder.string()),
                                   "-kernel",
                                   elf};
  if (!plugin.empty()) command.insert(command.end(), {"-plugin", plugin});
  TOSAIC_TRY(const Ended ended, run_process(command, folder / "log", {.longest = std::chrono::minutes(10)}));
  Ran ran;
  ran.said = ended.said;
  if (!ended.succeeded()) {
    Diagnostic why = error("device.run", ended.signal != 0 ? fmt::format("QEMU was ended by signal {}", ended.signal)
                                                           : "the firmware ended with an error")
                         .at({elf, 0, ""});
    for (const std::string& line : lines_of(ended.said))
      if (why.notes.size() < 8) why.notes.push_back(line);
    return why;
  }
  for (std::size_t i = 0;; ++i) {
    const fs::path file = folder / fmt::format("output{}", i);
    std::error_code failure;
    if (!fs::exists(file, failure)) break;
    TOSAIC_TRY(Tensor output, read_tensor(file.string()));
    ran.outputs.push_back(std::move(output));
  }
  return ran;
}

}  // namespace tosaic::boards
