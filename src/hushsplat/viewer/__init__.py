"""The viewer: a scene in the browser, rendered by this machine (docs/viewer.md)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from jaxtyping import Float
from numpy import ndarray as Array

from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import Gaussians

if TYPE_CHECKING:  # the server is imported when it is started: a script that only renders does not wait for it
    from hushsplat.engines.base import Engine
    from hushsplat.viewer.launch import Viewer
    from hushsplat.viewer.service import ViewerOptions

__all__ = ["view"]


def view(
    scene: Gaussians | str | os.PathLike[str],
    *,
    name: str | None = None,
    cameras: Sequence[Camera | tuple[str, Camera]] = (),
    up: str | Sequence[float] | Float[Array, " 3"] | None = None,
    host: str = "127.0.0.1",
    port: int | None = None,
    open_browser: bool = False,
    options: ViewerOptions | None = None,
    on: str | Engine = "cpu",
    proxy: str | None = None,
) -> Viewer:
    """Show a scene in the browser; returns as soon as the server listens.

    Args:
        scene: Gaussians, a file, `synth:500k` or `demo:`.
        name: of the scene on the page; None: that of the file.
        cameras: to go to from the page, with or without names; it begins at the first. None: those of
            `find_places`.
        up: a direction of three numbers, or its name: "y", "-y", "z", ...; None takes that of the cameras beside a
            file that 3DGS wrote, or guesses.
        host: address to listen on. One that others can reach makes a link with a token.
        port: 0: any free one; None: 8128, or the next that is free.
        open_browser: open the link.
        options: method to begin with, rendering, weights and limits.
        on: the engine, or its name.
        proxy: where a notebook's proxy shows ports of this machine, such as "/user/me/proxy" (jupyter-server-proxy);
            None: JupyterHub's own, if this is one of its notebooks. The frame in the notebook then goes through it.

    Returns:
        The running viewer. `.url` is the link, `.wait()` blocks until Ctrl-C, `.close()` ends it.
    """
    from hushsplat.engines.base import engine
    from hushsplat.scenes import NamedScene, scene_argument
    from hushsplat.viewer.launch import show
    from hushsplat.viewer.service import ViewerOptions

    drawing = engine(on) if isinstance(on, str) else on
    if isinstance(scene, Gaussians):
        named = NamedScene("scene", scene, is_own=False)
    else:
        named = scene_argument(os.fspath(scene))
    places = [(f"Camera {i + 1}", one) if isinstance(one, Camera) else one for i, one in enumerate(cameras)]
    named = named if name is None else replace(named, name=name)
    if proxy is None and (hub := os.environ.get("JUPYTERHUB_SERVICE_PREFIX")):
        proxy = f"{hub.rstrip('/')}/proxy"
    up = named.known_up if up is None else up
    viewer = show(named, places, up, host, port, options or ViewerOptions(), drawing, proxy)
    if open_browser:
        viewer.open_browser()
    return viewer
