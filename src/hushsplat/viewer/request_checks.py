"""Checks of every request (Host, Origin, token), and the rate limit of messages."""

from __future__ import annotations

import hmac
import ipaddress
import time
from urllib.parse import urlsplit

from aiohttp import web

LOOPBACK_NAMES = ("localhost",)


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine reach a server that is bound to this host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() in LOOPBACK_NAMES


def refusal(request: web.Request, token: str | None, is_proxied: bool = False) -> str | None:
    """Why a request is refused, or None.

    Args:
        request: before anything else has looked at it.
        token: that it has to carry; None on the loopback address, where none is needed.
        is_proxied: whether pages of another site, a proxy of notebooks, may ask; they need the token.
    """
    named = _host_of(f"//{request.host}")
    if named is None:
        return "the Host of the request is no name of a host."
    if token is None and not is_loopback(named):
        # DNS rebinding: a foreign page can give its own name our address; its requests then carry that name.
        return "this viewer answers to localhost only; open the link that it printed."
    origin = request.headers.get("Origin")
    if origin is not None and not is_proxied and (_host_of(origin) is None or urlsplit(origin).netloc != request.host):
        return "this viewer answers to its own page only."
    if token is not None and not hmac.compare_digest(request.query.get("token", "").encode(), token.encode()):
        return "the token in the link is missing or wrong; open the link that the viewer printed."
    return None


def _host_of(url: str) -> str | None:
    """The host in a URL, empty if there is none; None for what is no URL, such as "//["."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return None


class RateLimit:
    """A token bucket: so many events at once, and then so many a second."""

    def __init__(self, per_second: float, at_once: float) -> None:
        self._per_second = per_second
        self._at_once = self._left = at_once
        self._at = time.monotonic()

    def allows(self) -> bool:
        """Count one event."""
        now = time.monotonic()
        self._left = min(self._at_once, self._left + (now - self._at) * self._per_second)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
