# SPDX-License-Identifier: Apache-2.0
"""MTCNN's O net (faces.py)."""
import faces


def model(rng):
    return faces.model("onet", rng)
