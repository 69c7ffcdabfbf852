# SPDX-License-Identifier: Apache-2.0
"""A Llama-style decoder that writes its key/value cache in place: rotary positions, grouped heads, RMS norms, SwiGLU. Its
parameters have the names that checkpoints of Llama, Mistral, Qwen2 and SmolLM have, so these load as they are."""
import dataclasses
import json
import pathlib

import numpy as np
import torch
from torch import nn


@dataclasses.dataclass
class Shape:
    vocab_size: int = 512
    hidden_size: int = 128
    intermediate_size: int = 384
    num_hidden_layers: int = 2
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-5
    attention_bias: bool = False
    tie_word_embeddings: bool = False
    head_dim: int = 0
    context: int = 128  # tokens that the cache holds

    def __post_init__(self):
        self.head_dim = self.head_dim or self.hidden_size // self.num_attention_heads


class RMSNorm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


class Attention(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.heads, self.groups, self.width = s.num_attention_heads, s.num_key_value_heads, s.head_dim
        self.q_proj = nn.Linear(s.hidden_size, self.heads * self.width, bias=s.attention_bias)
        self.k_proj = nn.Linear(s.hidden_size, self.groups * self.width, bias=s.attention_bias)
        self.v_proj = nn.Linear(s.hidden_size, self.groups * self.width, bias=s.attention_bias)
        self.o_proj = nn.Linear(self.heads * self.width, s.hidden_size, bias=False)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(self.groups, s.context, self.width), persistent=False)

    def forward(self, x, positions, cos, sin, hidden):
        tokens, repeats = x.shape[1], self.heads // self.groups

        def split(y):
            return y.view(tokens, -1, self.width).transpose(0, 1)

        def rotated(y):
            a, b = y.chunk(2, -1)
            return y * cos + torch.cat((-b, a), -1) * sin

        self.keys.index_copy_(1, positions, rotated(split(self.k_proj(x))))
        self.values.index_copy_(1, positions, split(self.v_proj(x)))
        # The heads of a group are rows beside each other, so that keys and values are read where they lie.
        q = rotated(split(self.q_proj(x))).reshape(self.groups, repeats * tokens, self.width)
        scores = q @ self.keys.transpose(1, 2) * self.width**-0.5
        scores = scores.view(self.groups, repeats, tokens, -1) + hidden
        y = torch.softmax(scores, -1).view(self.groups, repeats * tokens, -1) @ self.values
        return self.o_proj(y.view(self.heads, tokens, self.width).transpose(0, 1).reshape(1, tokens, -1))


class MLP(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.gate_proj = nn.Linear(s.hidden_size, s.intermediate_size, bias=False)
        self.up_proj = nn.Linear(s.hidden_size, s.intermediate_size, bias=False)
        self.down_proj = nn.Linear(s.intermediate_size, s.hidden_size, bias=False)

    def forward(self, x):
        return self.down_proj(nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.self_attn, self.mlp = Attention(s), MLP(s)
        self.input_layernorm = RMSNorm(s.hidden_size, s.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(s.hidden_size, s.rms_norm_eps)

    def forward(self, x, *places):
        x = x + self.self_attn(self.input_layernorm(x), *places)
        return x + self.mlp(self.post_attention_layernorm(x))


class Layers(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.embed_tokens = nn.Embedding(s.vocab_size, s.hidden_size)
        self.layers = nn.ModuleList(Layer(s) for _ in range(s.num_hidden_layers))
        self.norm = RMSNorm(s.hidden_size, s.rms_norm_eps)


class Decoder(nn.Module):
    """forward(tokens [1, T], positions [T]) gives logits [1, T, vocabulary], or of the last token alone."""

    def __init__(self, shape, last_alone=False):
        super().__init__()
        self.shape, self.last_alone = shape, last_alone
        self.model = Layers(shape)
        self.lm_head = nn.Linear(shape.hidden_size, shape.vocab_size, bias=False)
        angles = shape.rope_theta ** (-torch.arange(0, shape.head_dim, 2) / shape.head_dim)
        angles = torch.arange(shape.context)[:, None] * torch.cat((angles, angles))
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        # By a token's position: 0 for the keys up to it, very low for those behind it.
        self.register_buffer("hidden", torch.full((shape.context, shape.context), -1e9).triu(1), persistent=False)

    def forward(self, tokens, positions):
        x = self.model.embed_tokens(tokens)
        places = [table.index_select(0, positions) for table in (self.cos, self.sin, self.hidden)]
        for layer in self.model.layers:
            x = layer(x, positions, *places)
        return self.lm_head(self.model.norm(x[:, -1:] if self.last_alone else x))

    def forget(self):
        for layer in self.model.layers:
            layer.self_attn.keys.zero_()
            layer.self_attn.values.zero_()


def random_decoder(shape, seed=0):
    torch.manual_seed(seed)
    model = Decoder(shape)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.normal_(0, 0.04) if p.dim() > 1 else p.fill_(1) if "norm" in name else p.zero_()
    return model.eval()


# What such a file begins with: the length of a JSON header, which says of each tensor its type, shape and place.
TYPES = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16}


def tensors_in(path):
    data = np.memmap(path, np.uint8, "r")
    length = int(data[:8].view(np.uint64)[0])
    for name, entry in json.loads(data[8:8 + length].tobytes()).items():
        if name == "__metadata__":
            continue
        if entry["dtype"] not in TYPES:
            raise SystemExit(f"{path}: {name} has type {entry['dtype']}; F32, F16 and BF16 are read")
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        array = np.array(data[begin:end]).view(TYPES[entry["dtype"]]).reshape(entry["shape"])
        if entry["dtype"] == "BF16":
            array = (array.astype(np.uint32) << 16).view(np.float32)
        yield name, torch.from_numpy(array.astype(np.float32))


def from_checkpoint(folder, context):
    """config.json and *.safetensors, as transformers saves them."""
    folder = pathlib.Path(folder)
    if not (folder / "config.json").exists():
        raise SystemExit(f"{folder} has no config.json: give the folder that save_pretrained wrote")
    config = json.loads((folder / "config.json").read_text())
    known = {field.name for field in dataclasses.fields(Shape)}
    shape = Shape(**{k: v for k, v in config.items() if k in known and v is not None}, context=context)
    shape.attention_bias = shape.attention_bias or config.get("model_type") == "qwen2"
    if config.get("rope_scaling"):
        raise SystemExit(f"{folder}: rope_scaling is not done here")
    model = Decoder(shape).eval()
    weights = {name: tensor for file in sorted(folder.glob("*.safetensors")) for name, tensor in tensors_in(file)}
    if shape.tie_word_embeddings or "lm_head.weight" not in weights:
        weights["lm_head.weight"] = weights.get("model.embed_tokens.weight")
    wrong = [f"{name} {list(p.shape)}" for name, p in model.state_dict().items()
             if weights.get(name) is None or weights[name].shape != p.shape]
    unread = sorted(set(weights) - set(model.state_dict()))
    if wrong or unread:
        raise SystemExit(f"{folder} is no such decoder: it lacks {wrong[:3]}, and has {unread[:3]} beside")
    model.load_state_dict(weights)
    return model
