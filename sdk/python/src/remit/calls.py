"""A Call is one request with its retries. A Caller sends calls with one credential, or none."""

from __future__ import annotations

import itertools
import math
import re
import secrets
import time
from dataclasses import dataclass, field
from email.message import Message
from typing import Any, Callable, Coroutine, Dict, Iterator, List, Mapping, Optional, Tuple, TypeVar, Union
from urllib.parse import parse_qs, urlsplit

from . import codes, retry, wire
from .credential import Credential, Sealed
from .errors import USE_NONCE, DPoPRequired, InvalidProof, RemitError, Unavailable, oauth_problem, problem
from .proofs import Proofs, demands_nonce
from .retry import Semantics
from .runtime import Runtime, Source, Wire, now
from .transport import LONGEST_ANSWER, Answer, Failure, Kind
from .url import with_query

_ATTEMPT_LIMIT = 10.0  # seconds for one attempt, from connecting to the last byte of the response
_LINK = re.compile(r'<(?P<target>[^<>]*)>(?P<parameters>(?:[^<"]|"[^"]*")*)')
_KEY = re.compile(r"[!-~]{1,255}")

# Elements per page: as many as fit into a response of 1 MiB if each has its maximum size.
AGENTS_PER_PAGE = "40"  # they come with their metadata
PER_PAGE = "100"

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """One request."""

    method: str
    path: str  # with its query
    body: Optional[Mapping[str, Any]] = None  # JSON
    semantics: Semantics = Semantics.SAFE
    key: str = ""  # Idempotency-Key
    most: int = LONGEST_ANSWER  # bytes of the response
    wait: float = 0.0  # seconds that the service may hold the request back (long polling)
    gone: bool = False  # whether not_found after an attempt in doubt means that this call deleted the object
    may_go_on: Callable[[], bool] = lambda: True  # runs before each retry and returns whether to make it
    form: Optional[Callable[[], wire.Form]] = None  # instead of a body; made for each attempt
    headers: Mapping[str, Union[str, Credential]] = field(default_factory=dict)  # beside those of every call

    @property
    def name(self) -> str:
        return f"{self.method} {self.path.partition('?')[0]}"


@dataclass(frozen=True)
class Service:
    """One Remit service, and the settings for calling it."""

    transport: Wire
    attempts: int
    keys: bool  # whether writes get a random idempotency key
    runtime: Runtime
    metadata: Dict[str, str] = field(default_factory=dict)  # what was read of it as an authorization server

    def keyed(self, path: str, own: Optional[str], body: Mapping[str, Any], method: str = "POST") -> Call:
        """Returns a write with the given Idempotency-Key, or a random one."""
        if own is not None:
            if not _KEY.fullmatch(own):
                raise ValueError("an idempotency key is 1 to 255 visible ASCII characters")
            return Call(method, path, body, Semantics.IDEMPOTENT, own)
        if not self.keys:
            return Call(method, path, body, Semantics.UNSAFE)
        return Call(method, path, body, Semantics.IDEMPOTENT, random_key())


def random_key() -> str:
    """Returns an idempotency key of 32 characters, the minimum for creating organizations without a credential."""
    return secrets.token_hex(16)


class Caller:
    """Sends calls with one credential, or none. With proofs, each attempt carries one, and the access token is bound to their
    key."""

    def __init__(
        self,
        service: Service,
        *,
        api_key: Optional[Credential] = None,
        bearer: Optional[Credential] = None,
        tokens: Optional[Source] = None,
        proofs: Optional[Proofs] = None,
    ) -> None:
        self.service = service
        self._api_key = api_key
        self._bearer = bearer
        self._tokens = tokens
        self.proofs = proofs

    def ask(self, call: Call, read: Callable[[Any], T], timeout: Optional[float] = None) -> T:
        """Sends a call, with retries, and reads the JSON of its response."""
        return self.run(self.asked(call, read, timeout))

    def ask_raw(self, call: Call, read: Callable[[Answer], T], timeout: Optional[float] = None) -> T:
        return self.run(self.asked_raw(call, read, timeout))

    def run(self, steps: Coroutine[Any, Any, T]) -> T:
        """Returns the result of the steps of a call, or for asyncio the steps, for aio.described to await."""
        return self.service.runtime.run(steps)

    async def asked(self, call: Call, read: Callable[[Any], T], timeout: Optional[float] = None) -> T:
        """Is ask, as a step of a longer call."""
        return await self.asked_raw(call, lambda answer: read(wire.decode(answer.body)), timeout)

    async def asked_raw(self, call: Call, read: Callable[[Answer], T], timeout: Optional[float] = None) -> T:
        end = end_of(timeout)
        body = None if call.body is None else wire.encode(call.body)
        in_doubt = False  # whether the outcome of an attempt so far is unknown
        for attempt in itertools.count(1):
            got = await self._attempt(call, body, end)
            if isinstance(got, Answer):
                try:
                    return read(got)
                except wire.Malformed as e:
                    said = str(e)
                failure = Failure(Kind.UNREADABLE, RemitError(f"unreadable answer: {said}"))
            else:
                failure = got
            if call.gone and in_doubt and failure.error.code == codes.NOT_FOUND:
                return read(Answer(Message(), Sealed(b"")))
            in_doubt = call.semantics is not Semantics.SAFE and (
                retry.may_have_happened(failure) or in_doubt and not retry.resolves(failure)
            )
            more = attempt < self.service.attempts and retry.may_repeat(call.semantics, failure)
            if not (more and await self.service.runtime.pause(attempt, failure, end) and call.may_go_on()):
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
        """Yields the elements of a list, newest first. It requests each page when the previous one is used up."""

        def page(answer: Answer) -> Tuple[List[T], str]:
            elements = wire.each(wire.decode(answer.body), read)
            following = next_page(answer.headers, "cursor")
            if following and following == cursor:
                raise wire.Malformed("the next page is the same page")
            return elements, following

        cursor, is_last = "", False

        async def more() -> Optional[List[T]]:
            nonlocal cursor, is_last
            if is_last:
                return None
            call = Call("GET", with_query(path, limit=limit, cursor=cursor, **parameters))
            elements, cursor = await self.asked_raw(call, page, timeout)
            is_last = not cursor
            return elements

        return self.service.runtime.each(more)

    async def _attempt(self, call: Call, body: Optional[Sealed], end: float) -> Union[Answer, Failure]:
        """Sends a call once. If the service refuses an agent's access token, it sends the call again with a new token. That
        is not a retry, because the service refuses a token before it does anything."""
        if self._tokens is None:
            return await self._send(call, body, self._bearer, end)
        access = await self._access(end, None)
        if isinstance(access, Failure):
            return access
        got = await self._send(call, body, access, end)
        if isinstance(got, Answer) or got.error.code != codes.INVALID_TOKEN:
            return got
        access = await self._access(end, access)
        if isinstance(access, Failure):
            return access
        return await self._send(call, body, access, end)

    async def _access(self, end: float, refused: Optional[Credential]) -> Union[Credential, Failure]:
        assert self._tokens is not None
        try:
            return await now(self._tokens.get(end, refused))
        except RemitError as error:
            said = retry.again(error, f"no access token: {error.detail}")
        return Failure(Kind.NO_TOKEN, said)

    async def _send(
        self, call: Call, body: Optional[Sealed], bearer: Optional[Credential], end: float
    ) -> Union[Answer, Failure]:
        """Sends a call once, and once more if the service demands its nonce in the proof: it has done nothing then."""
        end = min(end, time.monotonic() + _ATTEMPT_LIMIT + call.wait)
        got = await self._send_once(call, body, bearer, end)
        if self.proofs is None:
            return got if isinstance(got, Answer) or "DPoP" in call.headers else _without_proof(got)
        if self.proofs.learn(got.headers) and isinstance(got, Failure) and _demands_nonce(got):
            got = await self._send_once(call, body, bearer, end)
            self.proofs.learn(got.headers)
        return got

    async def _send_once(
        self, call: Call, body: Optional[Sealed], bearer: Optional[Credential], end: float
    ) -> Union[Answer, Failure]:
        headers: Dict[str, Union[str, Credential]] = {"User-Agent": "remit-python", "Accept": "application/json"}
        if call.form is not None:
            body = wire.encode_form(call.form())
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        elif body is not None:
            headers["Content-Type"] = "application/json"
        if call.key:
            headers["Idempotency-Key"] = call.key
        if self._api_key is not None:
            headers["X-API-Key"] = self._api_key
        if bearer is not None:
            headers["Authorization"] = Credential(f"{'Bearer' if self.proofs is None else 'DPoP'} {bearer.reveal()}")
        transport, refusal = self.service.transport, problem if call.form is None else oauth_problem
        if self.proofs is not None:
            headers["DPoP"] = self.proofs.make(call.method, transport.url(call.path), bearer)
        return await now(
            transport.send(call.method, call.path, {**headers, **call.headers}, body, end, call.most, refusal)
        )


def _demands_nonce(failure: Failure) -> bool:
    return failure.error.code == USE_NONCE or failure.error.status == 401 and demands_nonce(failure.headers)


def _without_proof(failure: Failure) -> Failure:
    """Returns the failure of a call without a proof. The service calls a proof that is missing an invalid one."""
    if not isinstance(failure.error, InvalidProof):
        return failure
    error = DPoPRequired(failure.error.detail)
    error.__dict__.update({name: value for name, value in vars(failure.error).items() if name != "clock_skew"})
    return Failure(failure.kind, error, failure.headers)


def nothing(said: Any) -> None:
    """Reads a response that has nothing to tell."""
    wire.Fields(said)


def end_of(timeout: Optional[float]) -> float:
    """Returns the deadline of a call with this timeout, on the monotonic clock."""
    if timeout is None:
        return math.inf
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0:
        raise ValueError("a timeout is a number of seconds above 0")
    return time.monotonic() + timeout


def timeout_of(end: float) -> Optional[float]:
    """Returns the timeout of a call with this deadline. Raises Unavailable if it is over."""
    left = end - time.monotonic()
    if left <= 0:
        raise Unavailable("the time given is over")
    return None if math.isinf(left) else left


def next_page(headers: Message, parameter: str) -> str:
    """Returns a parameter of `Link: <…>; rel="next"`. Proxies may add links of their own, in the same header line or in
    others. The SDK does not follow the link itself, because a credential must go only to the base URL."""
    for link in _LINK.finditer(", ".join(headers.get_all("Link") or ())):
        if 'rel="next"' in link["parameters"]:
            try:
                return parse_qs(urlsplit(link["target"]).query).get(parameter, [""])[0]
            except ValueError:
                return ""
    return ""
