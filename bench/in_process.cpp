// SPDX-License-Identifier: Apache-2.0
// What a program that has tosaic inside waits for: compilations in memory, bytes to bytes, one after the other.
//   in_process MODEL.pt2 TARGET RUNS [SAMPLES.npz]
// Prints one JSON object: {"seconds": [...]}. Without samples, the model's stored ones calibrate.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tosaic/tosaic.hpp"

namespace {

int refuse(const tosaic::Diagnostic& why) {
  std::fputs(tosaic::render(why, false).c_str(), stderr);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return std::fputs("usage: in_process MODEL.pt2 TARGET RUNS [SAMPLES.npz]\n", stderr), 2;
  std::ifstream file(argv[1], std::ios::binary);
  const auto model = tosaic::Bytes::of(std::vector<char>{std::istreambuf_iterator<char>(file), {}});
  tosaic::SampleSource samples;
  if (argc > 4) {
    const auto program = tosaic::Program::read(model, argv[1]);
    if (!program.ok()) return refuse(program.error());
    auto read = tosaic::read_samples(argv[4], *program);
    if (!read.ok()) return refuse(read.error());
    samples = *read;
  }
  std::printf("{\"seconds\": [");
  for (int run = 0; run < std::atoi(argv[3]); ++run) {
    const auto begin = std::chrono::steady_clock::now();
    const auto program = tosaic::Program::read(model, argv[1]);
    if (!program.ok()) return refuse(program.error());
    const auto artifact = tosaic::compile(*program, argv[2], {}, {}, samples);
    if (!artifact.ok()) return refuse(artifact.error());
    const auto pte = artifact->piece("pte");
    if (!pte.ok()) return refuse(pte.error());
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    std::printf("%s%.6f", run ? ", " : "", seconds.count());
  }
  std::puts("]}");
  return 0;
}
