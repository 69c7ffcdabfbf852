# SPDX-License-Identifier: Apache-2.0
"""examples/llm reads checkpoints as transformers does: its own models with random weights, saved by it, give the same logits
in the example's decoder and in the program compiled of it; what a checkpoint says beyond that is refused by name."""
import json
import math
import os
import pathlib
import sys

import pytest
import torch

os.environ["HF_HUB_OFFLINE"] = "1"
import transformers  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples/llm"))
import checkpoint  # noqa: E402
import llm  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

SMALL = {"vocab_size": 300, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 256, "pad_token_id": 0}
CONTEXT = 48
IDS = torch.randint(0, 300, (1, CONTEXT), generator=torch.Generator().manual_seed(1))
CLASSES = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3", "smollm3": "SmolLM3",
           "gemma3_text": "Gemma3"}
BY_LAYER = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 8}


def rope(kind="default", theta=1e4, **more):
    return {"rope_type": kind, "rope_theta": theta, **more}


LLAMA3 = rope("llama3", 5e5, factor=8.0, high_freq_factor=4.0, low_freq_factor=1.0, original_max_position_embeddings=64)
COMPILED = {
    "llama": ("llama", {"rope_parameters": rope(theta=5e5)}),
    "llama 3.1": ("llama", {"rope_parameters": LLAMA3}),
    "mistral, a window": ("mistral", {"sliding_window": 8}),
    "qwen3": ("qwen3", {"head_dim": 32, "rope_parameters": rope(theta=1e6)}),
    "smollm3": ("smollm3", {"no_rope_layers": [0, 1]}),
    "gemma3": ("gemma3_text", {"head_dim": 16, "query_pre_attn_scalar": 100, **BY_LAYER}),
}
READ = {
    "head_dim": ("llama", {"head_dim": 32}),
    "biases": ("llama", {"attention_bias": True, "mlp_bias": True}),
    "tied": ("llama", {"tie_word_embeddings": True}),
    "one head for each group": ("llama", {"num_key_value_heads": 4}),
    "gelu": ("llama", {"hidden_act": "gelu"}),
    "gelu_pytorch_tanh": ("llama", {"hidden_act": "gelu_pytorch_tanh"}),
    "linear": ("llama", {"rope_parameters": rope("linear", factor=4.0)}),
    "dynamic": ("llama", {"rope_parameters": rope("dynamic", factor=4.0)}),
    "yarn": ("qwen2", {"rope_parameters": rope("yarn", 1e6, factor=4.0, original_max_position_embeddings=32)}),
    "yarn, all of it": ("qwen3", {"head_dim": 16, "rope_parameters": rope(
        "yarn", 1e4, factor=4.0, original_max_position_embeddings=64, mscale=0.7, mscale_all_dim=1.3, truncate=False,
        beta_fast=8.0, beta_slow=2.0)}),
    "no window": ("mistral", {"sliding_window": None}),
    "qwen2": ("qwen2", {"rope_parameters": rope(theta=1e6), "sliding_window": 8}),
    "qwen2, a window": ("qwen2", {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}),
    "qwen3, layer_types": ("qwen3", {"use_sliding_window": True, **BY_LAYER}),
    "smollm3, a window": ("smollm3", {"no_rope_layers": [0, 1], "use_sliding_window": True, "sliding_window": 8}),
    "smollm3 of four layers": ("smollm3", {"num_hidden_layers": 4, "tie_word_embeddings": False}),
    "gemma3 of six layers": ("gemma3_text", {"num_hidden_layers": 6, "sliding_window": 8, "rope_parameters": {
        "full_attention": rope("linear", 1e6, factor=8.0), "sliding_attention": rope()}}),
}


def saved(folder, family, more):
    """A model of transformers' with random weights, and where it was saved."""
    torch.manual_seed(0)
    make = getattr(transformers, CLASSES[family] + "ForCausalLM")
    config = getattr(transformers, CLASSES[family] + ("TextConfig" if "gemma" in family else "Config"))
    model = make(config(**SMALL | more)).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(0, 0.15) if p.dim() > 1 else p.normal_(0 if "gemma" in family else 1, 0.2)
    model.save_pretrained(folder)
    return model


def logits_of(model):
    with torch.no_grad():
        return model(IDS).logits


def change(folder, **changes):
    """Other entries of config.json; None takes one out."""
    config = json.loads((folder / "config.json").read_text()) | changes
    config = {key: value for key, value in config.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(config))


def far(got, wanted):
    return ((got - wanted).abs().max() / wanted.abs().max()).item()


def read(folder):
    model = checkpoint.from_checkpoint(folder, CONTEXT)
    with torch.no_grad():
        return model(IDS, torch.arange(CONTEXT))


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_logits_and_perplexity_are_transformers(name, tmp_path):
    wanted = logits_of(saved(tmp_path, *COMPILED[name]))
    run = llm.Runner(llm.compiled(checkpoint.from_checkpoint(tmp_path, CONTEXT), [16, 4]))
    ids, got = IDS[0].tolist(), []
    for count in (3, 7, 21, 1, 1, 2, 13):  # more than prefill takes and less, single steps, and prefill behind these
        got.append(run(ids[:count]))
        ids = ids[count:]
    got = torch.cat(got, 1)
    assert not ids and far(got, wanted) < 1e-5
    ours, theirs = (math.log(llm.perplexity(logits, IDS[0].tolist())) for logits in (got, wanted))
    assert abs(ours - theirs) < 1e-4


@pytest.mark.parametrize("name", READ)
def test_logits_are_transformers(name, tmp_path):
    wanted = logits_of(saved(tmp_path, *READ[name]))
    assert far(read(tmp_path), wanted) < 1e-5


OLD = {"torch_dtype": "float32", "dtype": None, "transformers_version": "4.50.0", "rope_parameters": None, "_name_or_path": "x"}


@pytest.mark.parametrize("family, more, old", [
    ("llama", {}, {"rope_theta": 5e5, "pretraining_tp": 2, "rope_interleaved": False, "is_llama_config": True}),
    ("llama", {}, {"rope_theta": 5e5, "rope_scaling": {k: v for k, v in LLAMA3.items() if k != "rope_theta"}}),
    ("llama", {}, {"rope_scaling": {"type": "linear", "factor": 4.0}}),
    ("qwen2", {}, {"rope_theta": 1e6, "sliding_window": 8, "use_sliding_window": False, "use_mrope": False, "layer_types": None}),
    ("qwen3", {"head_dim": 16}, {"rope_theta": 1e6, "rope_scaling": {
        "type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}}),
    ("smollm3", {"num_hidden_layers": 4}, {"no_rope_layers": None, "layer_types": None}),
    ("gemma3_text", {"num_hidden_layers": 6}, {"layer_types": None, "sliding_window": 8, "sliding_window_pattern": 3,
     "tie_word_embeddings": None, "rope_theta": 3e6, "rope_local_base_freq": 2e4, "cache_implementation": "hybrid",
     "rope_scaling": {"rope_type": "linear", "factor": 8.0}}),
], ids=str)
def test_files_of_transformers_4(family, more, old, tmp_path):
    saved(tmp_path, family, more)
    before = read(tmp_path)
    change(tmp_path, **OLD, **old)
    wanted = logits_of(transformers.AutoModelForCausalLM.from_pretrained(tmp_path))
    assert far(read(tmp_path), wanted) < 1e-5
    if family != "smollm3":  # which says what it said before
        assert far(before, wanted) > 0.1


REFUSED = [
    ("llama", {"rope_parameters": rope("longrope", factor=2.0)}, "rope_type 'longrope'"),
    ("llama", {"rope_parameters": rope("new")}, "rope_type 'new'"),
    ("llama", {"rope_parameters": rope(attention_factor=2.0)}, "attention_factor"),
    ("llama", {"rope_parameters": rope("linear")}, "has no factor"),
    ("llama", {"rope_parameters": rope("linear", factor="4")}, "factor = 4"),
    ("llama", {"rope_parameters": rope(partial_rotary_factor=0.5)}, "partial_rotary_factor"),
    ("llama", {"rope_parameters": rope("dynamic", factor=2.0), "max_position_embeddings": CONTEXT - 1}, "'dynamic'"),
    ("llama", {"rope_scaling": {"type": "linear", "factor": 2.0}}, "both rope_parameters and rope_scaling"),
    ("llama", {"rope_parameters": {"full_attention": rope()}}, "full_attention"),
    ("llama", {"hidden_act": "relu2"}, "relu2"),
    ("llama", {"model_type": "phi3"}, "phi3"),
    ("llama", {"architectures": ["LlamaForSequenceClassification"]}, "LlamaForSequenceClassification"),
    ("llama", {"quantization_config": {"bits": 4}}, "quantization_config"),
    ("llama", {"sliding_window": 8}, "sliding_window = 8"),
    ("llama", {"layer_types": ["sliding_attention"] * 2}, "layer_types"),
    ("llama", {"residual_multiplier": 0.22, "logits_scaling": 8}, "residual_multiplier = 0.22, logits_scaling = 8"),
    ("llama", {"hidden_size": None}, "has no hidden_size"),
    ("llama", {"hidden_size": "64"}, "hidden_size"),
    ("llama", {"num_key_value_heads": 3}, "num_key_value_heads"),
    ("llama", {"head_dim": 15}, "is odd"),
    ("llama", {"attention_bias": "yes"}, "attention_bias"),
    ("mistral", {"layer_types": ["full_attention"] * 2}, "layer_types"),
    ("mistral", {"num_key_value_heads": None}, "has no num_key_value_heads"),
    ("qwen2", {"attention_bias": True}, "attention_bias"),
    ("qwen3", {"layer_types": ["sliding_attention"] * 2}, "no sliding_window"),
    ("qwen3", {"layer_types": ["full_attention"] * 3}, "layer_types"),
    ("qwen3", {"layer_types": ["full_attention", "chunked_attention"]}, "chunked_attention"),
    ("smollm3", {"no_rope_layers": [1]}, "no_rope_layers"),
    ("gemma3_text", {"final_logit_softcapping": 30.0}, "final_logit_softcapping"),
    ("gemma3_text", {"attn_logit_softcapping": 50.0}, "attn_logit_softcapping"),
    ("gemma3_text", {"use_bidirectional_attention": True}, "use_bidirectional_attention"),
    ("gemma3_text", {"rope_parameters": rope()}, "rope_theta, rope_type"),
    ("gemma3_text", {"query_pre_attn_scalar": 0}, "query_pre_attn_scalar"),
]


def test_what_is_not_understood_is_refused_by_name(tmp_path):
    for family in CLASSES:
        saved(tmp_path / family, family, {})
        checkpoint.from_checkpoint(tmp_path / family, CONTEXT)
        config = json.loads((tmp_path / family / "config.json").read_text())
        for key in config:  # nothing but a refusal comes of what makes no sense
            for value in ([], {}, [[]], {"full_attention": 1}, {"rope_type": []}, "x", -1, 0, 0.5, True, None, 1e999):
                try:
                    assert checkpoint.shape_of(config | {key: value}, CONTEXT).context == CONTEXT
                except ValueError as why:
                    assert str(why)
    for family, changes, said in REFUSED:
        path = tmp_path / family / "config.json"
        before = path.read_text()
        change(path.parent, **changes)
        with pytest.raises(SystemExit) as refused:
            checkpoint.from_checkpoint(path.parent, CONTEXT)
        assert str(refused.value).startswith(f"{path}: ") and said in str(refused.value), (changes, str(refused.value))
        path.write_text(before)
    for text in ("{", "[1]", "", '"llama"', "\xff"):
        path.write_text(text)
        with pytest.raises(SystemExit, match="config.json: "):
            checkpoint.from_checkpoint(path.parent, CONTEXT)


def test_broken_tensors_are_refused_by_file_and_name(tmp_path):
    saved(tmp_path, "llama", {})
    file, name, head = tmp_path / "model.safetensors", "model.layers.1.mlp.up_proj.weight", "lm_head.weight"
    whole, tensors = file.read_bytes(), load_file(file)
    header = int.from_bytes(whole[:8], "little")

    def refused(path=file):
        with pytest.raises(SystemExit) as why:
            checkpoint.from_checkpoint(tmp_path, CONTEXT)
        assert path.name in str(why.value)
        return str(why.value)

    def with_tensors(changed):
        save_file({key: value for key, value in (tensors | changed).items() if value is not None}, file)

    with_tensors({name: tensors[name][:100].clone()})
    assert f"{name} is [100, 64], and {tmp_path}/config.json makes it [128, 64]" in refused()
    with_tensors({name: None})
    assert f"no {name}" in refused()
    with_tensors({head: None})
    assert f"no {head}" in refused()
    with_tensors({"model.layers.1.mlp.up_proj.bias": torch.zeros(128)})
    assert "model.layers.1.mlp.up_proj.bias [128] is no part of a llama" in refused()
    with_tensors({name: tensors[name].to(torch.int8)})
    assert f"{name} has type I8" in refused()
    with_tensors({"model.layers.0.self_attn.rotary_emb.inv_freq": torch.zeros(8)})  # computed, not read
    checkpoint.from_checkpoint(tmp_path, CONTEXT)
    change(tmp_path, tie_word_embeddings=True)
    assert f"{head} is not the embedding" in refused()
    with_tensors({head: tensors["model.embed_tokens.weight"].clone()})
    checkpoint.from_checkpoint(tmp_path, CONTEXT)
    change(tmp_path, tie_word_embeddings=False)

    for content in (b"", b"12345", b"\xff" * 64, whole[:header], b"\x02" + bytes(7) + b"[]",
                    whole[:8] + whole[8:8 + header].replace(b'"dtype"', b'"other"') + whole[8 + header:]):
        file.write_bytes(content)
        assert "is no safetensors file" in refused(), content[:64]
    file.write_bytes(whole[:-4])
    assert "was cut off" in refused()

    index = tmp_path / "model.safetensors.index.json"
    file.unlink()
    assert "has neither" in refused()
    index.write_text(json.dumps({"weight_map": {name: "model-1.safetensors", head: "model-2.safetensors"}}))
    save_file({head: tensors[head]}, tmp_path / "model-2.safetensors")
    assert "model-1.safetensors, which is not there" in refused(index)
    save_file({key: value for key, value in tensors.items() if key != head}, tmp_path / "model-1.safetensors")
    checkpoint.from_checkpoint(tmp_path, CONTEXT)
    index.write_text("{}")
    assert "no index of tensors" in refused(index)
