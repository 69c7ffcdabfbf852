# SPDX-License-Identifier: Apache-2.0
"""Larger models for bench/cpu.py, built by `transformers` with random weights, some with fewer layers. Files that exist
are kept.

    python cpu_models.py --output build/models --only NAME ...

For each NAME what make_models.py writes and bench/cpu.py reads: NAME.pt2, NAME_samples.npz, NAME_expected.npz.
"""
import argparse
import os
import pathlib
import sys
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "test/models"))
os.environ["HF_HUB_OFFLINE"] = "1"
warnings.filterwarnings("ignore")
import numpy as np
import torch
import transformers
from make_models import SAMPLES, pictures, populate, stack
from torch import nn


class First(nn.Module):
    """A model of which the first result counts."""

    def __init__(self, model, **options):
        super().__init__()
        self.model, self.options = model, options

    def forward(self, x):
        return self.model(x, return_dict=False, **self.options)[0]


class States(nn.Module):
    """A recurrent layer of which the states of all steps count."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)[0]


def of_transformers(model, config, inputs, **settings):
    def build():
        transformers.set_seed(0)
        made = getattr(transformers, config)(**settings)
        return First(getattr(transformers, model)(made), **({"use_cache": False} if hasattr(made, "use_cache") else {}))
    return build, inputs


def whisper():
    from transformers.models.whisper.modeling_whisper import WhisperEncoder
    return First(WhisperEncoder(transformers.WhisperConfig(d_model=384, encoder_layers=4, encoder_attention_heads=6,
                                                           encoder_ffn_dim=1536)))


def image(size):
    return lambda n: pictures(n, 3, size, size)


def tokens(length, vocabulary):
    return lambda n: torch.randint(0, vocabulary, (n, length))


def sequence(*shape):
    return lambda n: torch.randn(n, *shape)


SMALL_VIT = dict(hidden_size=192, num_attention_heads=3, intermediate_size=768)

# name: (model, one batch of inputs of the given size)
MODELS = {
    "convnext_tiny": of_transformers("ConvNextModel", "ConvNextConfig", image(224)),
    "deeplab_mobilenet_v2": of_transformers("MobileNetV2ForSemanticSegmentation", "MobileNetV2Config", image(224)),
    "deit_tiny": of_transformers("DeiTModel", "DeiTConfig", image(224), **SMALL_VIT),
    "distilbert": of_transformers("DistilBertModel", "DistilBertConfig", tokens(128, 30522)),
    "efficientnet_b0": of_transformers("EfficientNetModel", "EfficientNetConfig", image(224), width_coefficient=1.0,
                                       depth_coefficient=1.0, hidden_dim=1280),
    "gpt2_3_layers": of_transformers("GPT2Model", "GPT2Config", tokens(128, 50257), n_layer=3),
    "gru_step": (lambda: States(nn.GRU(64, 256, 2, batch_first=True)), sequence(1, 64)),
    "lstm_step": (lambda: States(nn.LSTM(64, 256, 2, batch_first=True)), sequence(1, 64)),
    "lstm_32_steps": (lambda: States(nn.LSTM(64, 256, 2, batch_first=True)), sequence(32, 64)),
    "mobilevit_small": of_transformers("MobileViTModel", "MobileViTConfig", image(256)),
    "pvt_v2_b0": of_transformers("PvtV2Model", "PvtV2Config", image(224)),
    "qwen3_3_layers": of_transformers("Qwen3Model", "Qwen3Config", tokens(128, 8192), vocab_size=8192, hidden_size=512,
                                      intermediate_size=1536, num_hidden_layers=3, num_attention_heads=8,
                                      num_key_value_heads=4, head_dim=64),
    "regnet_y": of_transformers("RegNetModel", "RegNetConfig", image(224), hidden_sizes=[48, 104, 208, 440],
                                depths=[1, 3, 6, 2], groups_width=8, layer_type="y"),
    "resnet50": of_transformers("ResNetModel", "ResNetConfig", image(224)),
    "segformer_b0": of_transformers("SegformerModel", "SegformerConfig", image(512)),
    "swin_tiny": of_transformers("SwinModel", "SwinConfig", image(224)),
    "vit_base_4_layers": of_transformers("ViTModel", "ViTConfig", image(224), num_hidden_layers=4),
    "wav2vec2_3_layers": of_transformers("Wav2Vec2Model", "Wav2Vec2Config", sequence(16000), num_hidden_layers=3),
    "whisper_tiny_encoder": (whisper, sequence(80, 3000)),
}


def populate_deep(module, inputs):
    """`populate` for dozens of layers: through as many random ones that cut half of their values off, nobody's 8 bits
    bring a picture. So few are cut off here, and rounding is not amplified from layer to layer."""
    populate(module, inputs)
    norms = [m for m in module.modules() if isinstance(m, nn.BatchNorm2d)]
    with torch.no_grad():
        for norm in norms:
            norm.bias += 1
            norm.reset_running_stats()
        module.train()
        for _ in range(3):
            module(inputs(8))
    return module.eval()


def make(name, output):
    build, inputs = MODELS[name]
    torch.manual_seed(sum(map(ord, name)))
    module = build().eval()
    if any(isinstance(m, nn.BatchNorm2d) for m in module.modules()):
        populate_deep(module, inputs)
    batches = [(inputs(1),) for _ in range(SAMPLES + 1)]
    with torch.no_grad():
        program = torch.export.export(module, batches[0])
        torch.export.save(program, output / f"{name}.pt2")
        np.savez(output / f"{name}_samples.npz", x=stack([batch[0] for batch in batches[:SAMPLES]]))
        np.savez(output / f"{name}_expected.npz",  # last: its presence says that the set is whole
                 input_0=stack(batches[SAMPLES]), float_0=stack([module(*batches[SAMPLES])]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--only", nargs="*", default=sorted(MODELS), choices=sorted(MODELS))
    asked = parser.parse_args()
    asked.output.mkdir(parents=True, exist_ok=True)
    for name in asked.only:
        if not (asked.output / f"{name}_expected.npz").exists():
            make(name, asked.output)
            print(name, flush=True)


if __name__ == "__main__":
    main()
