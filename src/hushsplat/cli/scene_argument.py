"""What a command takes for a scene."""

from hushsplat.scenes import PREFIX, NamedScene, scene_argument

__all__ = ["PREFIX", "NamedScene", "scene_argument"]
