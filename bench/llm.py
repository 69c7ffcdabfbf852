# SPDX-License-Identifier: Apache-2.0
"""A decoder of 0.43 billion random weights on the CPU: tokens a second of one token at a time and of 256 together,
compared with llama.cpp with a model of the same shape, ExecuTorch's XNNPACK with the same model, and the memory's
bandwidth.

    python llm.py --tosaic build/release/bin/tosaic [--llama PYTHON] [--xnnpack PYTHON] [--threads 2]
                  [--output build/bench-llm.md]

PYTHON is one that has llama-cpp-python and gguf (and NumPy), or ExecuTorch and torchao; without it the peer is left out.
ExecuTorch takes a quarter of an hour to lower the model; its program is kept in the folder. Every figure is the best of
several rounds, in which the programs take turns.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples/llm"))
VOCABULARY, WIDTH, HIDDEN, LAYERS, HEADS, GROUPS, CONTEXT, PROMPT = 32000, 1024, 4096, 24, 16, 4, 512, 256
# Options, and the bytes of a weight in memory as one token reads it: quantised values, and scales of groups of 32.
BYTES = {"f32": 4, "int8": 1, "dynamic int8": 1, "int4": 18 / 32, "dynamic int8 x int4": 18 / 32,
         "llama.cpp Q4_0": 18 / 32, "XNNPACK 8da4w": 18 / 32}
READ = LAYERS * WIDTH * (2 * WIDTH + 2 * WIDTH // HEADS * GROUPS + 3 * HIDDEN) + VOCABULARY * WIDTH  # not the embedding
SCHEMES = {"f32": [], "int8": ["--weights", "int8"], "dynamic int8": ["--quantize", "dynamic-int8"],
           "int4": ["--weights", "int4"], "dynamic int8 x int4": ["--quantize", "dynamic-int8", "--weights", "int4"]}

GGUF = """
import sys, numpy as np, gguf
path, v, w, h, layers, heads, groups = sys.argv[1], *map(int, sys.argv[2:])
q4 = gguf.GGMLQuantizationType.Q4_0
out = gguf.GGUFWriter(path, "llama")
out.add_context_length(1024); out.add_embedding_length(w); out.add_block_count(layers); out.add_feed_forward_length(h)
out.add_head_count(heads); out.add_head_count_kv(groups); out.add_layer_norm_rms_eps(1e-5); out.add_vocab_size(v)
out.add_rope_dimension_count(w // heads); out.add_rope_freq_base(10000.0); out.add_file_type(2)
out.add_tokenizer_model("llama"); out.add_tokenizer_pre("default")
out.add_token_list([b"<unk>", b"<s>", b"</s>"] + [b"t%d" % i for i in range(v - 3)])
out.add_token_scores([0.0] * v); out.add_token_types([2, 3, 3] + [1] * (v - 3))
out.add_bos_token_id(1); out.add_eos_token_id(2); out.add_unk_token_id(0)
random = np.random.default_rng(0)
def matrix(name, n, k):
    x = random.standard_normal((n, k), dtype=np.float32) * 0.02
    out.add_tensor(name, gguf.quants.quantize(x, q4), raw_dtype=q4)
def ones(name):
    out.add_tensor(name, np.ones(w, np.float32))
matrix("token_embd.weight", v, w)
for i in range(layers):
    b = f"blk.{i}."
    ones(b + "attn_norm.weight"); ones(b + "ffn_norm.weight")
    for name, n, k in (("attn_q", w, w), ("attn_k", w // heads * groups, w), ("attn_v", w // heads * groups, w),
                       ("attn_output", w, w), ("ffn_gate", h, w), ("ffn_up", h, w), ("ffn_down", w, h)):
        matrix(b + name + ".weight", n, k)
ones("output_norm.weight"); matrix("output.weight", v, w)
out.write_header_to_file(); out.write_kv_data_to_file(); out.write_tensors_to_file(); out.close()
"""
LLAMA = """
import sys, time
from llama_cpp import Llama
path, threads, prompt, repeats = sys.argv[1], *map(int, sys.argv[2:])
m = Llama(path, n_ctx=512, n_threads=threads, n_threads_batch=threads, n_batch=prompt, n_ubatch=prompt, verbose=False)
def best(count, f):
    times = []
    for i in range(count):
        begin = time.perf_counter(); f(i); times.append(time.perf_counter() - begin)
    return min(times) * 1000
def together(_):
    m.reset(); m.eval([i * 97 % 31990 + 3 for i in range(prompt)])
print("prefill", best(3, together)); print("decode", best(repeats, lambda i: m.eval([7 + i])))
"""
# torchao's int8 activations by token, int4 weights in groups of 32; the embedding stays f32 as it does in ours.
XNNPACK = """
import sys, time
sys.path.insert(0, sys.argv[2])
import torch
from decoder import Decoder, Shape
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackDynamicallyQuantizedPartitioner, XnnpackPartitioner
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
from torchao.quantization.granularity import PerGroup
path, v, w, h, layers, heads, groups, context, prompt = sys.argv[1], *map(int, sys.argv[3:])
torch.manual_seed(0)
model = Decoder(Shape(vocab_size=v, hidden_size=w, intermediate_size=h, num_hidden_layers=layers, num_attention_heads=heads,
                      num_key_value_heads=groups, context=context), last_alone=True).eval()
quantize_(model, Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=PerGroup(32)))
programs = {}
for name, count in (("prefill", prompt), ("decode", 1)):
    call = torch.arange(count)[None] % v, torch.arange(count) + (prompt if count == 1 else 0)
    with torch.no_grad():
        programs[name] = torch.export.export(model, call, strict=False)
begin = time.monotonic()
made = to_edge_transform_and_lower(programs, partitioner=[XnnpackDynamicallyQuantizedPartitioner(), XnnpackPartitioner()],
                                   compile_config=EdgeCompileConfig(_check_ir_validity=False)).to_executorch()
with open(path + ".part", "wb") as file:
    made.write_to_file(file)
open(path + ".seconds", "w").write(str(time.monotonic() - begin))
"""
XNNPACK_RUN = """
import sys, time, torch
from executorch.runtime import Runtime
path, prompt, v, repeats = sys.argv[1], *map(int, sys.argv[2:])
program = Runtime.get().load_program(path)
for name, count, times in (("prefill", prompt, 3), ("decode", 1, repeats)):
    method = program.load_method(name)
    call = [torch.arange(count)[None] % v, torch.arange(count) + (prompt if count == 1 else 0)]
    took = []
    for _ in range(times):
        begin = time.perf_counter(); method.execute(call); took.append(time.perf_counter() - begin)
    print(name, min(took) * 1000)
"""
STREAM = r"""
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>
int main(int, char** a) {
  const std::size_t threads = std::atoi(a[1]), n = std::size_t{1} << 26;
  std::vector<std::uint64_t> data(n, 1);
  double best = 1e9;
  for (int round = 0; round < 8; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::thread> all;
    std::vector<std::uint64_t> sums(threads * 8);
    for (std::size_t t = 0; t < threads; ++t)
      all.emplace_back([&, t] {
        std::uint64_t s = 0;
        for (std::size_t i = n / threads * t; i < n / threads * (t + 1); ++i) s += data[i];
        sums[t * 8] = s;
      });
    for (auto& t : all) t.join();
    if (sums[0] == 0) return 1;
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::printf("%f\n", n * 8 / best / 1e9);
}
"""


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command[:3]))}: {done.stdout[-500:]}{done.stderr[-1500:]}")
    return done.stdout + done.stderr


def make_programs(folder):
    import numpy as np
    import torch
    from decoder import Decoder, Shape

    if (folder / "decode.pt2").exists():
        return
    shape = Shape(vocab_size=VOCABULARY, hidden_size=WIDTH, intermediate_size=HIDDEN, num_hidden_layers=LAYERS,
                  num_attention_heads=HEADS, num_key_value_heads=GROUPS, context=CONTEXT)
    torch.manual_seed(0)
    model = Decoder(shape, last_alone=True).eval()
    for name, count in (("prefill", PROMPT), ("decode", 1)):
        tokens, positions = torch.arange(count)[None] % VOCABULARY, torch.arange(count) + (PROMPT if count == 1 else 0)
        with torch.no_grad():
            torch.export.save(torch.export.export(model, (tokens, positions), strict=False), folder / f"{name}.pt2")
        np.save(folder / f"{name}_tokens.npy", tokens.numpy())
        np.save(folder / f"{name}_positions.npy", positions.numpy())


def make_xnnpack(python, file):
    """Seconds that ExecuTorch took to lower the model, now or when the file was made."""
    if not file.exists():
        run(python, "-W", "ignore", "-c", XNNPACK, file, ROOT / "examples/llm", VOCABULARY, WIDTH, HIDDEN, LAYERS, HEADS, GROUPS,
            CONTEXT, PROMPT)
        pathlib.Path(f"{file}.part").rename(file)
    return float(pathlib.Path(f"{file}.seconds").read_text())


def ours(tosaic, folder, file, method, repeats, threads):
    """Milliseconds of the best run, and the most memory in MB."""
    text = run("/usr/bin/env", "time", "-f", "%M kB", tosaic, "run", file, "--method", method, "--threads", threads,
               "--input", folder / f"{method}_tokens.npy", "--input", folder / f"{method}_positions.npy", "--repeat",
               repeats)
    return float(re.search(r"time +min ([\d.]+)", text)[1]), int(re.search(r"(\d+) kB", text)[1]) / 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tosaic", type=pathlib.Path, required=True)
    parser.add_argument("--llama", type=pathlib.Path)
    parser.add_argument("--xnnpack", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--schemes", nargs="*", default=list(SCHEMES), choices=SCHEMES)
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/bench-llm")
    parser.add_argument("--output", type=pathlib.Path)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    folder = args.folder

    (folder / "stream.cpp").write_text("#include <algorithm>\n" + STREAM)
    run("c++", "-O3", "-march=native", "-pthread", "-o", folder / "stream", folder / "stream.cpp")
    if args.llama and not (folder / "q4_0.gguf").exists():
        run(args.llama, "-c", GGUF, folder / "q4_0.gguf", VOCABULARY, WIDTH, HIDDEN, LAYERS, HEADS, GROUPS)
    make_programs(folder)
    seconds = {}
    for scheme in args.schemes:
        begin = time.monotonic()
        run(args.tosaic, "compile", f"prefill={folder / 'prefill.pt2'}", f"decode={folder / 'decode.pt2'}", "--target",
            "tosa-fp", "-q", "-o", folder / f"{scheme.replace(' ', '_')}.pte", *SCHEMES[scheme])
        seconds[scheme] = time.monotonic() - begin

    if args.xnnpack:
        seconds["XNNPACK 8da4w"] = make_xnnpack(args.xnnpack, folder / "XNNPACK_8da4w.pte")

    best, memory, bandwidth = {}, {}, 0

    def noted(what, milliseconds):
        best[what] = min(best.get(what, milliseconds), milliseconds)

    for _ in range(args.rounds):
        bandwidth = max(bandwidth, float(run(folder / "stream", args.threads)))
        for scheme in args.schemes:
            for method, repeats in (("prefill", 3), ("decode", 40)):
                took, used = ours(args.tosaic, folder, folder / f"{scheme.replace(' ', '_')}.pte", method, repeats,
                                  args.threads)
                noted((scheme, method), took)
                memory[scheme] = max(memory.get(scheme, 0), used)
        peers = {}
        if args.llama:
            peers["llama.cpp Q4_0"] = args.llama, "-c", LLAMA, folder / "q4_0.gguf", args.threads, PROMPT, 40
        if args.xnnpack:  # on as many threads as there are cores
            peers["XNNPACK 8da4w"] = (args.xnnpack, "-W", "ignore", "-c", XNNPACK_RUN, folder / "XNNPACK_8da4w.pte", PROMPT,
                                      VOCABULARY, 40)
        for name, command in peers.items():
            for line in run(*command).splitlines():
                if found := re.match(r"(prefill|decode) ([\d.]+)", line):
                    noted((name, found[1]), float(found[2]))

    lines = [f"{args.threads} threads, memory read at {bandwidth:.1f} GB/s; cache of {CONTEXT} tokens", "",
             f"| | file | compiled in | memory | one token | of bandwidth | {PROMPT} tokens |", "|---|---|---|---|---|---|---|"]
    for name in dict.fromkeys(scheme for scheme, _ in best):
        file = folder / ("q4_0.gguf" if name.startswith("llama") else f"{name.replace(' ', '_')}.pte")
        size = READ * BYTES[name]
        decode, prefill = best[name, "decode"], best[name, "prefill"]
        known = [f"{seconds[name]:.1f} s" if name in seconds else "", f"{memory[name]:.0f} MB" if name in memory else ""]
        lines.append("| " + " | ".join([name, f"{file.stat().st_size / 1e6:.0f} MB", *known,
                                        f"{1000 / decode:.1f}/s", f"{size / decode / 1e6 / bandwidth:.0%}",
                                        f"{PROMPT * 1000 / prefill:.0f}/s"]) + " |")
    text = "\n".join(lines) + "\n"
    print(text)
    if args.output:
        args.output.write_text(text)


if __name__ == "__main__":
    main()
