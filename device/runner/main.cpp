// SPDX-License-Identifier: Apache-2.0
// Runs a .pte on a board: loads it into an arena, seals that, reads the inputs, runs, writes the outputs. The files are
// those of `tosaic device run`: program.pte (where the firmware has none inside), input0, output0: a tensor's type as a
// line of text, and its elements.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "base/system/bare/arena.h"
#include "base/system/bare/board.h"
#include "formats/pte/pte_file.h"
#include "runtime/conversion_kernels.h"
#include "runtime/method.h"
#include "tosaic/delegate.h"

// By `tosaic device build`; between equal addresses there is none.
extern "C" const std::byte tosaic_model_start[], tosaic_model_end[];

namespace tosaic {
namespace {

void print(std::string_view text) { tosaic_board_print(text.data(), text.size()); }
void print(std::string_view name, std::uint64_t number, std::string_view unit) {
  print(name);
  print(std::to_string(number));
  print(unit);
}

int fail(const Diagnostic& why) {
  print("error[");
  print(why.code);
  print("]");
  if (!why.message.empty()) print(": ");
  print(why.message);
  for (const std::string_view note : why.notes) {
    if (note.empty()) continue;
    print("\n  note: ");
    print(note);
  }
  print("\n");
  return 1;
}

// A tensor as a file: its type in a line, then elements on 16 bytes.
struct TensorFile {
  static constexpr std::size_t header_bytes = 64;
  TensorType type;
  std::string line;  // padded
  std::vector<std::byte> memory;

  explicit TensorFile(const TensorType& of) : type(of), line(to_string(of)) {
    line.resize(header_bytes - 1, ' ');
    line += '\n';
    memory.resize(header_bytes + type.storage_bytes() + 16);
  }
  std::byte* start() {
    const auto at = reinterpret_cast<std::uintptr_t>(memory.data());
    return memory.data() + (16 - at % 16) % 16;
  }
  std::byte* elements() { return start() + header_bytes; }
  std::size_t bytes() const { return header_bytes + type.storage_bytes(); }
};

struct Names {
  char text[24];
  Names(const char* what, std::size_t i) { std::snprintf(text, sizeof text, "%s%u", what, static_cast<unsigned>(i)); }
};

// False: what the file has is not that.
bool read(TensorFile& file, std::size_t i) {
  const Names name("input", i);
  const long bytes = tosaic_board_read(name.text, file.start(), file.bytes());
  if (bytes == static_cast<long>(file.bytes()) && std::memcmp(file.start(), file.line.data(), file.line.size()) == 0)
    return true;
  print("error[device.input]: ");
  print(name.text);
  if (bytes < 0) {
    print(" cannot be read\n");
    return false;
  }
  const auto* given = reinterpret_cast<const char*>(file.start());
  std::string_view is(given,
                      bytes < 0 ? 0 : std::min<std::size_t>(static_cast<std::size_t>(bytes), TensorFile::header_bytes));
  is = is.substr(0, is.find_last_not_of(" \n") + 1);
  print(" is ");
  print(is);
  print(", the program takes ");
  print(to_string(file.type));
  print("\n");
  return false;
}

Bytes program_file(std::vector<std::byte>& space) {
  const std::size_t inside = static_cast<std::size_t>(tosaic_model_end - tosaic_model_start);
  if (inside > 0) return Bytes(nullptr, tosaic_model_start, inside);
  std::byte none;
  const long bytes = tosaic_board_read("program.pte", &none, 0);
  if (bytes <= 0) return {};
  space.resize(static_cast<std::size_t>(bytes) + 16);
  std::byte* const start = space.data() + (16 - reinterpret_cast<std::uintptr_t>(space.data()) % 16) % 16;
  if (tosaic_board_read("program.pte", start, static_cast<std::size_t>(bytes)) != bytes) return {};
  return Bytes(nullptr, start, static_cast<std::size_t>(bytes));
}

int run() {
  const tosaic_board_memory memory = tosaic_board_arena(), stand_in = tosaic_board_stand_in_arena();
  Arena& arena = Arena::of_program();
  arena.lend("arena", memory.start, memory.bytes);
  Arena::of_stand_in().lend("stand-in's arena", stand_in.start, stand_in.bytes);

  std::vector<std::byte> file;
  const Bytes pte = program_file(file);
  if (pte.empty()) return fail(error("device.no-program", "there is no program inside, and no program.pte"));
  runtime::Options options;
  options.threads = 1;
  options.file = "program.pte";
  options.fixed_sizes = true;
  options.kernels = runtime::conversion_kernels();
  options.delegates["EthosUBackend"] = {tosaic_ethos_u_delegate(), tosaic_board_npu(), nullptr};
  auto made = [&]() -> Result<runtime::Method> {
    TOSAIC_TRY(pte::Program program, pte::read(pte, options.file));
    return runtime::Method::load_first(std::move(program), options);
  }();
  if (!made.ok()) return fail(made.error());
  runtime::Method& method = *made;

  std::vector<TensorFile> inputs, outputs;
  for (const TensorType& type : method.input_types()) inputs.emplace_back(type);
  for (const TensorType& type : method.output_types()) outputs.emplace_back(type);
  std::vector<TensorView> views;
  for (TensorFile& input : inputs) views.push_back({input.type, input.elements()});
  print("arena ", arena.peak(), " bytes, of ");
  print("", arena.bytes(), "\n");
  arena.seal();

  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!read(inputs[i], i)) return 1;
  const std::uint64_t before = tosaic_board_cycles();
  if (const Status status = method.compute(views); !status.ok()) return fail(status.error());
  const std::uint64_t cycles = tosaic_board_cycles() - before;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    TensorFile& output = outputs[i];
    std::memcpy(output.start(), output.line.data(), output.line.size());
    std::memcpy(output.elements(), method.output(i), output.type.storage_bytes());
    const Names name("output", i);
    if (tosaic_board_write(name.text, output.start(), output.bytes()) != 0)
      return fail(error("device.output", "an output cannot be written"));
  }
  if (cycles > 0) print("cycles ", cycles, "\n");
  return 0;
}

}  // namespace
}  // namespace tosaic

int main() { return tosaic::run(); }
