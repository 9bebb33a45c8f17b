"""The memory budget: never exceeded, shared evenly when it is short."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hushsplat.types.errors import ViewError
from hushsplat.viewer import memory
from hushsplat.viewer.memory import MemoryBudget, machine_bytes

STEPS = st.lists(
    st.tuples(st.sampled_from(["join", "leave", "grant", "pin", "unpin"]), st.integers(0, 4), st.integers(0, 250))
)


def test_a_lone_client_gets_all_and_two_get_halves() -> None:
    shrunk: list[str] = []
    budget = MemoryBudget(100)
    budget.join("a", lambda: shrunk.append("a"))
    assert budget.grant("a", 250) == 100
    budget.join("b", lambda: shrunk.append("b"))
    assert budget.grant("b", 250) == 50 and shrunk == ["a"]
    assert budget.grant("a", 250) == 50 and shrunk == ["a"]
    assert budget.grant("b", 20) == 20
    assert budget.grant("a", 250) == 80  # what the other does not need
    budget.release("a")
    assert budget.grant("b", 250) == 100 and budget.grant("a", 1) == 0


def test_small_clients_are_left_alone() -> None:
    shrunk: list[str] = []
    budget = MemoryBudget(100)
    for name in "abc":
        budget.join(name, lambda name=name: shrunk.append(name))  # type: ignore[misc]
    assert (budget.grant("a", 10), budget.grant("b", 90), budget.grant("c", 90)) == (10, 90, 33)
    assert shrunk == ["b"]


@given(STEPS)
def test_the_total_is_never_exceeded(steps: list[tuple[str, int, int]]) -> None:
    budget = MemoryBudget(200)
    holds: dict[object, int] = {}
    for action, index, size in steps:
        if action == "join":
            holds[index] = 0
            budget.join(index, lambda index=index: holds.__setitem__(index, 0))  # type: ignore[misc]
        elif action == "leave":
            budget.release(index)
            holds.pop(index, None)
        elif action == "grant" and index in holds:
            holds[index] = budget.grant(index, size)
            assert holds[index] <= size and (holds[index] == size or holds[index] >= 200 // 2 // len(holds))
        elif action == "pin":
            try:
                budget.pin(f"video {index}", size, "the video")
                holds[f"video {index}"] = size
            except ViewError:
                pass
        elif action == "unpin":
            budget.release(f"video {index}")
            holds.pop(f"video {index}", None)
        assert sum(holds.values()) == budget.held <= 200


def test_the_limit_of_a_container_counts(tmp_path, monkeypatch) -> None:
    for content, expected in (("max\n", machine_bytes()), ("123456\n", 123456)):
        (tmp_path / "memory.max").write_text(content)
        monkeypatch.setattr(memory, "CGROUP", tmp_path / "memory.max")
        assert machine_bytes() == expected
