# SPDX-License-Identifier: Apache-2.0
"""Keys under which tosaic writes in the meta of PyTorch's nodes."""

ORIGIN = "tosaic_exported"  # the meta of a node of a decomposed call: (its name, its operator, who says it so)
UNDECOMPOSED = "tosaic_undecomposed"  # of an unknown operator that PyTorch says in no others that are known
