# SPDX-License-Identifier: Apache-2.0
"""A language model, from PyTorch to generated text: exported as `prefill` and `decode` of one program with one cache,
compiled, run, and compared with PyTorch.

    python llm.py                                       # random weights
    python llm.py --checkpoint ~/smollm --text poem.txt --prompt "Once upon" --weights int4 --samples book.txt

A checkpoint is a folder with config.json and *.safetensors (Llama, Mistral, Qwen2, Qwen3, SmolLM, SmolLM3, the text of
Gemma3), and tokenizer.json where text is to be read, for which the package `tokenizers` is needed; else tokens are the
text's bytes.
"""
import argparse
import math
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from checkpoint import from_checkpoint  # noqa: E402
from decoder import Shape, random_decoder  # noqa: E402

import tosaic  # noqa: E402


MOST_SAMPLES = 8192  # tokens


class Bytes:
    def encode(self, text):
        return list(text.encode())

    def decode(self, tokens):
        return bytes(t for t in tokens if t < 256).decode(errors="replace")


class Tokens:
    def __init__(self, file):
        from tokenizers import Tokenizer
        self.all = Tokenizer.from_file(str(file))

    def encode(self, text):
        return self.all.encode(text).ids

    def decode(self, tokens):
        return self.all.decode(tokens)


def exported(model, tokens):
    """The program for `tokens` at once."""
    inputs = torch.zeros(1, tokens, dtype=torch.int64), torch.arange(tokens)
    with torch.no_grad():
        return torch.export.export(model, inputs, strict=False)


def compiled(model, sizes, samples=(), **options):
    """Its program: `decode` takes one token; `prefill`, `prefill_16` and so on take as many as `sizes` say, the most first.
    All write one cache. Weights of 4 bits are rounded on `samples`, tokens as they are met: what the first method reads of
    them says it for all."""
    sizes = sorted({min(size, model.shape.context) for size in sizes} - {1}, reverse=True)
    methods = {f"prefill_{size}" if i else "prefill": exported(model, size) for i, size in enumerate(sizes)}
    if sizes and len(samples) >= sizes[0]:
        parts = [samples[i:i + sizes[0]] for i in range(0, len(samples) - sizes[0] + 1, sizes[0])]
        options["calibration"] = {"prefill": [(torch.tensor([part]), torch.arange(sizes[0])) for part in parts]}
    return tosaic.compile(methods | {"decode": exported(model, 1)}, target="tosa-fp", **options)


class Runner:
    """Runs such a program: any number of tokens in few runs."""

    def __init__(self, artifact):
        self.artifact = artifact
        self.forget()

    def forget(self):
        first = self.artifact.session()
        methods = [first, *(first.method(name) for name in first.methods[1:])]
        self.methods = {method.inputs[0].sizes[1]: method for method in methods}
        self.seen = []

    def __call__(self, tokens):
        """Logits of `tokens`, which follow those that were given before."""
        done, logits = len(self.seen), []
        self.seen = self.seen + list(tokens)
        while done < (end := len(self.seen)):
            count = max(size for size in self.methods if size <= end - done)
            if count == 1 < end - done:
                count = min((size for size in self.methods if size > 1), default=1)
            # Where fewer are left than a method takes, it begins earlier, with tokens that the cache holds already and gets
            # once more; where there are none before, what it takes more is written behind them and overwritten in time.
            first = max(0, min(done, end - count))
            part = self.seen[first:first + count]
            part += [0] * (count - len(part))
            rows = self.methods[count].run(torch.tensor([part]), torch.arange(first, first + count))
            logits.append(rows[:, done - first:end - first])
            done = min(first + count, end)
        return torch.cat(logits, 1)


def perplexity(logits, tokens):
    return math.exp(torch.nn.functional.cross_entropy(logits[0, :-1], torch.tensor(tokens[1:])).item())


def generate(run, prompt, count):
    tokens = list(prompt)
    logits = run(tokens)
    for i in range(count):
        tokens.append(int(logits[0, -1].argmax()))
        if i + 1 < count:  # nothing is asked behind the last one
            logits = run(tokens[-1:])
    return tokens[len(prompt):]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", type=pathlib.Path, help="a folder; else weights are random")
    parser.add_argument("--context", type=int, default=128, help="tokens that the cache holds")
    parser.add_argument("--at-once", type=lambda text: [int(size) for size in text.split(",")], default=[128, 16],
                        help="tokens of a prompt that are taken together, a method for each: 128,16")
    parser.add_argument("--weights", default="", help="int8 or int4: codes, in groups of 32")
    parser.add_argument("--quantize", default="", help="dynamic-int8: activations, too")
    parser.add_argument("--kv", default="", help="int8: keys and values in 8 bits, a scale for each row")
    parser.add_argument("--samples", type=pathlib.Path,
                        help="a text on which weights of 4 bits are rounded, not that of --text")
    parser.add_argument("--prompt", default="The quick brown fox")
    parser.add_argument("--tokens", type=int, default=16, help="to generate")
    parser.add_argument("--text", type=pathlib.Path, help="a text for the perplexity; else a few sentences")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("llm.pte"))
    args = parser.parse_args(arguments)

    model = from_checkpoint(args.checkpoint, args.context) if args.checkpoint else random_decoder(
        Shape(context=args.context))
    file = args.checkpoint and args.checkpoint / "tokenizer.json"
    tokenizer = Tokens(file) if file and file.exists() else Bytes()
    options = {name: getattr(args, name) for name in ("weights", "quantize", "kv") if getattr(args, name)}
    samples = tokenizer.encode(args.samples.read_text())[:MOST_SAMPLES] if args.samples else []
    artifact = compiled(model, args.at_once, samples, **options)
    artifact.save(args.output)
    print(f"{args.output}: {args.output.stat().st_size / 1e6:.1f} MB")
    run = Runner(artifact)

    text = args.text.read_text() if args.text else "It was a bright cold day, and the clocks were striking. " * 3
    tokens = tokenizer.encode(text)[:args.context]
    model.forget()
    with torch.no_grad():
        wanted = model(torch.tensor([tokens]), torch.arange(len(tokens)))
    got = run(tokens)
    print(f"perplexity of {len(tokens)} tokens: {perplexity(got, tokens):.4f}, PyTorch {perplexity(wanted, tokens):.4f}")
    run.forget()
    prompt = tokenizer.encode(args.prompt)[:args.context - args.tokens]
    print(args.prompt + tokenizer.decode(generate(run, prompt, args.tokens)))


if __name__ == "__main__":
    main()
