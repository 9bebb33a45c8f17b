"""`hushsplat view`: walk through a scene in the browser."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from hushsplat.cli.console import say, status
from hushsplat.cli.flags import (
    Color,
    EngineName,
    Flag,
    MaybeInt,
    MaybePath,
    MaybeText,
    MaybeUp,
    SceneName,
    choose_instruction_set,
    chosen_engine,
)
from hushsplat.cli.render import BACKGROUNDS
from hushsplat.io.captures.capture import load_capture
from hushsplat.io.captures.photographs import is_file
from hushsplat.io.scenes.sog_stream import StreamedSog
from hushsplat.io.weights import read_weights
from hushsplat.methods import METHODS
from hushsplat.scenes import NamedScene, coarse_scene, is_large, scene_argument, scene_name, streamed_file
from hushsplat.synth import home_camera, view_cameras
from hushsplat.types.camera import Camera
from hushsplat.types.capture import View as Photograph
from hushsplat.types.errors import HushsplatError
from hushsplat.types.options import NEAR, RenderOptions
from hushsplat.viewer.refine import Refiner, default_budget
from hushsplat.viewer.scene_entry import SceneEntry
from hushsplat.viewer.service import ViewerOptions

DESCRIPTION = """Walk through a scene in the browser.

Prints a link and opens it. The page shows the scene, denoised while the camera moves: orbit, fly, touch; compare two
methods side by side, record camera tracks and render them to video; ? lists the keys. Ctrl-C ends it.

It listens on this machine only. With --host others can open the link, too: it holds a token.

Examples of use:
  hushsplat view garden.ply
  hushsplat view synth:500k                           our own scene, no file needed
  hushsplat view bonsai.splat --capture bonsai/       with the cameras of the capture in its menu
  hushsplat view garden.ply --host 0.0.0.0 --no-browser
"""
if TYPE_CHECKING:
    from hushsplat.viewer.launch import Viewer

    Method = str
else:  # the names become the choices that --help lists
    Method = Literal[tuple(METHODS)]


@dataclass(frozen=True)
class View:
    """Walk through a scene in the browser."""

    scene: SceneName  # the scene; or synth:500k for a scene made by code
    host: str = "127.0.0.1"  # address to listen on; 0.0.0.0 is all of this machine's
    port: MaybeInt = None  # 0: any that is free; 8128 or the next free one if not said
    no_browser: Flag = False  # print the link, open nothing
    capture: MaybePath = None  # cameras to go to: a capture (folder) or list of cameras (.json)
    up: MaybeUp = None  # which way is up; a guess if not said, and the page can change it
    method: Method = "hush"  # that the page begins with
    weights: MaybePath = None  # of paper and temporal: a .safetensors file; the package's own if not said
    background: Color = "black"  # behind the scene, RGB 0..1
    near: float = NEAR  # world units: nothing nearer than this is drawn; small scenes have a nearer one if not said
    threads: int = 0  # 0: all cores
    max_upload_mb: int = 2048  # largest file that the page may open; 0: none
    max_clients: int = 32  # pages that may be open at once
    max_memory_mb: int = 0  # of pages, videos and dropped scenes together; 0: a quarter of the machine's
    lod: MaybeInt = None  # one level of detail of a streamed SOG, 0 is the finest; finer where one looks if not said
    budget: MaybeInt = None  # of a streamed SOG: most Gaussians at once; by free memory if not said
    engine: EngineName = "cpu"  # gpu needs hushsplat[gpu]; auto: gpu if there is one that is no software
    adapter: MaybeText = None  # of the gpu engine: number or part of the name, see hushsplat info --engines
    isa: MaybeText = None  # instruction set of the engine; the best one if not said
    quiet: Flag = False  # print nothing but the link

    def run(self) -> None:
        """Load, serve, and wait for Ctrl-C."""
        # The server is imported when it is started: other commands do not wait for it.
        from hushsplat.viewer.launch import fill, service_of, show, tell_progress, telling_failures, waiting

        choose_instruction_set(self.isa)
        if min(self.max_upload_mb, self.max_memory_mb) < 0 or self.max_clients < 1:
            raise HushsplatError("--max-upload-mb, --max-memory-mb must be at least 0 and --max-clients at least 1.")
        options, drawing = self._options(), chosen_engine(self.engine, self.adapter)
        streamed = streamed_file(self.scene) if self.lod is None else None
        if self.budget is not None and (streamed is None or self.budget < 1):
            raise HushsplatError("--budget is a number of Gaussians > 0 of a streamed SOG; leave it out.")
        at_once = streamed is None and not is_large(self.scene)
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as well as Ctrl-C does
        if at_once:
            with status(f"reading {self.scene}", self.quiet):
                scene = scene_argument(self.scene, self.lod)
                cameras = self._cameras(scene)
                viewer = show(scene, cameras, self._upward(scene, cameras), self.host, self.port, options, drawing)
            self._serve(viewer, scene)
            return
        viewer = waiting(scene_name(self.scene), self.host, self.port, options, drawing)
        with viewer:
            self._open(viewer)
            reading = status(f"reading {self.scene}", self.quiet, partial(tell_progress, viewer))
            with telling_failures(viewer, self.scene), reading:
                sog = None if streamed is None else StreamedSog(streamed)
                scene = scene_argument(self.scene, self.lod) if sog is None else coarse_scene(self.scene, sog)
                cameras = self._cameras(scene)
                up = self._upward(scene, cameras)
                entry = SceneEntry.of(scene.gaussians, scene.name, drawing, options.render, cameras, up, scene.framing)
            budget = default_budget(scene.gaussians) if self.budget is None else self.budget
            fill(viewer, entry, None if sog is None else Refiner(service_of(viewer), sog, budget))
            self._serve(viewer, scene, opened=True)

    def _open(self, viewer: Viewer) -> None:
        print(viewer.url, flush=True)
        if not self.no_browser:
            viewer.open_browser()

    def _serve(self, viewer: Viewer, scene: NamedScene, opened: bool = False) -> None:
        """Print the link, and wait until Ctrl-C, which is how it is meant to end."""
        with suppress(KeyboardInterrupt), viewer:
            if not opened:
                self._open(viewer)
            if not self.quiet:
                say(f"shows {scene.name}, {len(scene.gaussians):,} Gaussians; Ctrl-C ends it")
            viewer.wait()

    def _options(self) -> ViewerOptions:
        background = BACKGROUNDS[self.background] if isinstance(self.background, str) else self.background
        return ViewerOptions(
            method=self.method,
            render=RenderOptions(background, self.near, self.threads),
            weights=None if self.weights is None else read_weights(self.weights),
            max_upload_bytes=self.max_upload_mb << 20,
            max_clients=self.max_clients,
            max_memory_bytes=self.max_memory_mb << 20,
        )

    def _upward(self, scene: NamedScene, cameras: Sequence[tuple[str, Camera]] | Sequence[Photograph]) -> Any:
        """As was asked for, or by the cameras of the capture, or as far as the scene knows."""
        if self.up is not None or self.capture is None:
            return scene.known_up if self.up is None else self.up
        return scene.up_of([one.camera if isinstance(one, Photograph) else one[1] for one in cameras])

    def _cameras(self, scene: NamedScene) -> Sequence[tuple[str, Camera]] | Sequence[Photograph]:
        if self.capture is not None:
            views = load_capture(self.capture, require_photographs=False).views
            if all(is_file(view.image_path) for view in views):
                return views
            return [(view.name, view.camera) for view in views]
        if not scene.is_own:
            return ()
        return [("Home", home_camera()), *((f"View {i + 1}", camera) for i, camera in enumerate(view_cameras(24)))]
