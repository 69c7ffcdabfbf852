// SPDX-License-Identifier: Apache-2.0
// run_NAME PROGRAM.pte INPUT OUTPUT: the runtime with one delegate and no kernels: what a device would link. INPUT and
// OUTPUT are the bytes of the program's only input and output. Its size is measured in docs/developer/delegates.md.
#include <cstdio>

#include "runtime/method.h"

using namespace tosaic;

namespace {

int failed(const Diagnostic& why) {
  std::fprintf(stderr, "%s: %s\n", why.code.c_str(), why.message.c_str());
  return 1;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  auto file = map_file(arguments[1]);
  if (!file.ok()) return failed(file.error());
  auto input = map_file(arguments[2]);
  if (!input.ok()) return failed(input.error());
  auto program = pte::read(*file, arguments[1]);
  if (!program.ok()) return failed(program.error());
  runtime::Options options;
  options.threads = 1;
  options.file = arguments[1];
  options.delegates = {{DELEGATE()->id, {DELEGATE()}}};
  auto method = runtime::Method::load(*program, "forward", options);
  if (!method.ok()) return failed(method.error());
  if (method->input_types().size() != 1) return 2;
  auto outputs = method->run({{method->input_types()[0], *input}});
  if (!outputs.ok()) return failed(outputs.error());
  const auto written = write_file(arguments[3], outputs->at(0).data.data(), outputs->at(0).data.size());
  return written.ok() ? 0 : failed(written.error());
}
