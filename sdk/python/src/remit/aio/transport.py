"""HTTP/1.1 over persistent connections of an event loop. One attempt goes in, an answer or a failure comes out."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
import ssl
import time
from collections import deque
from email.message import Message
from typing import Any, Callable, Coroutine, Deque, Dict, Iterator, List, Mapping, Optional, TypeVar, Union

from ..credential import Credential, Sealed
from ..errors import RemitError, Unavailable, problem
from ..transport import DIAL_LIMIT, IDLE_CONNECTIONS, LONGEST_ANSWER, Answer, Failure, Kind, named
from ..url import BaseURL
from .connection import Connection

T = TypeVar("T")


class AsyncTransport:
    """Sends requests to one service. The tasks of an event loop share it. After a fork, and in another event loop, which may run at
    the same time in another thread, it opens connections of their own."""

    def __init__(self, base: BaseURL, tls: Optional[ssl.SSLContext]) -> None:
        self._pools: Dict[asyncio.AbstractEventLoop, Deque[Connection]] = {}
        self._base = base
        self._tls = (tls or ssl.create_default_context()) if base.tls else None

    def __del__(self) -> None:  # the user of a from_env method has no AsyncRemit to close
        self._drop_all()

    def url(self, path: str) -> str:
        """Returns the URL of a path, without its query."""
        return self._base.url(path.partition("?")[0])

    async def send(
        self,
        method: str,
        path: str,
        headers: Mapping[str, Union[str, Credential]],
        body: Optional[Sealed],
        end: float,
        most: int = LONGEST_ANSWER,
        refusal: Callable[[int, Message, Sealed], RemitError] = problem,
    ) -> Union[Answer, Failure]:
        """Like Transport.send. A connection whose response was not read completely, also because the caller was cancelled, is
        closed and never used again."""
        if time.monotonic() >= end:
            return Failure(Kind.NOT_SENT, Unavailable("the time given is over"))
        connection = self._take() or await self._connect(end)
        if isinstance(connection, Failure):
            return connection
        try:
            got = await connection.exchange(method, self._base.path + path, headers, body, end, most)
        finally:
            if connection.is_reusable:
                self._keep(connection)
            else:
                connection.drop()
        if isinstance(got, Failure):
            return got
        if got.status in (200, 201, 204):
            return Answer(got.headers, got.body)
        return Failure(Kind.REFUSED, refusal(got.status, got.headers, got.body), got.headers)

    async def close(self) -> None:
        """Closes idle connections."""
        self._drop_all()
        await asyncio.sleep(0)  # the event loop closes them in its next round

    @property
    def _idle(self) -> Deque[Connection]:
        """The idle connections of this event loop."""
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            for closed in [one for one in list(self._pools) if one.is_closed()]:
                _drop(self._pools.pop(closed, deque()))
            pool = self._pools[loop] = deque()
        return pool

    def _drop_all(self) -> None:
        for pool in list(self._pools.values()):
            _drop(pool)

    def _take(self) -> Optional[Connection]:
        """Returns the most recently used idle connection that still seems alive."""
        for connection in _popped(self._idle):
            if connection.is_quiet():
                return connection
            connection.drop()
        return None

    def _keep(self, connection: Connection) -> None:
        connection.rest()
        pool = self._idle
        pool.append(connection)
        try:
            if len(pool) > IDLE_CONNECTIONS or pool[0].is_old():
                pool.popleft().drop()
        except IndexError:  # another event loop closes the client
            pass

    async def _connect(self, end: float) -> Union[Connection, Failure]:
        try:
            return await self._dial(end)
        except ssl.SSLCertVerificationError as e:
            said, kind = f"the certificate is not trusted: {e.verify_message}", Kind.DISTRUSTED
        except (OSError, UnicodeError) as e:  # UnicodeError: the host name is invalid
            said, kind = f"no connection: {named(e)}", Kind.NOT_SENT
        return Failure(kind, Unavailable(said))

    async def _dial(self, end: float) -> Connection:
        """Tries the addresses of the host in turn."""
        last = OSError("the host has no address")
        for address in await _within(end - time.monotonic(), _addresses(self._base), lambda _: None):
            left = min(end - time.monotonic(), DIAL_LIMIT)
            try:
                return await _within(left, Connection.open(self._base, address, self._tls), Connection.drop)
            except ssl.SSLCertVerificationError:
                raise
            except OSError as e:
                last = e
        raise last


def _popped(pool: Deque[Connection]) -> Iterator[Connection]:
    """Takes the connections out of a pool, the latest first."""
    while True:
        try:
            connection = pool.pop()
        except IndexError:  # another event loop closes the client
            return
        yield connection


def _drop(pool: Deque[Connection]) -> None:
    for connection in _popped(pool):
        connection.drop()


async def _addresses(base: BaseURL) -> List[str]:
    """Returns the addresses of the host. asyncio resolves a name on a thread of its own; an address needs none."""
    try:
        return [str(ipaddress.ip_address(base.host))]
    except ValueError:
        found = await asyncio.get_running_loop().getaddrinfo(base.host, base.port, type=socket.SOCK_STREAM)
    return [str(place[0]) for *_, place in found]


async def _within(seconds: float, steps: Coroutine[Any, Any, T], drop: Callable[[T], None]) -> T:
    """Returns the result of the steps. Drops what they still return after the time is over, or the caller was cancelled: unlike
    asyncio.wait_for, which may return a result then and swallow the cancellation."""
    task = asyncio.get_running_loop().create_task(steps)
    try:
        await asyncio.wait({task}, timeout=seconds)
        if task.done():
            return task.result()
    except asyncio.CancelledError:
        _abandon(task, drop)
        raise
    _abandon(task, drop)
    raise TimeoutError(errno.ETIMEDOUT, "the time is over")


def _abandon(task: asyncio.Task[T], drop: Callable[[T], None]) -> None:
    def ended(task: asyncio.Task[T]) -> None:
        if not task.cancelled() and task.exception() is None:
            drop(task.result())

    task.add_done_callback(ended)
    task.cancel()
