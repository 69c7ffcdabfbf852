// SPDX-License-Identifier: Apache-2.0
// embed MODEL.pt2 TARGET: compiles in memory with the sample inputs that the model holds, runs, and prints outputs and
// milliseconds. No file is written.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <tosaic/tosaic.hpp>

namespace {

double milliseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

int refuse(const tosaic::Diagnostic& why) {
  std::fputs(tosaic::render(why, false).c_str(), stderr);
  return 1;
}

void print(const tosaic::Output& output) {
  if (!output.tensor) return void(std::puts("  no tensor"));
  const tosaic::OwnedTensor& t = *output.tensor;
  std::printf("  %s [", std::string(name_of(t.dtype)).c_str());
  for (std::int64_t size : t.sizes) std::printf(" %lld", static_cast<long long>(size));
  std::printf(" ]");
  const std::size_t count = t.data.size() / storage_size(t.dtype);
  for (std::size_t i = 0; i < count && i < 10 && t.dtype == tosaic::DType::f32; ++i)
    std::printf(" %.6g", static_cast<double>(t.data.as<float>()[i]));
  std::puts("");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: embed MODEL.pt2 TARGET\n", stderr);
    return 2;
  }
  auto begin = std::chrono::steady_clock::now();
  const auto program = tosaic::Program::open(argv[1]);
  if (!program.ok()) return refuse(program.error());

  tosaic::Callbacks callbacks;
  callbacks.message = [](const tosaic::Diagnostic& said) { std::fputs(render(said, false).c_str(), stderr); };
  const auto artifact = tosaic::compile(*program, argv[2], {}, callbacks);
  if (!artifact.ok()) return refuse(artifact.error());
  std::printf("compiled for %s in %.1f ms: %zu of %zu nodes in %zu delegates, %zu bytes\n", argv[2],
              milliseconds_since(begin), artifact->summary().delegated,
              artifact->summary().nodes.size() - artifact->summary().conversions, artifact->summary().delegates,
              artifact->summary().program_bytes);

  auto session = tosaic::Session::load(*artifact);
  if (!session.ok()) return refuse(session.error());
  const auto sample = program->sample_inputs();
  if (!sample.ok()) return refuse(sample.error());
  std::vector<tosaic::InputTensor> inputs;
  for (const tosaic::OwnedTensor& tensor : *sample) inputs.push_back(tensor.view());

  begin = std::chrono::steady_clock::now();
  const auto outputs = session->run(inputs);
  if (!outputs.ok()) return refuse(outputs.error());
  std::printf("ran on %s in %.3f ms\n", session->device().c_str(), milliseconds_since(begin));
  for (const tosaic::Output& output : *outputs) print(output);
  return 0;
}
