# SPDX-License-Identifier: Apache-2.0
"""Pictures that lie in packages: scikit-image's and scikit-learn's."""
import functools
import pathlib

import numpy as np

from packages import importable, package

NAMES = ["astronaut.png", "chelsea.png", "coffee.png", "motorcycle_left.png", "rocket.jpg", "ihc.png", "retina.jpg",
         "hubble_deep_field.jpg", "brick.png", "grass.png", "gravel.png", "camera.png", "coins.png", "moon.png"]


@functools.cache
def pictures():
    """16 of them, RGB, as Pillow's."""
    import sklearn
    importable("pillow")
    import PIL.Image
    files = [package("scikit-image") / "skimage/data" / name for name in NAMES]
    files += [pathlib.Path(sklearn.__file__).parent / "datasets/images" / name for name in ("china.jpg", "flower.jpg")]
    return [PIL.Image.open(file).convert("RGB") for file in files]


def crop(picture, rng, size, least=0.3):
    """A random square part, at least `least` of the shorter side, as [size, size, 3] of 0..1."""
    import PIL.Image
    side = int(min(picture.size) * rng.uniform(least, 1))
    left, top = (int(rng.integers(0, length - side + 1)) for length in picture.size)
    box = (left, top, left + side, top + side)
    return np.asarray(picture.resize((size, size), PIL.Image.Resampling.BILINEAR, box=box), np.float32) / 255
