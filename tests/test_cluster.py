"""Jobs on a Ray cluster of two nodes on this machine, one of which is killed while it works."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import ray
from ray import cloudpickle
from ray.cluster_utils import Cluster

from hushsplat import jobs
from hushsplat.cli.main import main
from hushsplat.evaluation.results import read_results
from hushsplat.jobs import Processes, RayCluster, executor, run_jobs
from hushsplat.types.errors import JobError, SceneError

SECONDS = 120.0  # that anything may take


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # nodes cannot import tests
    small = {"num_cpus": 1, "object_store_memory": 80_000_000, "include_dashboard": False}
    started = Cluster(initialize_head=True, head_node_args=small)
    ray.init(started.address, log_to_driver=False, logging_level="ERROR")
    yield started
    ray.shutdown()
    started.shutdown()


@dataclass(frozen=True)
class Waiting:
    """Says on which node it runs, and waits there until the folder has a file `go`."""

    number: int
    group: str = ""
    cost: int = 1
    takes_all_cores: bool = False

    def files(self, folder: Path) -> list[Path]:
        return []

    def run(self, folder: Path, threads: int) -> dict:
        node = ray.get_runtime_context().get_node_id()
        (folder / f"{self.number} {node} {os.getpid()}").touch()
        ends = time.monotonic() + SECONDS
        while not (folder / "go").exists() and time.monotonic() < ends:
            time.sleep(0.05)
        return {"square": self.number**2, "threads": threads}


@dataclass(frozen=True)
class Failing(Waiting):
    def run(self, folder: Path, threads: int) -> dict:
        raise SceneError("garden.ply: is no scene.")


def starts(folder: Path) -> list[list[str]]:
    return [path.name.split() for path in folder.iterdir() if path.name[0].isdigit()]


def test_a_node_that_dies_loses_only_its_running_jobs(cluster: Cluster, tmp_path: Path) -> None:
    second = cluster.add_node(num_cpus=1, object_store_memory=80_000_000)
    cluster.wait_for_nodes()
    killed = threading.Thread(target=kill_when_busy, args=(cluster, second, tmp_path))
    killed.start()
    found = run_jobs([Waiting(number) for number in range(5)], tmp_path, RayCluster(cluster.address))
    killed.join()
    assert found == [{"square": number**2, "threads": 1} for number in range(5)]
    begun = starts(tmp_path)
    on_second = {number for number, node, _ in begun if node == second.node_id}
    again = {number for number, *_ in begun if sum(other[0] == number for other in begun) > 1}
    assert len(on_second) == 1 and again == on_second  # its one job ran again, no other did
    assert not list(tmp_path.glob(".shared-*"))
    assert run_jobs([Waiting(3)], tmp_path, Processes(1)) == [found[3]]  # stored: local processes find it


def kill_when_busy(cluster: Cluster, node: Any, folder: Path) -> None:
    ends = time.monotonic() + SECONDS
    while len({begun[1] for begun in starts(folder)}) < 2 and time.monotonic() < ends:
        time.sleep(0.05)
    cluster.remove_node(node, allow_graceful=False)
    for _, where, process in starts(folder):
        if where == node.node_id:  # a machine that dies takes its processes along
            with suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)
    (folder / "go").touch()


def test_an_evaluation_on_a_cluster_is_that_of_local_processes(cluster: Cluster, tmp_path: Path) -> None:
    words = ["evaluate", "navigation", "synth:1k", "--methods", "raw", "hush", "--metrics", "psnr", "flicker"]
    words += ["--width", "48", "--height", "32", "--fps", "30", "--frames", "2", "--quiet", "--keep"]
    assert main([*words, "-o", str(tmp_path / "local.json"), "--workers", "1"]) == 0
    assert main([*words, "-o", str(tmp_path / "ray.json"), "--cluster", cluster.address]) == 0
    local, remote = (read_results(tmp_path / name) for name in ("local.json", "ray.json"))
    assert (local.rows, local.series) == (remote.rows, remote.series)
    assert frames_of(tmp_path / "local.files") == frames_of(tmp_path / "ray.files")


def frames_of(folder: Path) -> dict[Path, bytes]:
    found = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert {path.suffix for path in found} >= {".json", ".png", ".npy"}
    return {path: data for path, data in found.items() if path.suffix != ".mp4"}


def test_errors_of_nodes_are_those_of_the_package(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SceneError, match=r"^garden\.ply: is no scene\.$"):
        run_jobs([Failing(1)], tmp_path, RayCluster(cluster.address))
    monkeypatch.setattr(jobs, "__version__", "0.0.1")
    with pytest.raises(JobError, match=r"has hushsplat .*, not 0\.0\.1; install the same on every node"):
        run_jobs([Waiting(1)], tmp_path, RayCluster(cluster.address))
    with pytest.raises(JobError, match=r"does not see .*; share them with every node, under the same path"):
        jobs._run_on_node(Waiting(1), tmp_path, 1, tmp_path, tmp_path / ".shared-none", "0.0.1")


def test_what_a_cluster_needs_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = jobs.importlib.util.find_spec
    monkeypatch.setattr(jobs.importlib.util, "find_spec", lambda name: None if name == "ray" else found(name))
    with pytest.raises(JobError, match=r"--cluster needs Ray: pip install 'hushsplat\[cluster\]'"):
        run_jobs([Waiting(1)], tmp_path, executor(cluster="auto"))
    monkeypatch.undo()
    monkeypatch.setattr(ray, "is_initialized", lambda: False)

    def no_cluster(*arguments: object, **options: object) -> None:
        raise ConnectionError("Could not find any running Ray instance.\nMore.")

    monkeypatch.setattr(ray, "init", no_cluster)
    with pytest.raises(JobError, match=r"--cluster auto: no Ray cluster is there \(Could not .*; start one with `ray"):
        run_jobs([Waiting(1)], tmp_path, executor(cluster="auto"))
