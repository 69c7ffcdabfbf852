# SPDX-License-Identifier: Apache-2.0
"""Silero VAD for 16 kHz: does somebody speak in these 32 ms? A spectrum, four convolutions and an LSTM whose state is fed
back. Weights: PyPI's silero-vad. The task: frames of synthetic speech in noise, but for those where speech begins or ends."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from model import Model
from packages import package
from voices import stream

FRAME, CONTEXT, STREAMS, SECONDS = 512, 64, 6, 6.66


class Vad(nn.Module):
    def __init__(self):
        super().__init__()
        self.stft_conv = nn.Conv1d(1, 258, 256, stride=128, bias=False)
        sizes = [(129, 128, 1), (128, 64, 2), (64, 64, 2), (64, 128, 1)]
        self.conv1, self.conv2, self.conv3, self.conv4 = (nn.Conv1d(a, b, 3, stride=s, padding=1) for a, b, s in sizes)
        self.lstm_cell = nn.LSTMCell(128, 128)
        self.final_conv = nn.Conv1d(128, 1, 1)

    def forward(self, samples, h, c):
        spectrum = self.stft_conv(F.pad(samples[:, None], (0, CONTEXT), mode="reflect"))
        real, imaginary = spectrum[:, :129], spectrum[:, 129:]
        x = torch.sqrt(real ** 2 + imaginary ** 2)
        for layer in (self.conv1, self.conv2, self.conv3, self.conv4):
            x = F.relu(layer(x))
        h, c = self.lstm_cell(x[:, :, 0], (h, c))
        return torch.sigmoid(self.final_conv(F.relu(h)[:, :, None]))[:, :, 0], h, c


def frames(samples):
    """Each with the end of the one before it."""
    padded = np.concatenate([np.zeros(CONTEXT, np.float32), samples])
    return [torch.from_numpy(padded[i:i + CONTEXT + FRAME][None].copy()) for i in range(0, len(samples) - FRAME + 1, FRAME)]


def play(call, inputs):
    h, c = torch.zeros(1, 128), torch.zeros(1, 128)
    results = []
    for frame in inputs:
        probability, h, c = call(frame, h, c)
        results.append((probability,))
    return results


def calls(net, inputs):
    """Those of `play`."""
    made = []
    play(lambda *call: made.append(call) or net(*call), inputs)
    return made


def model(rng):
    from safetensors.torch import load_file
    net = Vad().eval()
    net.load_state_dict(load_file(package("silero-vad") / "silero_vad/data/silero_vad_16k.safetensors"))
    with torch.no_grad():
        calibration = [call for _ in range(STREAMS) for call in calls(net, frames(stream(rng, SECONDS)[0]))][::4]
    test = [stream(rng, SECONDS) for _ in range(STREAMS)]
    share = np.concatenate([s[:len(s) // FRAME * FRAME].reshape(-1, FRAME).mean(1) for _, s in test])

    def score(results):
        said = np.array([r[0].item() for r in results]) > 0.5
        certain = (share == 0) | (share == 1)
        return 100 * float(np.mean((said == (share > 0.5))[certain]))
    return Model(net, calibration, [frames(samples) for samples, _ in test], "frames right, %", score, play=play, draws=3)
