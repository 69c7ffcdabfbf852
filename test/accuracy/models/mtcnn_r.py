# SPDX-License-Identifier: Apache-2.0
"""MTCNN's R net (faces.py)."""
import faces


def model(rng):
    return faces.model("rnet", rng)
