"""All checks of the project, in the order in which they fail fastest; the tests come last.

    python tools/check.py

needs the package and its extras installed: pip install '.[dev,learn]'

The viewer's page is tested in a real browser. Where there is none and this runs as root on Debian or Ubuntu (as in CI),
it is installed first.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = Path(sys.executable).parent  # not resolved: the scripts of a virtual environment lie beside its own python

PYTHON = sys.executable
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")  # the same as in tests/conftest.py
SOURCES = (*(ROOT / "src").rglob("native/*.h"), *(ROOT / "src").rglob("native/*.cpp"), *ROOT.glob("tests/native/*.cpp"))
CHECKS = (
    (PYTHON, "-m", "ruff", "check", "."),
    (PYTHON, "-m", "ruff", "format", "--check", "."),
    (
        str(SCRIPTS / "clang-format"),
        "--dry-run",
        "--Werror",
        *(str(path.relative_to(ROOT)) for path in sorted(SOURCES)),
    ),
    (PYTHON, "-m", "mypy"),
    (str(SCRIPTS / "lint-imports"),),
    (PYTHON, "-m", "pytest", "-q", "-n", "2"),
)


def browser_is_there() -> bool:
    """Whether the page can be tested; installs Debian's chromium if that is possible without asking."""
    if os.environ.get("HUSHSPLAT_BROWSER") or any(map(shutil.which, BROWSERS)):
        return True
    apt = shutil.which("apt-get")
    if apt is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        print("the viewer's tests need a browser: install chromium, or name one in HUSHSPLAT_BROWSER.", flush=True)
        return False
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (("update", "-qq"), ("install", "-qq", "-y", "--no-install-recommends", "chromium")):
        print(f"$ apt-get {' '.join(words)}", flush=True)
        subprocess.run((apt, *words), env=environment, stdout=subprocess.DEVNULL, check=False)
    return shutil.which("chromium") is not None


def shortened(line: str, letters: int) -> str:
    """The beginning of a long line."""
    return line if len(line) <= letters else f"{line[: letters - 2]} …"


def main() -> int:
    """Run every check, even after one has failed; 1 if any did."""
    failed = not browser_is_there()
    for command in CHECKS:
        print(f"$ {shortened(' '.join((Path(command[0]).name, *command[1:])), 100)}", flush=True)
        failed |= subprocess.run(command, cwd=ROOT, check=False).returncode != 0
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
