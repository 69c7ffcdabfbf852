// SPDX-License-Identifier: Apache-2.0
// Firmware of programs, from files to files.
#include <fmt/format.h>
#include <filesystem>

#include "api/case_difference.h"
#include "api/guard.h"
#include "api/program.h"
#include "base/system/output.h"
#include "boards/firmware.h"
#include "formats/bpte/bpte_file.h"
#include "formats/npy/npy.h"
#include "tosaic/files.hpp"

namespace tosaic {
namespace {

// Of a .pte or a .bpte.
Result<Bytes> read_program(const std::string& path) {
  TOSAIC_TRY(const Bytes file, map_file(path));
  return bpte::program_in(file, path);
}

Result<Firmware> try_build(const FirmwareRequest& request) {
  Outputs outputs;
  Bytes file;
  if (!request.program.empty()) {
    TOSAIC_TRY(file, read_program(request.program));
    outputs.reads(request.program);
  }
  TOSAIC_CHECK(outputs.plan(request.output));
  if (!request.map.empty()) TOSAIC_CHECK(outputs.plan(request.map));
  TOSAIC_TRY(const boards::Board board, boards::find_board(request.board, request.libraries));
  TOSAIC_TRY(const boards::Built built, boards::build_firmware(file, request.program, board,
                                                               {request.npu, request.arena_bytes, request.registers}));
  TOSAIC_CHECK(outputs.write(request.output, built.elf));
  if (!request.map.empty()) TOSAIC_CHECK(outputs.write(request.map, built.map));
  TOSAIC_CHECK(outputs.commit());
  return Firmware{built.npu, built.arena_bytes, boards::table_of(built.uses)};
}

Result<FirmwareRun> run_cases(const FirmwareRunRequest& request, const Bytes& program) {
  TOSAIC_TRY(const Bytes file, map_file(request.cases));
  TOSAIC_TRY(const Bundle bundle, read_bundle(file, request.cases));
  FirmwareRun outcome;
  std::size_t number = 0;
  for (const BundledCase& one : bundle.cases) {
    std::vector<Tensor> inputs;
    for (const Output& value : one.inputs)
      if (value.tensor) inputs.push_back({{value.tensor->dtype, Shape(value.tensor->sizes), {}}, value.tensor->data});
    TOSAIC_TRY(const boards::Ran ran, boards::run_firmware(request.firmware, program, inputs, request.plugin));
    outcome.said = ran.said;
    std::vector<Output> found;
    for (const Tensor& output : ran.outputs) found.push_back({owned(output), {}});
    std::string why = difference(found, one.outputs, {});
    const bool passed = why.empty();
    outcome.cases.push_back({one.method, number++, passed, std::move(why)});
  }
  return outcome;
}

Result<FirmwareRun> try_run(const FirmwareRunRequest& request) {
  Bytes program;
  if (!request.program.empty()) { TOSAIC_TRY(program, read_program(request.program)); }
  if (!request.cases.empty()) return run_cases(request, program);
  std::vector<Tensor> inputs;
  for (const std::string& path : request.inputs) {
    TOSAIC_TRY(const Bytes file, map_file(path));
    TOSAIC_TRY(Tensor tensor, npy::read(file, path));
    inputs.push_back(std::move(tensor));
  }
  if (!request.output_dir.empty()) TOSAIC_CHECK(make_folder(request.output_dir));
  TOSAIC_TRY(const boards::Ran ran, boards::run_firmware(request.firmware, program, inputs, request.plugin));
  FirmwareRun outcome;
  outcome.said = ran.said;
  Outputs files;
  files.reads(request.firmware);
  for (const std::string& path : request.inputs) files.reads(path);
  for (std::size_t i = 0; i < ran.outputs.size(); ++i) {
    outcome.output_types.push_back(to_string(ran.outputs[i].type));
    if (request.output_dir.empty()) continue;
    outcome.written.push_back((std::filesystem::path(request.output_dir) / fmt::format("output_{}.npy", i)).string());
    TOSAIC_CHECK(files.write(outcome.written.back(), npy::write(ran.outputs[i])));
  }
  TOSAIC_CHECK(files.commit());
  return outcome;
}

}  // namespace

Result<Firmware> build_firmware(const FirmwareRequest& request) {
  return guarded(request.program, [&] { return try_build(request); });
}

Result<FirmwareRun> run_firmware(const FirmwareRunRequest& request) {
  return guarded(request.firmware, [&] { return try_run(request); });
}

}  // namespace tosaic
