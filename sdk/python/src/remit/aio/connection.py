"""One connection to the service, used by one call at a time: HTTP/1.1 on asyncio's streams."""

from __future__ import annotations

import asyncio
import os
import select
import ssl
import time
from dataclasses import dataclass
from email.message import Message
from typing import Any, Mapping, Optional, Tuple, Union

from ..credential import Credential, Sealed
from ..errors import RemitError, Unavailable
from ..transport import IDLE_LIMIT, MOST_HINTS, PIECE, Failure, Kind, named
from ..url import BaseURL

_LONGEST_HEAD = 64 << 10  # bytes
_EARLY_ANSWER = 1.0  # seconds to wait for the response to a request that could not be sent completely
_DRAINED = 0  # bytes that the kernel has not taken yet


@dataclass(frozen=True)
class Raw:
    """A final response."""

    status: int
    headers: Message
    body: Sealed


class _Malformed(Exception):
    """A response that is not HTTP."""


class _Reader(asyncio.StreamReader):
    """Counts the bytes that arrived and are unread."""

    unread = 0  # bytes

    def feed_data(self, data: Any) -> None:
        self.unread += len(data)
        super().feed_data(data)

    async def read(self, n: int = -1) -> bytes:
        return self._count(await super().read(n))

    async def readexactly(self, n: int) -> bytes:
        return self._count(await super().readexactly(n))

    async def readuntil(self, separator: Any = b"\n") -> bytes:
        return self._count(await super().readuntil(separator))

    def _count(self, data: bytes) -> bytes:
        self.unread -= len(data)
        return data


class Connection:
    """One connection to the service."""

    def __init__(self, authority: str, reader: _Reader, writer: asyncio.StreamWriter, is_secure: bool) -> None:
        self._authority = authority
        self._reader = reader
        self._writer = writer
        self._is_secure = is_secure
        self._loop = asyncio.get_running_loop()
        self._process = os.getpid()
        self._idle_since = 0.0
        self._is_late = False  # whether the deadline of the call has closed it
        self.is_reusable = False

    @classmethod
    async def open(cls, base: BaseURL, address: str, tls: Optional[ssl.SSLContext]) -> Connection:
        """Connects to one address of the host."""
        loop = asyncio.get_running_loop()
        reader = _Reader(limit=_LONGEST_HEAD, loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport, _ = await loop.create_connection(
            lambda: protocol, address, base.port, ssl=tls, server_hostname=base.host if tls else None
        )
        transport.set_write_buffer_limits(_DRAINED)
        return cls(base.authority, reader, asyncio.StreamWriter(transport, protocol, reader, loop), tls is not None)

    def rest(self) -> None:
        """Waits for its next call."""
        self._idle_since = time.monotonic()

    def is_old(self) -> bool:
        return time.monotonic() - self._idle_since > IDLE_LIMIT

    def is_quiet(self) -> bool:
        """Returns whether the connection is reusable: since the last response nothing has arrived, neither the end of the
        connection nor an unexpected response."""
        is_ours = self._process == os.getpid() and self._loop is asyncio.get_running_loop()
        if not is_ours or self.is_old() or self._writer.is_closing():
            return False
        return self._reader.unread == 0 and not self._reader.at_eof() and not _is_readable(self._writer)

    def drop(self) -> None:
        """Closes the connection at once, or, from another thread than its event loop's, as soon as that gets to it."""
        self.is_reusable = False
        if self._process != os.getpid():
            return  # it is the parent's
        abort = self._writer.transport.abort
        try:
            if _is_current(self._loop):
                abort()
            else:
                self._loop.call_soon_threadsafe(abort)
        except RuntimeError:  # its event loop is closed
            pass

    async def exchange(
        self,
        method: str,
        target: str,
        headers: Mapping[str, Union[str, Credential]],
        body: Optional[Sealed],
        end: float,
        most: int,
    ) -> Union[Raw, Failure]:
        """Sends a request and reads its response."""
        self.is_reusable = self._is_late = False
        deadline = self._loop.call_later(max(end - time.monotonic(), 0), self._expire)
        try:
            failure = await self._send(method, target, headers, body)
            if failure is not None:
                deadline.cancel()
                deadline = self._loop.call_later(min(end - time.monotonic(), _EARLY_ANSWER), self._expire)
            got = await self._answer(most)
        finally:
            deadline.cancel()
        if failure is not None:
            self.is_reusable = False
            return failure if isinstance(got, Failure) else got
        return got

    def _expire(self) -> None:
        self._is_late = True
        self._writer.transport.abort()

    async def _send(
        self, method: str, target: str, headers: Mapping[str, Union[str, Credential]], body: Optional[Sealed]
    ) -> Optional[Failure]:
        """Sends a request. A failure means that the kernel has not taken the whole request, so the service has not either. Inside
        TLS this is unknown: then the request counts as sent."""
        said = "the connection is closed"
        request = _request(self._authority, method, target, headers, body)
        is_open = not self._writer.is_closing()  # a closed one ignores what is written, and has nothing left to send either
        if is_open:
            self._writer.write(request.open())
            is_open = self._is_secure or not self._writer.is_closing()
        if is_open and not self._is_secure and self._writer.transport.get_write_buffer_size() == 0:
            return None
        try:
            await self._writer.drain()
            if is_open and (self._is_secure or not self._writer.is_closing()):
                return None
        except OSError as e:
            said = named(e)
        if is_open and self._is_secure:
            return None
        return Failure(Kind.NOT_SENT, Unavailable(f"the request could not be sent: {'the time is over' if self._is_late else said}"))

    async def _answer(self, most: int) -> Union[Raw, Failure]:
        try:
            version, status, headers = await self._head()
            text, is_complete = await self._body(status, headers, most)
        except (OSError, EOFError, asyncio.LimitOverrunError, ValueError, _Malformed) as e:
            return Failure(Kind.LOST, Unavailable(f"no answer: {self._named(e)}"))
        if text is None:
            return Failure(Kind.UNREADABLE, RemitError(f"unreadable answer: it is longer than {most >> 20} MiB"))
        stays = version == "HTTP/1.1" and "close" not in (headers.get("Connection") or "").lower()
        self.is_reusable = stays and is_complete and status >= 200
        return Raw(status, headers, Sealed(text))

    async def _head(self) -> Tuple[str, int, Message]:
        """Reads the head of the final response, and skips interim ones, such as a proxy's 103 Early Hints."""
        for _ in range(MOST_HINTS + 1):
            version, status, headers = _parsed(await self._reader.readuntil(b"\r\n\r\n"))
            if not 100 <= status < 200 or status == 101:
                return version, status, headers
        raise _Malformed("too many hints")

    async def _body(self, status: int, headers: Message, most: int) -> Tuple[Optional[bytes], bool]:
        """Reads a body, and returns whether the next response can follow it. None: it is longer than most."""
        if status < 200 or status in (204, 304):
            return b"", True
        if "chunked" in (headers.get("Transfer-Encoding") or "").lower():
            return await self._chunks(most), True
        length = headers.get("Content-Length")
        if length is None or not (length.isascii() and length.isdigit()):
            return await self._rest(most), False
        if len(length) > 12 or int(length) > most:
            return None, False
        return await self._reader.readexactly(int(length)), True

    async def _chunks(self, most: int) -> Optional[bytes]:
        pieces = bytearray()
        while True:
            line = (await self._reader.readuntil(b"\n")).partition(b";")[0].strip()
            size = int(line, 16) if line.isalnum() else -1  # int() takes signs, spaces and underscores, too
            if size < 0:
                raise _Malformed("a chunk without a size")
            if len(pieces) + size > most:
                return None
            if size == 0:
                break
            pieces += await self._reader.readexactly(size)
            if await self._reader.readexactly(2) != b"\r\n":
                raise _Malformed("a chunk of another size")
        while (await self._reader.readuntil(b"\n")).strip():  # trailers
            pass
        return bytes(pieces)

    async def _rest(self, most: int) -> Optional[bytes]:
        pieces = bytearray()
        while True:
            piece = await self._reader.read(PIECE)
            if not piece:
                if self._is_late:
                    raise EOFError
                return bytes(pieces)
            pieces += piece
            if len(pieces) > most:
                return None

    def _named(self, e: Exception) -> str:
        return "the time is over" if self._is_late else named(e)


def _request(
    authority: str, method: str, target: str, headers: Mapping[str, Union[str, Credential]], body: Optional[Sealed]
) -> Sealed:
    content = body or Sealed(b"")
    lines = [f"{method} {target} HTTP/1.1", f"Host: {authority}"]
    lines += [f"{name}: {value.reveal() if isinstance(value, Credential) else value}" for name, value in headers.items()]
    if body is not None or method != "GET":
        lines.append(f"Content-Length: {len(content.open())}")
    is_safe = " " not in target and all(line.isprintable() for line in lines)
    head = Sealed("\r\n".join([*lines, "", ""]).encode("latin-1", "strict") if is_safe else b"")
    del lines
    if not is_safe:
        raise ValueError("a header or an address contains a control character")
    return Sealed(head.open() + content.open())


def _parsed(head: bytes) -> Tuple[str, int, Message]:
    status_line, *lines = head.decode("latin-1").split("\r\n")
    version, _, status = status_line.partition(" ")
    code = status[:3]
    if not version.startswith("HTTP/1.") or not (code.isascii() and code.isdigit() and len(code) == 3):
        raise _Malformed("no status line")
    headers = Message()
    for line in lines[:-2]:
        name, colon, value = line.partition(":")
        if not colon or line[0] in " \t":
            raise _Malformed("no header")
        headers[name] = value.strip()
    return version, int(code), headers


def _is_current(loop: asyncio.AbstractEventLoop) -> bool:
    """Returns whether this thread may touch what belongs to the event loop."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return not loop.is_running()


def _is_readable(writer: asyncio.StreamWriter) -> bool:
    """Returns whether something has arrived that the event loop has not read yet."""
    raw = writer.get_extra_info("socket")
    if raw is None or not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(raw.fileno(), select.POLLIN)
    return bool(poll.poll(0))
