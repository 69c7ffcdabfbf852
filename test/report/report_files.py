# SPDX-License-Identifier: Apache-2.0
"""Where the programs lie that reports are made of."""
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits"
MODEL, SAMPLES = DIGITS / "digits.pt2", DIGITS / "digits_samples.npz"
