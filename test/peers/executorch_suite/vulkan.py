# SPDX-License-Identifier: Apache-2.0
"""A pytest plug-in that gives the tests which ExecuTorch's wheel carries for its Vulkan backend what they lack on a PC: a
runtime that knows `VulkanBackend`. They lower by ExecuTorch's own partitioner and run in its own runtime.

    make test-executorch-vulkan-suite

`vulkan_left.txt` says which tests may fail, and why.
"""
import pathlib

from chosen import choose


def pytest_configure(config):
    import tosaic.executorch.runtime  # noqa: F401  registers the backend
    import executorch.kernels.quantized  # noqa: F401  what stands between delegates


def pytest_collection_modifyitems(config, items):
    choose(config, items, "vulkan/test/", pathlib.Path(__file__).with_name("vulkan_left.txt"))
