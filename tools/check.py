"""All checks of the project, in the order in which they fail fastest; the tests come last.

    python tools/check.py

needs the package and its extras installed: pip install '.[dev,learn,gpu]'

The viewer's page is tested in a real browser, the gpu engine on a software adapter. Where these are missing and this
runs as root on Debian or Ubuntu (as in CI), they are installed first.
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


def has_browser() -> bool:
    """Whether pages can be tested."""
    return bool(os.environ.get("HUSHSPLAT_BROWSER")) or any(map(shutil.which, BROWSERS))


def has_adapter() -> bool:
    """Whether the gpu engine can be tested; asked in a process of its own, for drivers are found once."""
    program = "from hushsplat.engines.webgpu.adapters import adapters; raise SystemExit(not adapters())"
    return subprocess.run((PYTHON, "-c", program), capture_output=True, cwd=ROOT, check=False).returncode == 0


NEEDED = {  # Debian's package: whether it is there, what to do if it is not
    "chromium": (has_browser, "pages need a browser: install chromium, or name one in HUSHSPLAT_BROWSER."),
    "mesa-vulkan-drivers": (has_adapter, "the gpu engine needs an adapter: install mesa-vulkan-drivers."),
}


def is_complete() -> bool:
    """Whether everything can be tested; installs what is missing if that is possible without asking."""
    missing = [package for package, (is_there, _) in NEEDED.items() if not is_there()]
    apt = shutil.which("apt-get")
    if missing and apt is not None and hasattr(os, "geteuid") and os.geteuid() == 0:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for words in (("update", "-qq"), ("install", "-qq", "-y", "--no-install-recommends", *missing)):
            print(f"$ apt-get {' '.join(words)}", flush=True)
            subprocess.run((apt, *words), env=environment, stdout=subprocess.DEVNULL, check=False)
    still = [package for package in missing if not NEEDED[package][0]()]
    for package in still:
        print(NEEDED[package][1], flush=True)
    return not still


def shortened(line: str, letters: int) -> str:
    """The beginning of a long line."""
    return line if len(line) <= letters else f"{line[: letters - 2]} …"


def main() -> int:
    """Run every check, even after one has failed; 1 if any did."""
    failed = not is_complete()
    for command in CHECKS:
        print(f"$ {shortened(' '.join((Path(command[0]).name, *command[1:])), 100)}", flush=True)
        failed |= subprocess.run(command, cwd=ROOT, check=False).returncode != 0
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
