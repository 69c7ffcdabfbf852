# SPDX-License-Identifier: Apache-2.0
"""The test models by name. Apart from make_models.py, whose imports take seconds."""
QUICK = ["digits", "auto_encoder", "keyword_spotting", "tiny_vit"]  # built and run by `make test`
ALL = [*QUICK, "unet", "mobilenet_v2", "mobilenet_v3_small", "resnet18"]
