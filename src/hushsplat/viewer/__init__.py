"""The viewer: walk through a scene in the browser (docs/viewer.md)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import Gaussians

if TYPE_CHECKING:  # the server is imported when it is started: a script that only renders does not wait for it
    from hushsplat.viewer.launch import Viewer
    from hushsplat.viewer.service import ViewerOptions

__all__ = ["view"]


def view(
    scene: Gaussians | str | os.PathLike[str],
    *,
    name: str | None = None,  # what the page calls it; None: the name of the file
    cameras: Sequence[Camera | tuple[str, Camera]] = (),  # places to look from, the first is where a visit begins
    up: Any = None,  # a direction of three numbers, or "-y", "y", "z"; None: a guess
    host: str = "127.0.0.1",  # another one lets others in, by a link with a token
    port: int | None = None,  # 0: any; None: 8128, or the next that is free
    open_browser: bool = False,
    options: ViewerOptions | None = None,
) -> Viewer:
    """Show a scene in the browser. Returns at once; `.url` is the link, `.wait()` stays, `.close()` ends it."""
    from hushsplat.io.scenes.scene import load
    from hushsplat.viewer.launch import Viewer
    from hushsplat.viewer.scene_entry import Exhibit
    from hushsplat.viewer.service import ViewerOptions

    gaussians = scene if isinstance(scene, Gaussians) else load(scene)
    if name is None:
        name = "scene" if isinstance(scene, Gaussians) else Path(scene).name
    places = [(f"Camera {i + 1}", one) if isinstance(one, Camera) else one for i, one in enumerate(cameras)]
    viewer = Viewer(Exhibit.of(gaussians, name, places, up), host, port, options or ViewerOptions())
    if open_browser:
        viewer.open_browser()
    return viewer
