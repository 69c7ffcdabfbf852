# SPDX-License-Identifier: Apache-2.0
"""Decoders with random weights of hundreds of millions of parameters: seconds, memory and bytes of each command.

    python large_weights.py --tosaic build/release/bin/tosaic [--sizes 60M 250M 1B] [--dtypes float32 bfloat16 float16]
                            [--targets tosa-fp vgf vulkan] [--output build/large-weights.md] [--folder build/large]

Memory is what the system counted for the process: `anonymous` cannot be dropped, `mapped` (pages of the model's file and of
what is written) can. A model is made, measured and deleted before the next.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import time

# vocabulary, width, hidden, layers, heads, key heads
SHAPES = {
    "60M": (16000, 512, 1408, 8, 8, 4),
    "250M": (32000, 1024, 2816, 16, 16, 8),
    "1B": (32000, 2048, 5632, 20, 32, 8),
}
TOKENS = 16


def decoder(size, dtype):
    import torch
    from torch import nn

    vocabulary, width, hidden, layers, heads, key_heads = SHAPES[size]
    head = width // heads

    def rotated(x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            def linear(a, b):
                return nn.Linear(a, b, bias=False)
            self.before, self.between = nn.RMSNorm(width), nn.RMSNorm(width)
            self.q, self.o = linear(width, width), linear(width, width)
            self.k, self.v = linear(width, key_heads * head), linear(width, key_heads * head)
            self.gate, self.up, self.down = linear(width, hidden), linear(width, hidden), linear(hidden, width)

        def forward(self, x, cos, sin):
            h = self.before(x)
            q, k, v = (p(h).view(1, TOKENS, -1, head).transpose(1, 2) for p in (self.q, self.k, self.v))
            k, v = (t.repeat_interleave(heads // key_heads, 1) for t in (rotated(k, cos, sin), v))
            a = nn.functional.scaled_dot_product_attention(rotated(q, cos, sin), k, v, is_causal=True)
            x = x + self.o(a.transpose(1, 2).reshape(1, TOKENS, width))
            h = self.between(x)
            return x + self.down(nn.functional.silu(self.gate(h)) * self.up(h))

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(vocabulary, width)
            self.layers = nn.ModuleList([Layer() for _ in range(layers)])
            self.last = nn.RMSNorm(width)
            self.head = nn.Linear(width, vocabulary, bias=False)
            self.head.weight = self.tokens.weight  # tied
            angles = torch.arange(TOKENS)[:, None] * 10000.0 ** (-torch.arange(0, head, 2) / head)
            self.register_buffer("cos", torch.cat((angles, angles), -1).cos())
            self.register_buffer("sin", torch.cat((angles, angles), -1).sin())

        def forward(self, tokens):
            x = self.tokens(tokens)
            for layer in self.layers:
                x = layer(x, self.cos, self.sin)
            return self.head(self.last(x))

    torch.manual_seed(0)
    torch.set_default_dtype(getattr(torch, dtype))
    with torch.device("meta"):
        model = Decoder()
    model = model.to_empty(device="cpu")
    with torch.no_grad():
        for p in model.parameters():
            p.uniform_(-0.03, 0.03) if p.dim() > 1 else p.fill_(1)
        with torch.device("cpu"):
            angles = torch.arange(TOKENS)[:, None] * 10000.0 ** (-torch.arange(0, head, 2) / head)
        model.cos.copy_(torch.cat((angles, angles), -1).cos())
        model.sin.copy_(torch.cat((angles, angles), -1).sin())
    return model.eval()


def make(size, dtype, path):
    import numpy as np
    import torch

    model = decoder(size, dtype)
    tokens = torch.arange(TOKENS)[None] * 7 % SHAPES[size][0]
    with torch.no_grad():
        expected = model(tokens).float().numpy()
        torch.export.save(torch.export.export(model, (tokens,)), path)
    np.save(path.with_suffix(".tokens.npy"), tokens.numpy())
    np.save(path.with_suffix(".expected.npy"), expected)


def status_of(pid):
    rows = {}
    try:
        for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name in ("RssAnon", "RssFile", "RssShmem", "VmHWM"):
                rows[name] = int(value.split()[0]) // 1024
    except (FileNotFoundError, ProcessLookupError):
        pass
    return rows


def measured(command):
    """Wall and CPU seconds, the most memory of each kind in MB, the exit code and what was said."""
    log = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"large_weights_{os.getpid()}.log"
    begin = time.monotonic()
    most = {}
    with log.open("w") as out:
        child = subprocess.Popen([str(c) for c in command], stdout=out, stderr=subprocess.STDOUT)
        while True:
            pid, code, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            for name, value in status_of(child.pid).items():
                most[name] = max(most.get(name, 0), value)
            time.sleep(0.003)
    child.returncode = code
    said = log.read_text()
    log.unlink()
    return {"wall": time.monotonic() - begin, "cpu": usage.ru_utime + usage.ru_stime, "system": usage.ru_stime,
            "peak": usage.ru_maxrss // 1024, "anonymous": most.get("RssAnon", 0), "mapped": most.get("RssFile", 0),
            "code": os.waitstatus_to_exitcode(code), "said": said}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tosaic", required=True)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("build/large"))
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--sizes", nargs="+", default=["60M", "250M"])
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16", "float16"])
    parser.add_argument("--targets", nargs="+", default=["tosa-fp", "vgf", "vulkan"])
    parser.add_argument("--keep", action="store_true", help="leave the models in the folder")
    parser.add_argument("--without-run", action="store_true")
    parser.add_argument("--make", nargs=2, metavar=("SIZE", "DTYPE"), help="make this model and stop")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if arguments.make:
        make(*arguments.make, arguments.folder / "{}_{}.pt2".format(*arguments.make))
        return
    lines = ["| model | command | s | CPU s | in the system | anonymous MB | mapped MB | peak MB | written MB |",
             "|---|---|---|---|---|---|---|---|---|"]
    print("\n".join(lines), flush=True)

    def row(name, what, command, written=None):
        m = measured(command)
        size = written.stat().st_size >> 20 if written and written.exists() else 0
        line = (f"| {name} | {what} | {m['wall']:.2f} | {m['cpu']:.2f} | {m['system']:.2f} | {m['anonymous']} | "
                f"{m['mapped']} | {m['peak']} | {size} |")
        if m["code"]:
            line += f" exit {m['code']}: " + m["said"].strip().replace("\n", " / ")[:300]
        lines.append(line)
        print(line, flush=True)
        return m["code"] == 0

    for size in arguments.sizes:
        for dtype in arguments.dtypes:
            model = arguments.folder / f"{size}_{dtype}.pt2"
            if not model.exists():  # in a process of its own, whose memory goes with it
                subprocess.run([sys.executable, __file__, "--tosaic", arguments.tosaic, "--folder", arguments.folder,
                                "--make", size, dtype], check=True, stderr=subprocess.DEVNULL)
            name = f"{size} {dtype}, {model.stat().st_size >> 20} MB"
            row(name, "inspect", [arguments.tosaic, "inspect", model])
            for target in arguments.targets:
                out = arguments.folder / f"{size}_{dtype}_{target}.pte"
                row(name, f"explain {target}", [arguments.tosaic, "explain", model, "--target", target])
                good = row(name, f"compile {target}", [arguments.tosaic, "compile", model, "--target", target, "-o", out], out)
                if good and not arguments.without_run:
                    row(name, f"run {target}", [arguments.tosaic, "run", out, "--input", model.with_suffix(".tokens.npy")])
                if not arguments.keep:
                    out.unlink(missing_ok=True)
            if not arguments.keep:
                for path in arguments.folder.glob(f"{size}_{dtype}*"):
                    path.unlink()
    if arguments.output:
        arguments.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
