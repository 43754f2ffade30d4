"""The base URL of the service, and the paths of its objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional
from urllib.parse import quote, urlencode, urlsplit


@dataclass(frozen=True)
class BaseURL:
    """The parts of a base URL."""

    tls: bool
    host: str
    port: int
    authority: str  # as the Host header has it
    path: str  # without a slash at the end

    def url(self, path: str) -> str:
        """Returns the URL of a path below it."""
        return f"{'https' if self.tls else 'http'}://{self.authority}{self.path}{path}"


def parse(base_url: str) -> BaseURL:
    """Parses a base URL such as https://remit.example.com. No error quotes it, because it may contain a password."""
    if "://" not in base_url:
        raise ValueError("the base URL needs http:// or https:// before the host")
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = None
    if (
        not host
        or not base_url.isascii()
        or any(c <= " " or c == "\x7f" for c in base_url)
        or parts.scheme not in ("http", "https")
        or "@" in parts.netloc
        or "?" in base_url
        or "#" in base_url
    ):
        raise ValueError("the base URL must be https://host or http://host, with a port and a path at most")
    tls = parts.scheme == "https"
    return BaseURL(tls, host, port or (443 if tls else 80), parts.netloc, parts.path.rstrip("/"))


def path(*segments: str) -> str:
    """Returns a path under /v1. It escapes the segments, so no id can lead to another path."""
    return "/v1/" + "/".join(_segment(s) for s in segments)


def _segment(text: str) -> str:
    if not isinstance(text, str) or text in ("", ".", ".."):
        raise ValueError("an id is a text, and not empty")
    return quote(text, safe="")


def with_query(of: str, **parameters: Optional[str]) -> str:
    """Returns the path with the parameters that are neither None nor empty."""
    query = urlencode({name: value for name, value in parameters.items() if value})
    return f"{of}?{query}" if query else of
