"""A call is one request, however often it is sent; a Caller sends calls with one credential, or none."""

from __future__ import annotations

import itertools
import math
import re
import secrets
import time
from dataclasses import dataclass
from email.message import Message
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple, TypeVar, Union
from urllib.parse import parse_qs, urlsplit

from . import retry, wire
from .credential import Credential, Sealed
from .errors import RemitError
from .retry import Effect
from .transport import Answer, Failure, Kind, Transport
from .url import with_query

if TYPE_CHECKING:
    from .tokens import Tokens

_ATTEMPT_LIMIT = 10.0  # seconds for one attempt, from the connection to the last byte of the answer
_LINK = re.compile(r'<(?P<target>[^<>]*)>(?P<parameters>(?:[^<"]|"[^"]*")*)')
_KEY = re.compile(r"[!-~]{1,255}")

# Elements of a page: as many as fit into an answer when each is as long as the service allows.
AGENTS_PER_PAGE = "40"  # they come with their metadata
PER_PAGE = "100"

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """One request."""

    method: str
    path: str  # with its query
    body: Optional[Mapping[str, Any]] = None
    effect: Effect = Effect.READS
    key: str = ""  # Idempotency-Key
    wait: float = 0.0  # seconds that the service may take on purpose
    may_go_on: Callable[[], bool] = lambda: True  # asked before each attempt but the first

    @property
    def name(self) -> str:
        return f"{self.method} {self.path.partition('?')[0]}"


@dataclass(frozen=True)
class Service:
    """One Remit service, and how it is called."""

    transport: Transport
    attempts: int
    keys: bool  # whether writes get a random key

    def keyed(self, path: str, own: Optional[str], body: Mapping[str, Any], method: str = "POST") -> Call:
        """A write with the caller's own Idempotency-Key, or else a random one. That has 32 characters: the service takes no
        fewer where anybody may call."""
        if own is not None:
            if not _KEY.fullmatch(own):
                raise ValueError("an idempotency key is 1 to 255 visible ASCII characters")
            return Call(method, path, body, Effect.REPEATS, own)
        if not self.keys:
            return Call(method, path, body, Effect.ONCE)
        return Call(method, path, body, Effect.REPEATS, secrets.token_hex(16))


class Caller:
    """Sends calls with one credential, or none."""

    def __init__(
        self,
        service: Service,
        *,
        api_key: Optional[Credential] = None,
        bearer: Optional[Credential] = None,
        tokens: Optional[Tokens] = None,
    ) -> None:
        self.service = service
        self._api_key = api_key
        self._bearer = bearer
        self._tokens = tokens

    def ask(self, call: Call, read: Callable[[Any], T], timeout: Optional[float] = None) -> T:
        """Sends a call until it is settled or given up, and reads the JSON of its answer."""
        return self.ask_raw(call, lambda answer: read(wire.decode(answer.body)), timeout)

    def ask_raw(self, call: Call, read: Callable[[Answer], T], timeout: Optional[float] = None) -> T:
        end = end_of(timeout)
        body = None if call.body is None else wire.encode(call.body)
        in_doubt = False  # whether an attempt so far may have happened
        for attempt in itertools.count(1):
            got = self._attempt(call, body, end)
            if isinstance(got, Answer):
                try:
                    return read(got)
                except wire.Malformed as e:
                    said = str(e)
                failure = Failure(Kind.UNREADABLE, RemitError(f"unreadable answer: {said}"))
            else:
                failure = got
            in_doubt = call.effect is not Effect.READS and (
                retry.may_have_happened(failure) or in_doubt and not retry.settles(failure)
            )
            more = attempt < self.service.attempts and retry.may_repeat(call.effect, failure)
            if not (more and retry.pause(attempt, failure, end) and call.may_go_on()):
                break
        raise retry.conclude(call.name, in_doubt, failure)

    def pages(
        self,
        path: str,
        limit: str,
        read: Callable[[wire.Fields], T],
        timeout: Optional[float],
        **parameters: Optional[str],
    ) -> Iterator[T]:
        """Yields the elements of a list, newest first, and asks for a page when the one before is used up."""

        def page(answer: Answer) -> Tuple[List[T], str]:
            elements = wire.each(wire.decode(answer.body), read)
            following = next_cursor(answer.headers)
            if following and following == cursor:
                raise wire.Malformed("the next page is the same page")
            return elements, following

        cursor = ""
        while True:
            call = Call("GET", with_query(path, limit=limit, cursor=cursor, **parameters))
            elements, cursor = self.ask_raw(call, page, timeout)
            yield from elements
            if not cursor:
                return

    def _attempt(self, call: Call, body: Optional[Sealed], end: float) -> Union[Answer, Failure]:
        """Sends a call once; an agent whose access token is refused, once more with a new one. The service refuses a
        token before it does anything, so that is no repetition."""
        if self._tokens is None:
            return self._send(call, body, self._bearer, end)
        access = self._access(end, None)
        if isinstance(access, Failure):
            return access
        got = self._send(call, body, access, end)
        if isinstance(got, Answer) or got.error.code != "invalid_token":
            return got
        access = self._access(end, access)
        if isinstance(access, Failure):
            return access
        return self._send(call, body, access, end)

    def _access(self, end: float, refused: Optional[Credential]) -> Union[Credential, Failure]:
        assert self._tokens is not None
        try:
            return self._tokens.get(end, refused)
        except RemitError as error:
            said = retry.again(error, f"no access token: {error.detail}")
        return Failure(Kind.NO_TOKEN, said)

    def _send(
        self, call: Call, body: Optional[Sealed], bearer: Optional[Credential], end: float
    ) -> Union[Answer, Failure]:
        headers: Dict[str, Union[str, Credential]] = {"User-Agent": "remit-python", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if call.key:
            headers["Idempotency-Key"] = call.key
        if self._api_key is not None:
            headers["X-API-Key"] = self._api_key
        if bearer is not None:
            headers["Authorization"] = Credential("Bearer " + bearer.reveal())
        return self.service.transport.send(
            call.method, call.path, headers, body, min(end, time.monotonic() + _ATTEMPT_LIMIT + call.wait)
        )


def end_of(timeout: Optional[float]) -> float:
    """The moment on the monotonic clock at which a call that may take so long is over."""
    if timeout is None:
        return math.inf
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0:
        raise ValueError("a timeout is a number of seconds above 0")
    return time.monotonic() + timeout


def next_cursor(headers: Message) -> str:
    """Takes the cursor out of `Link: <…>; rel="next"`, beside which proxies may put links of their own, in the same line
    or in others. The link itself is not followed: a credential goes only to the base URL."""
    for link in _LINK.finditer(", ".join(headers.get_all("Link") or ())):
        if 'rel="next"' in link["parameters"]:
            try:
                return parse_qs(urlsplit(link["target"]).query).get("cursor", [""])[0]
            except ValueError:
                return ""
    return ""
