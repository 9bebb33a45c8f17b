"""The README's commands are the ones that CI runs and that the command line knows."""

import ast
import re
from collections.abc import Sequence
from pathlib import Path

import hushsplat
from hushsplat.cli.main import COMMANDS
from hushsplat.engines.cpu import _engine

ROOT = Path(__file__).resolve().parents[2]


def test_ci_runs_the_test_command_of_the_readme() -> None:
    commands = [line.strip() for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()]
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").strip().splitlines()[-2:]
    assert "--require-hashes -r requirements.lock" in lines[0] and "tools/check.py" in lines[1]
    assert commands[commands.index(lines[0]) :][:2] == lines


def test_readme_names_real_commands_and_functions() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^ +hushsplat (\w+)", text, flags=re.MULTILINE)) == set(COMMANDS)
    for name in re.findall(r"hushsplat\.(\w+)\(", text):
        assert callable(getattr(hushsplat, name)), name


def test_stub_names_what_the_engine_has() -> None:
    stub = ast.parse((ROOT / "src/hushsplat/engines/cpu/_engine.pyi").read_text(encoding="utf-8"))
    for node in stub.body:
        if isinstance(node, ast.ClassDef):
            members = _names(node.body)
            assert members <= set(dir(getattr(_engine, node.name))), node.name
        elif isinstance(node, ast.FunctionDef):
            assert callable(getattr(_engine, node.name)), node.name
    assert {name for name in dir(_engine) if not name.startswith("_")} == {
        name for name in _names(stub.body) if not name.startswith("_")
    }


def _names(body: Sequence[ast.stmt]) -> set[str]:
    """Of classes, functions and values; what a stub imports is not the module's."""
    named = {node.name for node in body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    typed = {node.target.id for node in body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)}
    values = {
        target.id
        for node in body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return named | typed | values
