"""Watching a page: what its console says, and which frame it shows."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page


def listen(page: Page, console_errors: list[str]) -> None:
    page.set_default_timeout(60_000)
    page.on("console", lambda said: console_errors.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: console_errors.append(str(error)))


def wait_for_frame(page: Page, condition: str = "true") -> dict[str, Any]:
    """Wait until a frame is shown of which a condition on `frame` holds; gives what the server said about it."""
    found = page.wait_for_function(
        f"() => {{ const frame = window.hushsplat?.stage.header; return frame && ({condition}) ? frame : null; }}"
    )
    return found.json_value()
