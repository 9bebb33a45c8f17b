"""These tests need PyTorch; without it each file is skipped and says so."""

from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("torch") is not None:
    import torch

    torch.set_num_threads(1)  # the pictures are tiny, and tests run side by side


class _WithoutTorch(pytest.Module):
    def collect(self):
        pytest.skip("needs PyTorch: pip install '.[dev,learn]'", allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    return _WithoutTorch.from_parent(parent, path=module_path) if find_spec("torch") is None else None
