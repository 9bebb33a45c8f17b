"""How the tests start the command: with the package that they test themselves."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import hushsplat

Run = Callable[..., subprocess.CompletedProcess[str]]
COMMAND = (sys.executable, "-m", "hushsplat")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(hushsplat.__file__).parents[1]), "PYTHONUTF8": "1"}
