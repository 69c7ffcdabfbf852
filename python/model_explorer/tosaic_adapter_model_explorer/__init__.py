# SPDX-License-Identifier: Apache-2.0
"""Model Explorer's view of `.pte` files, with the graphs inside of TOSA delegates."""

from .main import PteWithTosaAdapter

__all__ = ["PteWithTosaAdapter"]
