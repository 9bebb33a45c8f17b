"""The twin beside the engine in one measurement; the times themselves are not tested."""

import sys

import pytest

from hushsplat.cli.bench import _torch_frames
from hushsplat.evaluation.bench import Case, measure, ratios
from hushsplat.evaluation.denoiser_timing import with_random_payload
from hushsplat.synth import room_and_garden, walk_track
from hushsplat.training.timed_twin import twin_frames
from hushsplat.types.errors import HushsplatError


@pytest.mark.parametrize("method", ["hush", "hush-zero-shot"])
def test_the_twin_is_timed_beside_the_engine(method: str) -> None:
    scene = with_random_payload(room_and_garden(2000, sh_degree=0))
    assert scene.payload is not None and scene.payload.shape == (len(scene), 10)
    case = Case("small", scene, [walk_track(width=24, height=16).camera(0)])
    eager = {name: frames for name, frames in twin_frames(method).items() if not name.startswith("torch.compile")}
    assert list(eager) == [f"torch:{method}"]
    begun: list[str] = []
    rows = measure(case, (method,), (1,), 2, others=eager, on_warm_up=begun.append)
    assert [found.method for found in rows] == begun == [method, f"torch:{method}"]
    (ratio,) = ratios(rows)
    assert (ratio.name, ratio.method) == ("torch / engine", method)
    assert ratio.value == pytest.approx(rows[1].median_ms / rows[0].median_ms)


def test_without_pytorch_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("hushsplat.engines.torch")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(HushsplatError, match=r"needs PyTorch; install it with: pip install 'hushsplat\[learn\]'"):
        _torch_frames(["hush-zero-shot"], None)
