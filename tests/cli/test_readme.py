"""The README's commands are the ones that CI runs and that the command line knows."""

import ast
import re
from pathlib import Path

import hushsplat
from hushsplat.cli.main import COMMANDS
from hushsplat.native import _engine

ROOT = Path(__file__).resolve().parents[2]


def test_ci_runs_the_test_command_of_the_readme() -> None:
    commands = [line.strip() for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()]
    last = (ROOT / ".ci" / "run").read_text(encoding="utf-8").strip().splitlines()[-1]
    assert "tools/check.py" in last
    assert last in commands


def test_readme_names_real_commands_and_functions() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^ +hushsplat (\w+)", text, flags=re.MULTILINE)) == set(COMMANDS)
    for name in re.findall(r"hushsplat\.(\w+)\(", text):
        assert callable(getattr(hushsplat, name)), name


def test_stub_names_what_the_engine_has() -> None:
    stub = ast.parse((ROOT / "src/hushsplat/native/_engine.pyi").read_text(encoding="utf-8"))
    for node in stub.body:
        if isinstance(node, ast.ClassDef):
            members = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
            assert members <= set(dir(getattr(_engine, node.name))), node.name
        elif isinstance(node, ast.FunctionDef):
            assert callable(getattr(_engine, node.name)), node.name
    named = {node.name for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    assert {name for name in dir(_engine) if not name.startswith("_")} == named
