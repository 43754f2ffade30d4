"""HTTP/1.1 over persistent connections. One attempt goes in, an answer or a failure comes out."""

from __future__ import annotations

import enum
import http.client
import io
import os
import socket
import ssl
import time
from collections import deque
from dataclasses import dataclass, field
from email.message import Message
from http import HTTPStatus
from typing import Any, Callable, Deque, Mapping, Optional, Tuple, Union

from .credential import Credential, Sealed
from .errors import RemitError, Unavailable, problem
from .url import BaseURL
from .wire import Malformed

DIAL_LIMIT = 5.0  # seconds, for one address of the host
# Seconds that a connection may be idle. It is shorter than the service's idle timeout, so that the service does not close a
# connection that the SDK is about to use.
IDLE_LIMIT = 30.0
IDLE_CONNECTIONS = 256  # enough for the concurrent calls of a host full of agents
LONGEST_ANSWER = 1 << 20  # bytes
MOST_HINTS = 16  # interim responses, such as a proxy's 103 Early Hints
PIECE = 1 << 16


class Kind(enum.Enum):
    """How an attempt failed."""

    REFUSED = "an error response"
    NOT_SENT = "the request was not sent completely: the service cannot have processed it"
    DISTRUSTED = "the server's certificate is not trusted"
    LOST = "the request was sent, and no complete response arrived"
    UNREADABLE = "a response that violates the API description"
    NO_TOKEN = "no access token to send the request with"


@dataclass(frozen=True)
class Failure:
    """A failed attempt. Functions return failures instead of raising them, because a traceback holds the request and with it
    the credential."""

    kind: Kind
    error: RemitError
    headers: Message = field(default_factory=Message)  # of the response; empty if there was none


@dataclass(frozen=True)
class Answer:
    """A successful response, read completely."""

    headers: Message
    body: Sealed

    def text(self) -> str:
        """Returns a response that is no JSON. Raises Malformed unless it is UTF-8."""
        try:
            return self.body.open().decode()
        except UnicodeDecodeError:
            raise Malformed("it is not UTF-8") from None


class Transport:
    """Sends requests to one service. Threads share it. A forked process may share it too, because it does not use the
    parent's connections."""

    def __init__(self, base: BaseURL, tls: Optional[ssl.SSLContext]) -> None:
        self._idle: Deque[_Connection] = deque()  # its methods are atomic
        self._base = base
        self._tls = (tls or ssl.create_default_context()) if base.tls else None

    def __del__(self) -> None:  # the user of a from_env method has no Client to close
        self.close()

    def url(self, path: str) -> str:
        """Returns the URL of a path, without its query."""
        return self._base.url(path.partition("?")[0])

    def send(
        self,
        method: str,
        path: str,
        headers: Mapping[str, Union[str, Credential]],
        body: Optional[Sealed],
        end: float,
        most: int = LONGEST_ANSWER,
        refusal: Callable[[int, Message, Sealed], RemitError] = problem,
    ) -> Union[Answer, Failure]:
        """Sends one request without retries and reads its response of at most so many bytes. end is the deadline on the monotonic
        clock. refusal reads an error response."""
        if time.monotonic() >= end:
            return Failure(Kind.NOT_SENT, Unavailable("the time given is over"))
        connection = self._take() or self._connect(end)
        if isinstance(connection, Failure):
            return connection
        connection.wire.end = end
        try:
            failure = connection.request(method, self._base.path + path, headers, body)
            got = connection.answer(failure is not None, most)
        except BaseException:  # the caller's own, such as an interrupt or an alarm
            connection.close()
            raise
        if isinstance(got, Failure):
            connection.close()
            return failure or got
        if connection.reusable and failure is None:
            self._keep(connection)
        else:
            connection.close()
        if got.status in (200, 201, 204):
            return Answer(got.headers, got.body)
        return Failure(Kind.REFUSED, refusal(got.status, got.headers, got.body), got.headers)

    def close(self) -> None:
        """Closes idle connections."""
        while self._idle:
            try:
                self._idle.pop().close()
            except IndexError:  # another thread was faster
                return

    def _take(self) -> Optional[_Connection]:
        """Returns the most recently used idle connection that still seems alive."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            if connection.is_quiet():
                return connection
            connection.close()

    def _keep(self, connection: _Connection) -> None:
        connection.idle_since = time.monotonic()
        self._idle.append(connection)
        try:
            oldest = self._idle[0]
            if len(self._idle) > IDLE_CONNECTIONS or oldest.is_old():
                self._idle.remove(oldest)  # raises ValueError if another thread has taken it
                oldest.close()
        except (IndexError, ValueError):
            pass

    def _connect(self, end: float) -> Union[_Connection, Failure]:
        try:
            return _Connection(self._base.authority, self._dial(end))
        except ssl.SSLCertVerificationError as e:
            said, kind = f"the certificate is not trusted: {e.verify_message}", Kind.DISTRUSTED
        except (OSError, UnicodeError) as e:  # UnicodeError: the host name is invalid
            if _is_foreign(e):
                raise
            said, kind = f"no connection: {named(e)}", Kind.NOT_SENT
        return Failure(kind, Unavailable(said))

    def _dial(self, end: float) -> socket.socket:
        """Tries the addresses of the host in turn. The system bounds the time of the DNS lookup."""
        last: OSError = OSError("the host has no address")
        for family, kind, protocol, _, address in socket.getaddrinfo(
            self._base.host, self._base.port, type=socket.SOCK_STREAM
        ):
            raw = socket.socket(family, kind, protocol)
            try:
                raw.settimeout(min(_remaining(end), DIAL_LIMIT))
                raw.connect(address)
                raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self._tls is None:
                    return raw
                raw.settimeout(min(_remaining(end), DIAL_LIMIT))
                return self._tls.wrap_socket(raw, server_hostname=self._base.host)
            except ssl.SSLCertVerificationError:
                raw.close()
                raise
            except OSError as e:
                raw.close()
                if _is_foreign(e):
                    raise
                last = e
            except BaseException:
                raw.close()
                raise
        raise last


def _remaining(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError("the time is over")
    return left


class _Broken(Exception):
    """A network error. It is not an OSError, because the caller's own signal handlers may raise those."""


def _is_foreign(e: BaseException) -> bool:
    """Returns whether something other than a socket raised the error. Python runs signal handlers inside blocking calls, so
    the TimeoutError of an alarm leaves a socket's method just like the socket's own. The last frame of the traceback tells
    them apart: it is the handler's."""
    last = e.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return last is not None and last.tb_frame.f_globals.get("__name__") not in _SOCKETS


_SOCKETS = (__name__, "socket", "ssl", "encodings.idna")


class _Wire:
    """A socket for http.client with one deadline for all its operations, even if bytes arrive slowly."""

    def __init__(self, raw: socket.socket) -> None:
        self.raw = raw
        self.end = 0.0  # on the monotonic clock

    def sendall(self, data: Any) -> None:
        try:
            self.raw.settimeout(_remaining(self.end))
            self.raw.sendall(data)
        except OSError as e:
            if _is_foreign(e):
                raise
            said = named(e)
        else:
            return
        raise _Broken(said)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Reader(self))

    def close(self) -> None:
        """Does nothing: http.client closes a socket before it has read the last response. _Connection.close closes it."""


class _Reader(io.RawIOBase):
    def __init__(self, wire: _Wire) -> None:
        self._wire = wire

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            self._wire.raw.settimeout(_remaining(self._wire.end))
            return self._wire.raw.recv_into(buffer)
        except OSError as e:
            if _is_foreign(e):
                raise
            said = named(e)
        raise _Broken(said)


class _Response(http.client.HTTPResponse):
    """A final response. http.client itself skips only 100 Continue. After any other interim response, the final one would
    stay on the connection, and the next call would take it for its own."""

    def _read_status(self) -> Tuple[str, int, str]:
        for _ in range(MOST_HINTS + 1):
            line: Tuple[str, int, str] = super()._read_status()  # type: ignore[misc]
            if not 100 <= line[1] < 200 or line[1] == HTTPStatus.SWITCHING_PROTOCOLS:
                return line
            http.client.parse_headers(self.fp)
        raise http.client.HTTPException("too many hints")


@dataclass(frozen=True)
class _Raw:
    status: int
    headers: Message
    body: Sealed


class _Connection:
    """One connection to the service, used by one call at a time."""

    def __init__(self, authority: str, raw: socket.socket) -> None:
        self.wire = _Wire(raw)
        self.idle_since = 0.0
        self.reusable = False
        self._authority = authority
        self._process = os.getpid()
        self._http = http.client.HTTPConnection("unused")
        self._http.response_class = _Response
        self._http.auto_open = 0  # it never connects by itself, which would be a second attempt
        self._http.sock = self.wire

    def is_old(self) -> bool:
        return time.monotonic() - self.idle_since > IDLE_LIMIT

    def is_quiet(self) -> bool:
        """Returns whether the connection is reusable: since the last response nothing has arrived, neither the end of the
        connection nor an unexpected response."""
        if self._process != os.getpid() or self.is_old():
            return False
        try:
            self.wire.raw.settimeout(0)
            self.wire.raw.recv(1)
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except OSError as e:
            if _is_foreign(e):
                raise
        return False

    def request(
        self, method: str, target: str, headers: Mapping[str, Union[str, Credential]], body: Optional[Sealed]
    ) -> Optional[Failure]:
        """Sends a request. A failure means that the kernel has not taken the whole request, so the service has not either."""
        content = body or Sealed(b"")
        try:
            self._http.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            self._http.putheader("Host", self._authority)
            for name, value in headers.items():
                self._http.putheader(name, value.reveal() if isinstance(value, Credential) else value)
            if body is not None or method != "GET":
                self._http.putheader("Content-Length", str(len(content.open())))
            self._http.endheaders(content.open() or None)
        except (_Broken, http.client.HTTPException) as e:
            said = named(e)
        else:
            return None
        return Failure(Kind.NOT_SENT, Unavailable(f"the request could not be sent: {said}"))

    def answer(self, early: bool, most: int) -> Union[_Raw, Failure]:
        """Reads the response. early means that the request was not sent completely: then the service may already have
        responded."""
        if early:
            self.wire.end = min(self.wire.end, time.monotonic() + 1)
        try:
            response = self._http.getresponse()
            text = _read(response, most)
        except (_Broken, http.client.HTTPException, ValueError) as e:
            return Failure(Kind.LOST, Unavailable(f"no answer: {named(e)}"))
        if text is None:
            return Failure(Kind.UNREADABLE, RemitError(f"unreadable answer: it is longer than {most >> 20} MiB"))
        self.reusable = response.status >= 200 and response.isclosed() and not response.will_close
        return _Raw(response.status, response.headers, Sealed(text))

    def close(self) -> None:
        self._http.close()
        self.wire.raw.close()


def _read(response: http.client.HTTPResponse, most: int) -> Optional[bytes]:
    """Returns the body, or None if it is too long. Raises IncompleteRead if it is shorter than its Content-Length."""
    if response.length is not None:
        return response.read() if response.length <= most else None
    pieces = bytearray()
    while True:
        piece = response.read(PIECE)
        if not piece:
            return bytes(pieces)
        pieces += piece
        if len(pieces) > most:
            return None


def named(e: Exception) -> str:
    """Describes an exception without any text from the server or the request."""
    if isinstance(e, _Broken):
        return str(e)
    if isinstance(e, socket.timeout):
        return "the time is over"
    if isinstance(e, OSError) and e.strerror:
        return e.strerror
    return type(e).__name__
