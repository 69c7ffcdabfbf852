# SPDX-License-Identifier: Apache-2.0
"""A language model, from PyTorch to generated text: exported as `prefill` and `decode` of one program with one cache,
compiled, run, and compared with PyTorch.

    python llm.py                                       # random weights
    python llm.py --checkpoint ~/smollm --text poem.txt --prompt "Once upon" --weights int4

A checkpoint is a folder with config.json and *.safetensors (Llama, Mistral, Qwen2, SmolLM), and tokenizer.json where text is
to be read, for which the package `tokenizers` is needed; else tokens are the text's bytes.
"""
import argparse
import math
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from decoder import Shape, from_checkpoint, random_decoder  # noqa: E402

import tosaic  # noqa: E402


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


class Compiled:
    """`prefill` takes so many tokens at once, `decode` one; both write one cache."""

    def __init__(self, artifact, at_once):
        self.artifact, self.at_once = artifact, at_once
        self.forget()

    def forget(self):
        self.prefill = self.artifact.session()
        self.decode = self.prefill.method("decode")

    def __call__(self, tokens, first=0):
        """Logits of `tokens`, which stand at `first` and behind it."""
        logits = []
        while tokens:
            count = self.at_once if len(tokens) >= self.at_once else 1
            method = self.prefill if count > 1 else self.decode
            logits.append(method.run(torch.tensor([tokens[:count]]), torch.arange(first, first + count)))
            tokens, first = tokens[count:], first + count
        return torch.cat(logits, 1)


def perplexity(logits, tokens):
    return math.exp(torch.nn.functional.cross_entropy(logits[0, :-1], torch.tensor(tokens[1:])).item())


def generate(run, prompt, count):
    tokens = list(prompt)
    logits = run(tokens)
    for _ in range(count):
        tokens.append(int(logits[0, -1].argmax()))
        logits = run(tokens[-1:], len(tokens) - 1)
    return tokens[len(prompt):]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", type=pathlib.Path, help="a folder; else weights are random")
    parser.add_argument("--context", type=int, default=128, help="tokens that the cache holds")
    parser.add_argument("--at-once", type=int, default=16, help="tokens of a prompt that prefill takes together")
    parser.add_argument("--weights", default="", help="int8 or int4: codes, in groups of 32")
    parser.add_argument("--quantize", default="", help="dynamic-int8: activations, too")
    parser.add_argument("--prompt", default="The quick brown fox")
    parser.add_argument("--tokens", type=int, default=16, help="to generate")
    parser.add_argument("--text", type=pathlib.Path, help="a text for the perplexity; else a few sentences")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("llm.pte"))
    args = parser.parse_args(arguments)

    model = from_checkpoint(args.checkpoint, args.context) if args.checkpoint else random_decoder(
        Shape(context=args.context))
    file = args.checkpoint and args.checkpoint / "tokenizer.json"
    tokenizer = Tokens(file) if file and file.exists() else Bytes()
    options = {name: value for name, value in (("weights", args.weights), ("quantize", args.quantize)) if value}
    artifact = tosaic.compile({"prefill": exported(model, args.at_once), "decode": exported(model, 1)},
                              target="tosa-fp", **options)
    artifact.save(args.output)
    print(f"{args.output}: {args.output.stat().st_size / 1e6:.1f} MB")
    run = Compiled(artifact, args.at_once)

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
