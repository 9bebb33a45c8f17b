"""What all tests share: array shapes are checked while they run, and where the real scenes are."""

import os
from pathlib import Path

import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

install_import_hook("hushsplat", "beartype.beartype")

# Nothing is timed in a test: hypothesis would fail examples that take long on a busy machine.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real scenes; tests that need it say so when it is not there."""
    folder = os.environ.get("HUSHSPLAT_DATA")
    if not folder:
        pytest.skip("real scenes: set HUSHSPLAT_DATA to their folder (see tests/README.md)")
    return Path(folder)
