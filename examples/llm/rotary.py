# SPDX-License-Identifier: Apache-2.0
"""Rotary positions as transformers computes them: by how far a position turns each pair of numbers of a head. What a rope
asks for and is not known here raises ValueError with its name."""
import math

import torch

# The numbers that decide each type; any may have `original_max_position_embeddings`, which only the last two read.
TYPES = {"default": (), "linear": ("factor",), "dynamic": ("factor",),
         "llama3": ("factor", "low_freq_factor", "high_freq_factor"), "yarn": ("factor",)}
OPTIONAL = {"yarn": ("attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate")}
ALWAYS = ("rope_type", "type", "rope_theta", "original_max_position_embeddings")


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value > 0


def checked(rope, longest=None):
    """`rope`, an entry of config.json, complete and with nothing in it that would be passed over. `longest`: the config's
    max_position_embeddings."""
    kind = next((rope[key] for key in ("rope_type", "type") if rope.get(key) is not None), "default")
    if not isinstance(kind, str) or kind not in TYPES:
        raise ValueError(f"rope_type {kind!r} is not done here, only {', '.join(TYPES)}")
    result = {"rope_type": kind, "longest": longest}
    for key, value in rope.items():
        if value is None or key == "partial_rotary_factor" and value == 1 or key in ("rope_type", "type"):
            continue
        if key not in ALWAYS + TYPES[kind] + OPTIONAL.get(kind, ()):
            raise ValueError(f"{key} = {str(value)[:60]} of a rope of type {kind!r} is not understood")
        if not (isinstance(value, bool) if key == "truncate" else is_number(value)):
            raise ValueError(f"{key} = {str(value)[:60]} of a rope of type {kind!r} is no number that makes sense")
        result[key] = value
    for key in ("rope_theta", *TYPES[kind]):
        if key not in result:
            raise ValueError(f"a rope of type {kind!r} has no {key}")
    if kind in ("llama3", "yarn") and result.setdefault("original_max_position_embeddings", longest) is None:
        raise ValueError(f"a rope of type {kind!r} has no original_max_position_embeddings")
    return result


def llama3(frequencies, rope):
    """Slow turns become slower yet, quick ones stay, and those between are something between."""
    factor, low, high = rope["factor"], rope["low_freq_factor"], rope["high_freq_factor"]
    turns = rope["original_max_position_embeddings"] * frequencies / (2 * math.pi)
    share = ((turns - low) / (high - low)).clamp(0, 1)
    return frequencies * (share + (1 - share) / factor)


def yarn(frequencies, rope, width):
    def place(turns):  # among the frequencies, of the one that turns so often within the original length
        ratio = rope["original_max_position_embeddings"] / (turns * 2 * math.pi)
        return width * math.log(ratio) / (2 * math.log(rope["rope_theta"]))

    low, high = place(rope.get("beta_fast", 32)), place(rope.get("beta_slow", 1))
    if rope.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, width - 1)
    slow = ((torch.arange(width // 2) - low) / (high - low or 0.001)).clamp(0, 1)
    return frequencies / rope["factor"] * slow + frequencies * (1 - slow)


def yarn_scale(rope):
    def scale(weight):
        return 0.1 * weight * math.log(rope["factor"]) + 1 if rope["factor"] > 1 else 1.0

    if "attention_factor" in rope:
        return rope["attention_factor"]
    if "mscale" in rope and "mscale_all_dim" in rope:
        return scale(rope["mscale"]) / scale(rope["mscale_all_dim"])
    return scale(1)


def tables(rope, width, context):
    """Cosines and sines [context, width] of a head that has `width` numbers."""
    frequencies = 1 / rope["rope_theta"] ** (torch.arange(0, width, 2) / width)
    scale, kind = 1.0, rope["rope_type"]
    if kind == "linear":
        frequencies = frequencies / rope["factor"]
    elif kind == "dynamic" and (rope["longest"] or 0) < context:
        # Behind that the frequencies hang on the number of tokens, and keys in the cache would have to be turned again.
        raise ValueError(f"a rope of type 'dynamic' is done for contexts up to max_position_embeddings = {rope['longest']}")
    elif kind == "llama3":
        frequencies = llama3(frequencies, rope)
    elif kind == "yarn":
        frequencies, scale = yarn(frequencies, rope, width), yarn_scale(rope)
    angles = torch.arange(context)[:, None] * torch.cat((frequencies, frequencies))
    return angles.cos() * scale, angles.sin() * scale
