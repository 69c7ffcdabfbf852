# SPDX-License-Identifier: Apache-2.0
"""87 families of models as classes of the libraries that people take them from: random weights, small sizes.

FAMILIES[name] makes (module, example inputs). The first word of a name is the library; "torch" is PyTorch alone.
"""
import sys

import torch
from torch import nn

FAMILIES = {}
# torchvision asks for these of its compiled operators when it is imported, though no model here calls one. Where its build
# does not belong to this PyTorch they are not there.
try:
    import torchvision  # noqa: F401
except RuntimeError:
    for _name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[_name]
    COMPILED = torch.library.Library("torchvision", "FRAGMENT")
    for _schema in ("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
                    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"):
        COMPILED.define(_schema)
except ImportError:
    pass  # its families say so


def family(name):
    def keep(build):
        FAMILIES[name] = build
        return build
    return keep


def image(size=64, channels=3, count=1):
    return torch.randn(count, channels, size, size)


def tokens(length=12, vocabulary=64):
    return torch.randint(3, vocabulary, (1, length))


class Part(nn.Module):
    """A model of which one tensor is looked at: what `take` finds in its result."""

    def __init__(self, module, take=lambda result: result[0], **fixed):
        super().__init__()
        self.module, self.take, self.fixed = module, take, fixed

    def forward(self, *inputs):
        return self.take(self.module(*inputs, **self.fixed))


# ---- PyTorch alone

def sequential(name, make, inputs):
    FAMILIES[f"torch {name}"] = lambda: (make(), inputs())


def depthwise_block(channels):
    return nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1, groups=channels), nn.BatchNorm2d(channels), nn.Hardswish(),
                         nn.Conv2d(channels, channels, 1), nn.BatchNorm2d(channels))


sequential("lstm", lambda: Part(nn.LSTM(8, 16, 2, batch_first=True)), lambda: (torch.randn(1, 6, 8),))
sequential("gru both ways", lambda: Part(nn.GRU(8, 12, bidirectional=True, batch_first=True)), lambda: (torch.randn(1, 5, 8),))
sequential("rnn", lambda: Part(nn.RNN(8, 12, batch_first=True)), lambda: (torch.randn(1, 5, 8),))
sequential("encoder layer", lambda: nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu"),
           lambda: (torch.randn(1, 7, 32),))
sequential("decoder layer", lambda: nn.TransformerDecoderLayer(32, 4, 64, batch_first=True, norm_first=True),
           lambda: (torch.randn(1, 5, 32), torch.randn(1, 7, 32)))
sequential("transformer", lambda: nn.Transformer(32, 4, 1, 1, 64, batch_first=True),
           lambda: (torch.randn(1, 7, 32), torch.randn(1, 5, 32)))
sequential("depthwise", lambda: nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), depthwise_block(16), nn.AdaptiveAvgPool2d(1),
                                              nn.Flatten(), nn.Linear(16, 10)), lambda: (image(32),))
sequential("group norm", lambda: nn.Sequential(nn.Conv2d(3, 16, 3), nn.GroupNorm(4, 16), nn.SiLU(), nn.Conv2d(16, 8, 3)),
           lambda: (image(16),))
sequential("instance norm", lambda: nn.Sequential(nn.ReflectionPad2d(2), nn.Conv2d(3, 8, 5), nn.InstanceNorm2d(8, affine=True),
                                                  nn.ReLU(), nn.Upsample(scale_factor=2), nn.Conv2d(8, 3, 3)),
           lambda: (image(16),))
sequential("upscaler", lambda: nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.PReLU(), nn.Conv2d(16, 12, 3, padding=1),
                                             nn.PixelShuffle(2)), lambda: (image(16),))
sequential("generator", lambda: nn.Sequential(nn.ConvTranspose2d(16, 8, 4, 1, 0), nn.BatchNorm2d(8), nn.ReLU(),
                                              nn.ConvTranspose2d(8, 3, 4, 2, 1), nn.Tanh()),
           lambda: (torch.randn(1, 16, 1, 1),))
sequential("volume", lambda: nn.Sequential(nn.Conv3d(1, 4, 3, padding=1), nn.BatchNorm3d(4), nn.ReLU(), nn.MaxPool3d(2),
                                           nn.Conv3d(4, 8, 3)), lambda: (torch.randn(1, 1, 8, 8, 8),))
sequential("signal", lambda: nn.Sequential(nn.Conv1d(1, 8, 9, 2, 4), nn.BatchNorm1d(8), nn.ELU(), nn.Conv1d(8, 8, 9, dilation=2),
                                           nn.AdaptiveMaxPool1d(4)), lambda: (torch.randn(1, 1, 128),))
sequential("bag of words", lambda: nn.Sequential(nn.EmbeddingBag(64, 16), nn.Linear(16, 4), nn.LogSoftmax(-1)), lambda: (tokens(),))


# ---- torchvision

VISION = {"alexnet": 64, "vgg11_bn": 32, "resnet18": 64, "resnext50_32x4d": 64, "squeezenet1_1": 64, "densenet121": 64,
          "shufflenet_v2_x0_5": 64, "mobilenet_v2": 64, "mobilenet_v3_small": 64, "mnasnet0_5": 64, "efficientnet_b0": 64,
          "regnet_y_400mf": 64, "convnext_tiny": 64, "swin_t": 64, "swin_v2_t": 64}


def of_torchvision(name, size):
    def build():
        import torchvision
        return getattr(torchvision.models, name)(weights=None), (image(size),)
    return build


for _name, _size in VISION.items():
    FAMILIES[f"torchvision {_name}"] = of_torchvision(_name, _size)


@family("torchvision googlenet")
def googlenet():
    import torchvision
    return torchvision.models.googlenet(weights=None, aux_logits=False, init_weights=False), (image(64),)


@family("torchvision vit")
def vit():
    from torchvision.models.vision_transformer import VisionTransformer
    model = VisionTransformer(32, 8, 2, 4, 64, 128)
    nn.init.normal_(model.heads.head.weight, std=0.1)  # zeros otherwise
    return model, (image(32),)


@family("torchvision maxvit")
def maxvit():
    from torchvision.models import MaxVit
    return MaxVit((64, 64), 16, 2, [16, 32], [1, 1], 16, 0.0), (image(64),)


@family("torchvision segmentation")
def segmentation():
    from torchvision.models.segmentation import lraspp_mobilenet_v3_large
    return Part(lraspp_mobilenet_v3_large(weights=None, weights_backbone=None), lambda r: r["out"]), (image(64),)


@family("torchvision deeplab")
def deeplab():
    from torchvision.models.segmentation import deeplabv3_mobilenet_v3_large
    return Part(deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None), lambda r: r["out"]), (image(64),)


@family("torchvision video")
def video():
    from torchvision.models.video import mc3_18
    return mc3_18(weights=None), (torch.randn(1, 3, 4, 32, 32),)


# ---- timm

TIMM = {"ghostnet_050": 64, "levit_128s": 224, "mobilevit_xxs": 64, "mobilevitv2_050": 64, "repvgg_a0": 64,
        "edgenext_xx_small": 64, "fastvit_t8": 64, "poolformer_s12": 64, "dla34": 64, "hrnet_w18_small": 64,
        "tinynet_e": 64, "ese_vovnet19b_dw": 64, "res2net50_26w_4s": 64, "efficientformer_l1": 224, "starnet_s1": 64,
        "mixer_s32_224": 224, "resmlp_12_224": 224, "pit_ti_224": 224}


def of_timm(name, size):
    def build():
        import timm
        return timm.create_model(name, pretrained=False), (image(size),)
    return build


for _name, _size in TIMM.items():
    FAMILIES[f"timm {_name}"] = of_timm(_name, _size)


# ---- transformers

SMALL = dict(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
             max_position_embeddings=64)


def of_transformers(model, config, *, take=lambda result: result[0], inputs=tokens, call=None, **settings):
    def build():
        import transformers
        made = getattr(transformers, config)(**settings)
        if hasattr(made, "use_cache"):
            made.use_cache = False
        return Part(getattr(transformers, model)(made), take, **(call or {})), (inputs(),)
    return build


for _model, _config, _more in [
        ("BertModel", "BertConfig", SMALL), ("RobertaModel", "RobertaConfig", SMALL),
        ("AlbertModel", "AlbertConfig", SMALL | {"embedding_size": 16}), ("ElectraModel", "ElectraConfig", SMALL),
        ("DebertaV2Model", "DebertaV2Config", SMALL | {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}),
        ("MobileBertModel", "MobileBertConfig", {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
                                                 "intermediate_size": 32, "embedding_size": 16, "intra_bottleneck_size": 16,
                                                 "true_hidden_size": 16}),
        ("DistilBertModel", "DistilBertConfig", {"vocab_size": 64, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}),
        ("LlamaForCausalLM", "LlamaConfig", SMALL | {"num_key_value_heads": 2}),
        ("MistralForCausalLM", "MistralConfig", SMALL | {"num_key_value_heads": 2}),
        ("Qwen3ForCausalLM", "Qwen3Config", SMALL | {"num_key_value_heads": 2, "head_dim": 8}),
        ("Gemma3ForCausalLM", "Gemma3TextConfig", SMALL | {"num_key_value_heads": 2, "head_dim": 8}),
        ("SmolLM3ForCausalLM", "SmolLM3Config", SMALL | {"num_key_value_heads": 2, "pad_token_id": 0}),
        ("GPT2LMHeadModel", "GPT2Config", {"vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}),
        ("GPTNeoXForCausalLM", "GPTNeoXConfig", SMALL), ("OPTForCausalLM", "OPTConfig", {**SMALL, "ffn_dim": 64, "word_embed_proj_dim": 32}),
        ("BloomForCausalLM", "BloomConfig", {"vocab_size": 64, "hidden_size": 32, "n_layer": 2, "n_head": 4}),
        ("T5EncoderModel", "T5Config", {"vocab_size": 64, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}),
        ("RecurrentGemmaForCausalLM", "RecurrentGemmaConfig", {**SMALL, "num_key_value_heads": 2, "head_dim": 8, "lru_width": 32,
                                                               "attention_window_size": 4, "block_types": ["recurrent", "attention"]}),
        ("MambaForCausalLM", "MambaConfig", {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 1, "state_size": 4}),
]:
    FAMILIES[f"transformers {_model}"] = of_transformers(_model, _config, **_more)

PATCHES = dict(image_size=32, patch_size=8, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
FAMILIES["transformers ViTModel"] = of_transformers("ViTModel", "ViTConfig", inputs=lambda: image(32), **PATCHES)
FAMILIES["transformers CLIPVisionModel"] = of_transformers("CLIPVisionModel", "CLIPVisionConfig", inputs=lambda: image(32), **PATCHES)
FAMILIES["transformers DINOv2"] = of_transformers("Dinov2Model", "Dinov2Config", inputs=lambda: image(32),
                                                  **{k: v for k, v in PATCHES.items() if k != "intermediate_size"})
FAMILIES["transformers SegformerModel"] = of_transformers(
    "SegformerModel", "SegformerConfig", inputs=lambda: image(64), hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1],
    num_attention_heads=[1, 2, 4, 4], decoder_hidden_size=16)
FAMILIES["transformers Wav2Vec2Model"] = of_transformers(
    "Wav2Vec2Model", "Wav2Vec2Config", inputs=lambda: torch.randn(1, 800), **{k: v for k, v in SMALL.items() if k[:3] != "max"},
    conv_dim=(16, 16), conv_stride=(5, 4), conv_kernel=(10, 8), num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4)


@family("transformers Whisper encoder")
def whisper():
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder
    config = WhisperConfig(d_model=32, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=64, max_source_positions=20,
                           num_mel_bins=16)
    return Part(WhisperEncoder(config)), (torch.randn(1, 16, 40),)


# ---- diffusers

@family("diffusers UNet2DModel")
def unet_2d():
    from diffusers import UNet2DModel
    model = UNet2DModel(sample_size=16, block_out_channels=(16, 32), norm_num_groups=4, layers_per_block=1,
                        down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"))
    return Part(model, lambda r: r.sample), (image(16), torch.tensor(3))


@family("diffusers UNet2DConditionModel")
def unet_2d_condition():
    from diffusers import UNet2DConditionModel
    model = UNet2DConditionModel(sample_size=8, block_out_channels=(16, 32), norm_num_groups=4, layers_per_block=1,
                                 cross_attention_dim=16, attention_head_dim=8,
                                 down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
                                 up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"))
    return Part(model, lambda r: r.sample), (image(8, 4), torch.tensor(3), torch.randn(1, 5, 16))


@family("diffusers AutoencoderKL")
def autoencoder():
    from diffusers import AutoencoderKL
    model = AutoencoderKL(block_out_channels=(16, 32), norm_num_groups=4, layers_per_block=1, latent_channels=4,
                          down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2)

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, latent):
            return self.model.decode(latent).sample

    return Decoder(), (image(8, 4),)


@family("diffusers DiTTransformer2DModel")
def dit():
    from diffusers import DiTTransformer2DModel
    model = DiTTransformer2DModel(num_attention_heads=2, attention_head_dim=16, in_channels=4, out_channels=4, num_layers=1,
                                  norm_num_groups=4, sample_size=8, num_embeds_ada_norm=8)
    return Part(model, lambda r: r.sample), (image(8, 4), torch.tensor([3]), torch.tensor([2]))


# ---- torchaudio

@family("torchaudio Conformer")
def conformer():
    from torchaudio.models import Conformer
    return Part(Conformer(16, 4, 32, 1, 7)), (torch.randn(1, 10, 16), torch.tensor([10]))


@family("torchaudio ConvTasNet")
def conv_tas_net():
    from torchaudio.models import ConvTasNet
    return ConvTasNet(enc_num_feats=16, msk_num_feats=8, msk_num_hidden_feats=16, msk_num_layers=2, msk_num_stacks=1), (torch.randn(1, 1, 400),)


@family("torchaudio DeepSpeech")
def deep_speech():
    from torchaudio.models import DeepSpeech
    return DeepSpeech(16, 32, 10), (torch.randn(1, 1, 8, 16),)


@family("torchaudio Wav2Letter")
def wav2letter():
    from torchaudio.models import Wav2Letter
    return Wav2Letter(10, "mfcc", 16), (torch.randn(1, 16, 60),)


@family("torchaudio WaveRNN")
def wave_rnn():
    from torchaudio.models import WaveRNN
    return WaveRNN([2, 2], 16, 4, n_res_block=1, n_rnn=16, n_fc=16, kernel_size=3, n_freq=8, n_hidden=8, n_output=8), (
        torch.randn(1, 1, 16), torch.randn(1, 1, 8, 6))
