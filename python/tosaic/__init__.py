# SPDX-License-Identifier: Apache-2.0
"""tosaic: PyTorch models for Arm Ethos-U NPUs, VGF (the ML extensions for Vulkan) and TOSA.

    artifact = tosaic.compile(model, example_inputs, target="ethos-u55-128", calibration=batches)
    artifact                       # what was delegated, cycles, memory, warnings with source lines
    artifact.save("model.pte")
    y = artifact.run(x)            # here, on the simulated NPU

PyTorch is imported only for its own objects; paths need none.
"""

from . import _core, tosa
from ._artifact import Artifact, Explanation, Summary
from ._bundle import check
from ._comparison import Comparison
from ._compile import compare, compile, explain, plan, supports, tune
from ._core import Argument, CaseOutcome, Diagnostic, Dimension, NodeVerdict, NpuEstimate, NpuLayer, OperatorInfo
from ._core import OptionInfo, TargetInfo, TensorInfo, explain_error, operators, targets
from ._errors import CompileWarning, Error
from ._evaluation import Evaluation
from ._lowering import lowering
from ._program import Program
from ._session import OperationTime, Session, load
from ._sweep import Sweep, sweep
from ._tuning import Tuning

__version__ = _core.version()
__all__ = ["Argument", "Artifact", "CaseOutcome", "Comparison", "CompileWarning", "Diagnostic", "Dimension", "Error", "Evaluation",
           "Explanation", "NodeVerdict", "NpuEstimate", "NpuLayer", "OperationTime", "OperatorInfo", "OptionInfo", "Program",
           "Session", "Summary", "Sweep", "TargetInfo", "TensorInfo", "Tuning", "check", "compare", "compile", "explain", "explain_error", "load", "lowering",
           "operators", "plan", "supports", "sweep", "targets", "tosa", "tune"]
