# SPDX-License-Identifier: Apache-2.0
"""The digits example with its held-out images and labels, and what `tosaic run` makes of each of them."""
import pathlib
import subprocess

import numpy as np

EXAMPLE = pathlib.Path(__file__).resolve().parent.parent.parent / "examples/digits"


class LabelledDigits:
    def __init__(self, tosaic, folder, count=120):
        self.tosaic, self.folder = tosaic, folder
        self.pt2, self.samples = EXAMPLE / "digits.pt2", EXAMPLE / "digits_samples.npz"
        self.pte, self.npz = folder / "digits.pte", folder / "test.npz"
        with np.load(EXAMPLE / "digits_test.npz") as held_out:
            images, self.labels = held_out["image"][:count], held_out["label"][:count]
        self.images = images.reshape(count, *images.shape[-3:])
        np.savez(self.npz, image=self.images, label=self.labels)
        self.large_labels = self._other("large.npz", image=self.images, label=self.labels + 1)
        self.wide = self._other("wide.npz", image=np.zeros((4, 1, 9, 9), np.float32))
        self.other_name = self._other("other.npz", picture=self.images)
        subprocess.run([tosaic, "compile", self.pt2, "--calibrate", self.samples, "-o", self.pte, "-q"], check=True)

    def _other(self, name, **arrays):
        np.savez(self.folder / name, **arrays)
        return self.folder / name

    def outputs(self, program):
        """The first output for each image, from a process each."""
        rows = []
        for image in self.images:
            np.save(self.folder / "one.npy", image[None])
            subprocess.run([self.tosaic, "run", program, "--input", self.folder / "one.npy", "--output-dir", self.folder, "-q"], check=True)
            rows.append(np.load(self.folder / "output_0.npy")[0])
        return np.stack(rows)
