# SPDX-License-Identifier: Apache-2.0
"""Both executors at once: what the fast one computes is held to the interpreter, call by call."""
import copy

import torch
from torch.utils._pytree import tree_leaves


class Both:
    """A session on the CPU executor and one on the interpreter, which `opened` makes of its arguments and an executor:
    tosaic.load, Program.session, Artifact.session. Integers are equal, floats within 1e-5; states too, as runs go on."""

    def __init__(self, opened, *given, **options):
        self._sessions = [opened(*given, executor=executor, **options) for executor in ("cpu", "interp")]

    def _of_both(self, ask):
        fast, slow = (ask(session) for session in self._sessions)
        for a, b in zip(tree_leaves(fast), tree_leaves(slow), strict=True):
            assert type(a) is type(b)
            if a is None:
                continue
            a, b = torch.as_tensor(a), torch.as_tensor(b)
            assert a.dtype == b.dtype and a.shape == b.shape
            tolerance = 1e-5 if a.is_floating_point() or a.is_complex() else 0
            torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
        return fast

    def run(self, *inputs, **named):
        return self._of_both(lambda session: session.run(*copy.deepcopy(inputs), **copy.deepcopy(named)))

    def state_dict(self):
        return self._of_both(lambda session: session.state_dict())

    def clone(self):
        return Both(lambda executor: self._sessions[executor == "interp"].clone())

    def __getattr__(self, name):
        """What changes a session, on both: reset, warm, load_state_dict, method."""
        found = [getattr(session, name) for session in self._sessions]
        return (lambda *given: [of(*given) for of in found][0]) if callable(found[0]) else found[0]


def held(target, opened, *given):
    """On both executors, where what `target` makes runs on them and not on a device."""
    return opened(*given) if target == "vulkan" else Both(opened, *given)
