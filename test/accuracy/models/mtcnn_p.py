# SPDX-License-Identifier: Apache-2.0
"""MTCNN's P net (faces.py)."""
import faces


def model(rng):
    return faces.model("pnet", rng)
