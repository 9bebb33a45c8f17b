"""A procedural scene: a furnished room that opens onto a garden, and cameras for it."""

from hushsplat.synth.cameras import home_camera, view_cameras, walk_track
from hushsplat.synth.scene import room_and_garden

__all__ = ["home_camera", "room_and_garden", "view_cameras", "walk_track"]
