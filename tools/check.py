"""All checks of the project, in the order in which they fail fastest; the tests come last.

    python tools/check.py

needs the package and its extras installed: pip install '.[dev,learn]'
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = Path(sys.executable).parent  # not resolved: the scripts of a virtual environment lie beside its own python

PYTHON = sys.executable
CHECKS = (
    (PYTHON, "-m", "ruff", "check", "."),
    (PYTHON, "-m", "ruff", "format", "--check", "."),
    (PYTHON, "-m", "mypy"),
    (str(SCRIPTS / "lint-imports"),),
    (PYTHON, "-m", "pytest", "-q", "-n", "2"),
)


def main() -> int:
    """Run every check, even after one has failed; 1 if any did."""
    failed = False
    for command in CHECKS:
        print(f"$ {' '.join(Path(part).name for part in command[:1])} {' '.join(command[1:])}", flush=True)
        failed |= subprocess.run(command, cwd=ROOT, check=False).returncode != 0
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
