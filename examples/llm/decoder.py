# SPDX-License-Identifier: Apache-2.0
"""A decoder that writes its key/value cache in place: rotary positions, grouped heads, RMS norms, gated MLPs; what Llama,
Mistral, Qwen, SmolLM and Gemma do differently are fields of its Shape. Its parameters have the names that checkpoints of
these have (checkpoint.py)."""
import dataclasses

import torch
from rotary import tables
from torch import nn

# By the names that transformers has for them.
ACTIVATIONS = {"silu": nn.functional.silu, "gelu": nn.functional.gelu,
               "gelu_pytorch_tanh": lambda x: nn.functional.gelu(x, approximate="tanh")}
ROPE = {"rope_type": "default", "rope_theta": 10000.0}


@dataclasses.dataclass
class Shape:
    vocab_size: int = 512
    hidden_size: int = 128
    intermediate_size: int = 384
    num_hidden_layers: int = 2
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 0  # 0: the hidden size, shared among the heads
    context: int = 128  # tokens that the cache holds
    rms_norm_eps: float = 1e-5
    activation: str = "silu"
    attention_bias: bool = False  # of queries, keys and values
    output_bias: bool = False  # of what attention gives
    mlp_bias: bool = False
    tie_word_embeddings: bool = False
    query_key_norms: bool = False
    norms_behind: bool = False  # what attention and MLP give has norms, too, before it is added
    embedding_scale: float = 1.0
    score_scale: float = 0.0  # 0: one over the root of head_dim
    # By layer: the tokens that one sees, itself counted, 0 for all; and the rope, None for no positions.
    windows: tuple = ()
    ropes: tuple = ()

    def __post_init__(self):
        self.head_dim = self.head_dim or self.hidden_size // self.num_attention_heads
        self.score_scale = self.score_scale or self.head_dim**-0.5
        self.windows = self.windows or (0,) * self.num_hidden_layers
        self.ropes = self.ropes or (ROPE,) * self.num_hidden_layers


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
        self.scale = s.score_scale
        self.q_proj = nn.Linear(s.hidden_size, self.heads * self.width, bias=s.attention_bias)
        self.k_proj = nn.Linear(s.hidden_size, self.groups * self.width, bias=s.attention_bias)
        self.v_proj = nn.Linear(s.hidden_size, self.groups * self.width, bias=s.attention_bias)
        self.o_proj = nn.Linear(self.heads * self.width, s.hidden_size, bias=s.output_bias)
        if s.query_key_norms:
            self.q_norm, self.k_norm = (RMSNorm(self.width, s.rms_norm_eps) for _ in range(2))
        else:
            self.q_norm, self.k_norm = nn.Identity(), nn.Identity()
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(self.groups, s.context, self.width), persistent=False)

    def forward(self, x, positions, rope, hidden):
        tokens, repeats = x.shape[1], self.heads // self.groups

        def split(y):
            return y.view(tokens, -1, self.width).transpose(0, 1)

        def rotated(y):
            if rope is None:
                return y
            a, b = y.chunk(2, -1)
            return y * rope[0] + torch.cat((-b, a), -1) * rope[1]

        self.keys.index_copy_(1, positions, rotated(self.k_norm(split(self.k_proj(x)))))
        self.values.index_copy_(1, positions, split(self.v_proj(x)))
        # The heads of a group are rows beside each other, so that keys and values are read where they lie.
        q = rotated(self.q_norm(split(self.q_proj(x)))).reshape(self.groups, repeats * tokens, self.width)
        scores = q @ self.keys.transpose(1, 2) * self.scale
        scores = scores.view(self.groups, repeats, tokens, -1) + hidden
        y = torch.softmax(scores, -1).view(self.groups, repeats * tokens, -1) @ self.values
        return self.o_proj(y.view(self.heads, tokens, self.width).transpose(0, 1).reshape(1, tokens, -1))


class MLP(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.activation = ACTIVATIONS[s.activation]
        self.gate_proj = nn.Linear(s.hidden_size, s.intermediate_size, bias=s.mlp_bias)
        self.up_proj = nn.Linear(s.hidden_size, s.intermediate_size, bias=s.mlp_bias)
        self.down_proj = nn.Linear(s.intermediate_size, s.hidden_size, bias=s.mlp_bias)

    def forward(self, x):
        return self.down_proj(self.activation(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.self_attn, self.mlp, self.norms_behind = Attention(s), MLP(s), s.norms_behind
        names = ["input_layernorm", "post_attention_layernorm"]
        if s.norms_behind:
            names += ["pre_feedforward_layernorm", "post_feedforward_layernorm"]
        for name in names:
            setattr(self, name, RMSNorm(s.hidden_size, s.rms_norm_eps))

    def forward(self, x, *places):
        y = self.self_attn(self.input_layernorm(x), *places)
        if self.norms_behind:
            x = x + self.post_attention_layernorm(y)
            return x + self.post_feedforward_layernorm(self.mlp(self.pre_feedforward_layernorm(x)))
        x = x + y
        return x + self.mlp(self.post_attention_layernorm(x))  # so it is called, for it stands behind attention


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
        if shape.tie_word_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight
        # Layers that are alike read the same tables, by a token's position.
        self.windows = [0 if window >= shape.context else window for window in shape.windows]
        self.kinds = [rope for i, rope in enumerate(shape.ropes) if rope is not None and rope not in shape.ropes[:i]]
        for i, rope in enumerate(self.kinds):
            for name, table in zip(("cos", "sin"), tables(rope, shape.head_dim, shape.context)):
                self.register_buffer(f"{name}_{i}", table, persistent=False)
        # 0 for the keys that it sees, very low for those behind it and those that have left the window.
        behind = torch.ones(shape.context, shape.context, dtype=torch.bool).triu(1)
        for window in set(self.windows):
            unseen = behind | ~behind.new_ones(behind.shape).triu(1 - window) if window else behind
            self.register_buffer(f"hidden_{window}", torch.where(unseen, -1e9, 0.0), persistent=False)

    def forward(self, tokens, positions):
        def at_positions(table):
            return getattr(self, table).index_select(0, positions)

        x = self.model.embed_tokens(tokens)
        if self.shape.embedding_scale != 1:
            x = x * self.shape.embedding_scale
        ropes = [(at_positions(f"cos_{i}"), at_positions(f"sin_{i}")) for i in range(len(self.kinds))]
        hidden = {window: at_positions(f"hidden_{window}") for window in sorted(set(self.windows))}
        for layer, window, rope in zip(self.model.layers, self.windows, self.shape.ropes):
            x = layer(x, positions, None if rope is None else ropes[self.kinds.index(rope)], hidden[window])
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
