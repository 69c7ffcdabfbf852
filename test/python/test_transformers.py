# SPDX-License-Identifier: Apache-2.0
"""Decoders as transformers exports them itself, with its StaticCache: tokens one by one and in prompts of any length give the
logits of the whole text."""

import pytest
import torch
import tosaic

transformers = pytest.importorskip("transformers", reason="test/requirements.txt is not installed: transformers is missing")
from transformers.integrations.executorch import TorchExportableModuleForDecoderOnlyLM  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
SMALL = dict(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64, head_dim=8)
MODELS = {
    "llama": ("LlamaForCausalLM", "LlamaConfig", {}),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", {}),
    "gemma3": ("Gemma3ForCausalLM", "Gemma3TextConfig",
               dict(sliding_window=8, layer_types=["sliding_attention", "full_attention"])),
    "smollm3": ("SmolLM3ForCausalLM", "SmolLM3Config", dict(pad_token_id=0)),
}
TOKENS, CACHE = 20, 32


@pytest.fixture(scope="module", params=MODELS)
def decoder(request):
    """(exported of one token, exported of any number of tokens, tokens, their logits)"""
    model_class, config_class, more = MODELS[request.param]
    torch.manual_seed(0)
    config = getattr(transformers, config_class)(**SMALL, **more)
    config.use_cache, config._attn_implementation = True, "sdpa"
    model = getattr(transformers, model_class)(config).eval()
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() > 1:
                p.normal_(0, 0.15)
    model.generation_config = transformers.GenerationConfig(
        use_cache=True, cache_implementation="static", max_length=CACHE,
        cache_config={"batch_size": 1, "max_cache_len": CACHE})
    ids = torch.randint(0, 64, (1, TOKENS))
    with torch.no_grad():
        logits = model(ids).logits

    def exportable():
        return TorchExportableModuleForDecoderOnlyLM(model, batch_size=1, max_cache_len=CACHE, device=torch.device("cpu"))

    one = exportable().export(input_ids=torch.zeros((1, 1), dtype=torch.long), cache_position=torch.zeros(1, dtype=torch.long))
    length = torch.export.Dim("length", max=CACHE - 1)
    many = exportable().export(input_ids=torch.zeros((1, 4), dtype=torch.long), cache_position=torch.arange(4),
                               dynamic_shapes={"input_ids": {1: length}, "cache_position": {0: length}})
    return one, many, ids, logits


def expect_logits(session, steps, ids, logits):
    at, largest = 0, logits.abs().max()
    for count in steps:
        got = session.run(input_ids=ids[:, at : at + count], cache_position=torch.arange(at, at + count))
        wanted = logits[:, at : at + count][:, -got.shape[1] :]
        assert (got - wanted).abs().max() <= 2e-6 * largest, f"tokens {at} to {at + count}"
        at += count
    assert at == TOKENS


@pytest.mark.parametrize("target", ["none", "tosa-fp", "vgf", "vulkan"])
def test_token_by_token(decoder, target):
    one, _, ids, logits = decoder
    session = tosaic.Program.of(one).session() if target == "none" else tosaic.compile(one, target=target).session()
    expect_logits(session, [1] * TOKENS, ids, logits)


@pytest.mark.parametrize("target", ["none", "vulkan"])
def test_prompts_of_any_length(decoder, target):
    _, many, ids, logits = decoder
    session = tosaic.Program.of(many).session() if target == "none" else tosaic.compile(many, target=target).session()
    expect_logits(session, [7, 1, 5, 1, 6], ids, logits)


def test_prefill_and_decode_with_one_cache(decoder):
    one, many, ids, logits = decoder
    artifact = tosaic.compile({"prefill": many, "decode": one}, target="tosa-fp", sizes=["input_ids.1=7"])
    prefill = artifact.session()
    expect = {7: prefill, 1: prefill.method("decode")}
    at, largest = 0, logits.abs().max()
    for count in [7, 1, 1, 7, 1, 1, 1, 1]:
        got = expect[count].run(input_ids=ids[:, at : at + count], cache_position=torch.arange(at, at + count))
        wanted = logits[:, at : at + count][:, -got.shape[1] :]
        assert (got - wanted).abs().max() <= 2e-6 * largest
        at += count
    assert at == TOKENS
