"""requirements.lock fits pyproject.toml, has a hash for everything, and names no place to download from."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
LOCK = (ROOT / "requirements.lock").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WANTED = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned() -> dict[str, list[str]]:
    """All pinned versions by name: there may be one for each version of Python."""
    found: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)(?:\[[\w,]+\])?==([^\s;]+)", LOCK, re.MULTILINE):
        found.setdefault(plain(name), []).append(version)
    return found


@pytest.mark.parametrize("wanted", WANTED)
def test_every_requirement_is_pinned_to_what_it_allows(wanted: str) -> None:
    requirement = Requirement(wanted)
    versions = pinned().get(plain(requirement.name), [])
    assert versions, f"lock it again; the first lines of {ROOT / 'requirements.lock'} say how"
    assert all(requirement.specifier.contains(version) for version in versions)


def test_everything_has_a_hash() -> None:
    entries = re.split(r"\n(?=[a-zA-Z0-9])", LOCK)[1:]
    assert len(entries) == sum(map(len, pinned().values())) > 30
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []


def test_no_place_is_named() -> None:
    assert re.findall(r"https?://|file:|--index|--find-links|--extra-index", LOCK) == []
