"""LPIPS and ColorVideoVDP: the numbers of the packages everybody uses, and what is said when something is missing."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from hushsplat.engines.torch import lpips
from hushsplat.evaluation import perceptual
from hushsplat.evaluation.runner import usable_metrics
from hushsplat.types.errors import EvaluationError


def waves(seed: int) -> np.ndarray:
    y, x = np.mgrid[0:64, 0:80]
    channels = [0.5 + 0.4 * np.sin(x / (5 + c) + seed) * np.cos(y / (7 - c)) for c in range(3)]
    return np.stack(channels, axis=-1)


def tensor(picture: np.ndarray) -> torch.Tensor:
    return torch.tensor(picture, dtype=torch.float32).permute(2, 0, 1)[None]


@pytest.fixture(scope="module")
def weights_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network of the right shape with weights by chance."""
    rng = np.random.default_rng(0)
    arrays = {name: rng.normal(0, 0.05, shape).astype(np.float32) for name, shape in lpips._shapes().items()}
    path = tmp_path_factory.mktemp("lpips") / "chance.npz"
    np.savez(path, **{name: np.abs(array) if name.startswith("lin") else array for name, array in arrays.items()})
    return path


@pytest.mark.real_data
def test_lpips_is_that_of_the_lpips_package(real_data: Path) -> None:
    """Numbers of lpips 0.1.4, `LPIPS(net='vgg')`, with these weights."""
    network = lpips.load_lpips(real_data / "lpips" / "vgg16_lpips_v0.1.npz")
    first, other = waves(0), waves(3)
    noisy = np.clip(first + np.random.default_rng(1).normal(0, 0.1, first.shape), 0, 1)
    with torch.no_grad():
        assert float(network(tensor(first), tensor(noisy))) == pytest.approx(0.3919519782066345, abs=2e-5)
        assert float(network(tensor(first), tensor(other))) == pytest.approx(0.6905949115753174, abs=2e-5)


def test_lpips_is_a_distance_with_a_gradient(weights_file: Path) -> None:
    network = lpips.load_lpips(weights_file)
    first, other = tensor(waves(0)), tensor(waves(3))
    there, back = network(first, other), network(other, first)
    assert there.shape == (1,)
    assert float(there) > 1e-4
    assert float(there) == pytest.approx(float(back), rel=1e-5)
    assert float(network(first, first)) == 0.0
    changed = other.clone().requires_grad_()
    network(first, changed).sum().backward()
    assert changed.grad is not None and float(changed.grad.abs().max()) > 0


def test_lpips_of_bytes_takes_one_thread_and_gives_one_number_a_pair(weights_file: Path) -> None:
    before = torch.get_num_threads()
    shown, expected = (np.stack([waves(s), waves(s + 1)]) for s in (0, 0.5))
    pictures = (255 * shown).astype(np.uint8), (255 * expected).astype(np.uint8)
    found = perceptual.lpips_of("lpips", *pictures, weights_file)
    assert len(found) == 2 and all(value > 0 for value in found)
    # Values 0..1 that are not rescaled are what the network sees of a picture of half the contrast, 0.5 to 1.
    paler = [torch.from_numpy(0.5 + picture / 510).permute(0, 3, 1, 2).float() for picture in pictures]
    with torch.no_grad():
        expected_3dgs = lpips.load_lpips(weights_file)(*paler)
    assert perceptual.lpips_of("lpips_3dgs", *pictures, weights_file) == pytest.approx(expected_3dgs.tolist(), rel=1e-4)
    assert torch.get_num_threads() == before


def test_weights_that_do_not_fit_are_refused(weights_file: Path, tmp_path: Path) -> None:
    with np.load(weights_file) as loaded:
        arrays = dict(loaded)

    def refused(changed: dict[str, np.ndarray]) -> str:
        path = tmp_path / "changed.npz"
        np.savez(path, **changed)
        with pytest.raises(EvaluationError) as error:
            lpips.load_lpips(path)
        return str(error.value)

    short = {name: array for name, array in arrays.items() if name != "lin3.model.1.weight"}
    assert "changed.npz: the array lin3.model.1.weight is missing; is this VGG16" in refused(short)
    large = {**arrays, "features.0.bias": np.zeros(100_000, dtype=np.float32)}
    assert "features.0.bias is larger than (64,) can be" in refused(large)
    wrong = {**arrays, "features.0.bias": np.zeros(63, dtype=np.float32)}
    assert "features.0.bias is float32 (63,), expected finite floats (64,)" in refused(wrong)
    endless = {**arrays, "features.0.bias": np.full(64, np.nan, dtype=np.float32)}
    assert "features.0.bias is float32 (64,), expected finite floats (64,)" in refused(endless)
    other = tmp_path / "other.npz"
    other.write_bytes(b"no archive")
    with pytest.raises(EvaluationError, match=r"other.npz: is no .npz of arrays"):
        lpips.load_lpips(other)
    with pytest.raises(EvaluationError, match=r"cannot be read: No such file"):
        lpips.load_lpips(tmp_path / "nowhere.npz")


class FakeMetric:
    """Takes what the real one is given."""

    def __init__(self, **settings: object) -> None:
        self.settings = settings

    def predict(self, shown: np.ndarray, expected: np.ndarray, dim_order: str, frames_per_second: float) -> tuple:
        assert shown.dtype == expected.dtype == np.uint8
        assert (dim_order, self.settings["display_name"]) == ("FHWC", "standard_4k")
        return torch.tensor(10 - frames_per_second / 10), None


def test_cvvdp_gets_bytes_by_frame_and_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    perceptual._cvvdp.cache_clear()
    monkeypatch.setitem(sys.modules, "pycvvdp", SimpleNamespace(cvvdp=FakeMetric))
    video = np.zeros((3, 8, 8, 3), dtype=np.uint8)
    assert perceptual.cvvdp_of(video, video, 30.0) == pytest.approx(7.0)
    perceptual._cvvdp.cache_clear()


def without(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    found = perceptual.importlib.util.find_spec
    monkeypatch.setattr(perceptual.importlib.util, "find_spec", lambda name: None if name in names else found("json"))


def test_what_is_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch, weights_file: Path) -> None:
    without(monkeypatch, "torch", "pycvvdp")
    wanted = usable_metrics(None, None, moving=True)
    drawn = ("psnr", "ssim", "gradient_energy", "tpsnr", "flicker")
    assert wanted.metrics == drawn
    assert wanted.missing == {
        **dict.fromkeys(("lpips", "lpips_3dgs"), "lpips needs PyTorch: pip install 'hushsplat[learn]'"),
        "cvvdp": "cvvdp needs the package of that name: pip install cvvdp",
    }
    without(monkeypatch, "pycvvdp")
    assert "give --lpips-weights FILE.npz" in usable_metrics(None, None, moving=True).missing["lpips"]
    assert "nowhere.npz is no file" in usable_metrics(None, Path("nowhere.npz"), moving=True).missing["lpips"]
    assert usable_metrics(None, weights_file, moving=False).metrics == (*drawn, "lpips", "lpips_3dgs")
    without(monkeypatch)
    assert usable_metrics(None, weights_file, moving=True).metrics == (*drawn, "lpips", "lpips_3dgs", "cvvdp")
    assert usable_metrics(("cvvdp", "psnr"), None, moving=True).metrics == ("psnr", "cvvdp")


def test_a_metric_that_is_asked_for_has_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "pycvvdp")
    with pytest.raises(EvaluationError, match="cvvdp needs the package of that name: pip install cvvdp"):
        usable_metrics(("psnr", "cvvdp"), None, moving=True)
    with pytest.raises(EvaluationError, match=r"--metrics takes of psnr, ssim, .*, cvvdp, got 'vmaf'"):
        usable_metrics(("vmaf",), None, moving=True)
