# SPDX-License-Identifier: Apache-2.0
"""Checkpoints as transformers saves them, a config.json and *.safetensors, become a Decoder. What a config says is
understood, or known to decide no number, or refused by its name; so is what the files do not hold."""
import dataclasses
import json
import pathlib
import typing

import numpy as np
import torch
from decoder import ACTIVATIONS, Decoder, Shape
from rotary import checked, is_number

NEEDED = object()
SIZES = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
         "num_key_value_heads", "head_dim")
COUNTS = (*SIZES, "max_position_embeddings", "sliding_window", "sliding_window_pattern", "max_window_layers",
          "no_rope_layer_interval")
SWITCHES = ("attention_bias", "mlp_bias", "tie_word_embeddings", "use_sliding_window")
SLIDING, FULL = "sliding_attention", "full_attention"


@dataclasses.dataclass
class Family:
    """`keys` of its config.json that decide numbers, and what transformers takes where one is left out; `slides` says
    whether a layer has a window where `layer_types` does not."""
    keys: dict
    slides: typing.Callable = lambda c, layer: False


KEYS = dict.fromkeys(SIZES, NEEDED) | {
    "head_dim": None, "hidden_act": "silu", "rms_norm_eps": 1e-6, "tie_word_embeddings": False, "layer_types": None,
    "max_position_embeddings": None, "rope_theta": 10000.0, "rope_scaling": None, "rope_parameters": None}
BIASES = {"attention_bias": False, "mlp_bias": False}
QWEN = KEYS | {"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28}


def slides_in_qwen(c, layer):
    return c["use_sliding_window"] and layer >= c["max_window_layers"]


def slides_in_smollm3(c, layer):
    return c["use_sliding_window"] and c["sliding_window"] is not None and not c["no_rope_layers"][layer]


FAMILIES = {
    "llama": Family(KEYS | BIASES | {"num_key_value_heads": None}),
    "mistral": Family(KEYS | {"sliding_window": 4096}, lambda c, layer: c["sliding_window"] is not None),
    "qwen2": Family(QWEN, slides_in_qwen),
    "qwen3": Family(QWEN | {"head_dim": 128, "attention_bias": False}, slides_in_qwen),
    "smollm3": Family(
        KEYS | BIASES | {"tie_word_embeddings": True, "rope_theta": 2e6, "use_sliding_window": False, "sliding_window": None,
                         "no_rope_layers": None, "no_rope_layer_interval": 4}, slides_in_smollm3),
    "gemma3_text": Family(
        {key: value for key, value in KEYS.items() if key != "hidden_act"} | {
            "hidden_activation": "gelu_pytorch_tanh", "head_dim": 256, "attention_bias": False, "tie_word_embeddings": True,
            "rope_theta": 1e6, "rope_local_base_freq": 1e4, "query_pre_attn_scalar": 256, "sliding_window": 4096,
            "sliding_window_pattern": 6},
        lambda c, layer: (layer + 1) % c["sliding_window_pattern"] != 0)}

# What trains a model, where text comes from and goes to, types of numbers (all is float32 here), who wrote the file.
HARMLESS = set("""
    _attn_implementation_autoset _name_or_path _sliding_window_pattern architectures attention_dropout bos_token_id
    cache_implementation dtype eos_token_id id2label initializer_range is_llama_config label2id max_window_layers model_type
    name_or_path output_attentions output_hidden_states pad_token_id pretraining_tp problem_type return_dict torch_dtype
    torchscript transformers.js_config transformers_version unsloth_fixed unsloth_version use_cache""".split())
# What decides nothing as long as it says this.
HARMLESS_AS = {"attention_bias": False, "mlp_bias": False, "is_decoder": False, "is_encoder_decoder": False,
               "add_cross_attention": False, "chunk_size_feed_forward": 0, "is_causal": True, "partial_rotary_factor": 1,
               "rope_interleaved": False, "tie_encoder_decoder": False, "use_bidirectional_attention": False,
               "use_mrope": False, "use_sliding_window": False}


def understood(config):
    """The family of a config, and what it says or leaves to transformers."""
    if not isinstance(config, dict):
        raise ValueError("it is no object")
    name = config.get("model_type")
    if not isinstance(name, str) or name not in FAMILIES:
        raise ValueError(f"model_type {name!r} is not done here, only {', '.join(FAMILIES)}")
    keys = FAMILIES[name].keys
    architectures = config.get("architectures") or []
    if str(architectures).lower() not in ("[]", f"['{name.removesuffix('_text')}forcausallm']"):
        raise ValueError(f"architectures = {json.dumps(architectures)[:60]} are not done here, only {name}'s for tokens")
    unknown = [f"{key} = {json.dumps(value)[:60]}" for key, value in config.items()
               if key not in keys and key not in HARMLESS and value is not None
               and (key not in HARMLESS_AS or value != HARMLESS_AS[key])]
    if unknown:
        raise ValueError(f"not understood in a {name}: {', '.join(unknown)}")
    c = {key: config.get(key, value) for key, value in keys.items()}
    missing = [key for key, value in c.items() if value is NEEDED]
    if missing:
        raise ValueError(f"it has no {', '.join(missing)}")
    if c["num_key_value_heads"] is None:
        c["num_key_value_heads"] = c["num_attention_heads"]
    for key in set(COUNTS) & set(c):
        if c[key] is None and (keys[key] is None or key == "sliding_window") or key == "max_window_layers" and c[key] == 0:
            continue
        if not isinstance(c[key], int) or not is_number(c[key]):
            raise ValueError(f"{key} = {json.dumps(c[key])[:60]} is no size")
    for key in set(SWITCHES) & set(c):
        if c[key] is not None and not isinstance(c[key], bool):
            raise ValueError(f"{key} = {json.dumps(c[key])[:60]} is neither true nor false")
    for key in ("rms_norm_eps", "query_pre_attn_scalar"):
        if key in c and not is_number(c[key]):
            raise ValueError(f"{key} = {json.dumps(c[key])[:60]} is no number that makes sense")
    if c["num_attention_heads"] % c["num_key_value_heads"]:
        raise ValueError("num_attention_heads is no multiple of num_key_value_heads")
    return name, c


def kinds_of_layers(name, c):
    """Of each layer, by its name in `layer_types`."""
    count = c["num_hidden_layers"]
    if "no_rope_layers" in c:
        if c["no_rope_layers"] is None:
            c["no_rope_layers"] = [int((i + 1) % c["no_rope_layer_interval"] != 0) for i in range(count)]
        if not isinstance(c["no_rope_layers"], list) or len(c["no_rope_layers"]) < count:
            raise ValueError(f"no_rope_layers is no list of {count}")
    if name in ("qwen2", "qwen3") and not c["use_sliding_window"]:
        c["sliding_window"] = None
    slides = FAMILIES[name].slides
    usual = [SLIDING if slides(c, i) else FULL for i in range(count)]
    kinds = usual if c["layer_types"] is None else c["layer_types"]
    if not isinstance(kinds, list) or len(kinds) != count or any(kind not in (SLIDING, FULL) for kind in kinds):
        raise ValueError(f"layer_types are not {count} of {FULL} and {SLIDING}: {json.dumps(kinds)[:200]}")
    # These two do not read it in transformers.
    if name in ("llama", "mistral") and kinds != usual:
        raise ValueError(f"layer_types say something else than {name} does: {json.dumps(kinds)[:200]}")
    if SLIDING in kinds and c.get("sliding_window") is None:
        raise ValueError("layer_types ask for windows, and there is no sliding_window")
    return kinds


def ropes_of_layers(name, c, kinds):
    new, old = c["rope_parameters"], c["rope_scaling"]
    if new and old:
        raise ValueError("both rope_parameters and rope_scaling are set")
    for key in ("rope_parameters", "rope_scaling"):
        if c[key] is not None and not isinstance(c[key], dict):
            raise ValueError(f"{key} is no object")
    theta = {FULL: c["rope_theta"], SLIDING: c.get("rope_local_base_freq", c["rope_theta"])}
    if name == "gemma3_text":  # an old file's scaling is for layers without window
        given = new or {FULL: old}
        if set(given) - {FULL, SLIDING}:
            raise ValueError(f"rope_parameters are not understood: {', '.join(sorted(set(given) - {FULL, SLIDING}))}")
    else:
        given = {FULL: new or old, SLIDING: new or old}
    ropes = {}
    for kind in (FULL, SLIDING):
        rope = {} if given.get(kind) is None else given[kind]
        if not isinstance(rope, dict):
            raise ValueError(f"rope_parameters of {kind} are no object")
        ropes[kind] = checked({"rope_theta": theta[kind]} | rope, c["max_position_embeddings"])
    positions = c.get("no_rope_layers") or [1] * len(kinds)
    return tuple(ropes[kind] if has else None for kind, has in zip(kinds, positions))


def shape_of(config, context):
    """The Shape that a config.json describes; ValueError where it is not understood."""
    name, c = understood(config)
    gemma = name == "gemma3_text"
    activation = c["hidden_activation" if gemma else "hidden_act"]
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise ValueError(f"activation {activation!r} is not done here, only {', '.join(ACTIVATIONS)}")
    kinds = kinds_of_layers(name, c)
    sizes = {key: c[key] or 0 for key in SIZES}
    if not sizes["head_dim"] and c["hidden_size"] % c["num_attention_heads"]:
        raise ValueError("hidden_size is no multiple of num_attention_heads, and there is no head_dim")
    if (sizes["head_dim"] or c["hidden_size"] // c["num_attention_heads"]) % 2:
        raise ValueError("the size of a head is odd")
    return Shape(
        **sizes, context=context, rms_norm_eps=c["rms_norm_eps"], activation=activation,
        attention_bias=name == "qwen2" or bool(c.get("attention_bias")), output_bias=bool(c.get("attention_bias")),
        mlp_bias=bool(c.get("mlp_bias")), tie_word_embeddings=bool(c["tie_word_embeddings"]),
        query_key_norms=name in ("qwen3", "gemma3_text"), norms_behind=gemma,
        embedding_scale=c["hidden_size"]**0.5 if gemma else 1.0, score_scale=c["query_pre_attn_scalar"]**-0.5 if gemma else 0.0,
        windows=tuple(c["sliding_window"] if kind == SLIDING else 0 for kind in kinds), ropes=ropes_of_layers(name, c, kinds))


# What such a file begins with: the length of a JSON header, which says of each tensor its type, shape and place.
TYPES = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16}


def tensors_in(path):
    try:
        data = np.memmap(path, np.uint8, "r")
        length = int(data[:8].view(np.uint64)[0])
        header = json.loads(data[8:8 + length].tobytes())
        entries = [(name, entry["dtype"], tuple(map(int, entry["shape"])), *map(int, entry["data_offsets"]))
                   for name, entry in header.items() if name != "__metadata__"]
    except (ValueError, LookupError, TypeError, AttributeError) as why:
        raise SystemExit(f"{path} is no safetensors file: {why}") from None
    for name, kind, shape, begin, end in entries:
        if kind not in TYPES:
            raise SystemExit(f"{path}: {name} has type {kind}; F32, F16 and BF16 are read")
        array = np.array(data[8 + length + begin:8 + length + end])
        if len(array) != end - begin or len(array) != np.prod(shape, dtype=np.int64) * np.dtype(TYPES[kind]).itemsize:
            raise SystemExit(f"{path}: {name} {list(shape)} does not have its bytes, the file was cut off perhaps")
        array = array.view(TYPES[kind]).reshape(shape)
        if kind == "BF16":
            array = (array.astype(np.uint32) << 16).view(np.float32)
        yield name, torch.from_numpy(array.astype(np.float32))


def files_of(folder):
    """Those that transformers reads: one file, or those of an index."""
    one, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if one.exists():
        return [one]
    if not index.exists():
        raise SystemExit(f"{folder} has neither {one.name} nor {index.name}")
    try:
        files = [folder / name for name in sorted(set(json.loads(index.read_text())["weight_map"].values()))]
    except (ValueError, LookupError, TypeError, AttributeError) as why:
        raise SystemExit(f"{index} is no index of tensors: {why}") from None
    for file in files:
        if not file.exists():
            raise SystemExit(f"{index} speaks of {file.name}, which is not there")
    return files


def from_checkpoint(folder, context):
    """The Decoder of a folder that save_pretrained wrote."""
    folder = pathlib.Path(folder)
    path = folder / "config.json"
    if not path.exists():
        raise SystemExit(f"{folder} has no config.json: give the folder that save_pretrained wrote")
    try:
        config = json.loads(path.read_text())
        model = Decoder(shape_of(config, context)).eval()
    except ValueError as why:
        raise SystemExit(f"{path}: {why}") from None
    weights, head, own_head, files = model.state_dict(), "lm_head.weight", None, files_of(folder)
    missing = set(weights) - ({head} if model.shape.tie_word_embeddings else set())
    for file in files:
        for name, tensor in tensors_in(file):
            if name.endswith("rotary_emb.inv_freq"):  # of old Llamas, computed from the config
                continue
            if name not in weights:
                raise SystemExit(f"{file}: {name} {list(tensor.shape)} is no part of a {config['model_type']} as {path} has it")
            if tensor.shape != weights[name].shape:
                raise SystemExit(f"{file}: {name} is {list(tensor.shape)}, and {path} makes it {list(weights[name].shape)}")
            if config["model_type"] == "gemma3_text" and "norm" in name:
                tensor = tensor + 1  # these norms multiply by that
            if name == head and model.shape.tie_word_embeddings:
                own_head = file, tensor
                continue
            weights[name].copy_(tensor)
            missing.discard(name)
    if missing:
        raise SystemExit(f"{', '.join(file.name for file in files)} of {folder}: no {', '.join(sorted(missing)[:4])}"
                         + (f" and {len(missing) - 4} more" if len(missing) > 4 else ""))
    # transformers 5 reads such a file as two matrices, 4 as one.
    if own_head and not torch.equal(own_head[1], weights[head]):
        raise SystemExit(f"{own_head[0]}: {head} is not the embedding, and {path} says tie_word_embeddings")
    return model
