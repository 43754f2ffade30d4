"""Keeps an agent's tokens fresh. Concurrent threads or tasks share one exchange or refresh (single flight)."""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from dataclasses import dataclass
from typing import Any, Callable, Coroutine, Generic, Optional, Tuple, TypeVar

from . import codes
from .credential import Credential
from .errors import RemitError, Unavailable
from .retry import again
from .runtime import Runtime
from .wire import Fields, Malformed

# Fractions of a token's lifetime. The SDK renews a token at a random moment between the first two, so that a fleet that
# started together does not renew together. It stops using the token at the third, because the token has to arrive in time.
_RENEW_FROM, _RENEW_UNTIL, _USE_UNTIL = 0.75, 0.90, 0.98

RENEWAL_LIMIT = 30.0  # seconds for an exchange or refresh, all attempts included
_RENEW_PAUSE = 10.0  # the longest pause after an early renewal that failed; the shortest is half of it
_LONGEST_LIFETIME = 1 << 30
# How long a refresh token may be presented again after a lost response. The service returns the same successor for 60
# seconds; after that it treats the token as stolen.
_REPEAT_WITHIN = 50.0

@dataclass(frozen=True)
class TokenPair:
    """The tokens that an agent's credential, or a refresh token, is exchanged for."""

    access_token: Credential
    refresh_token: Optional[Credential]  # None: a workload's token gets none
    expires_in: int  # lifetime of the access token in seconds
    token_type: str = "bearer"  # or DPoP, if the access token is bound to a key

    @classmethod
    def _read(cls, said: Fields) -> TokenPair:
        access, lifetime = said.credential("access_token"), said.integer("expires_in")
        if access is None or lifetime <= 0:
            raise Malformed("it has no token, or no lifetime")
        return cls(
            access, said.credential("refresh_token"), min(lifetime, _LONGEST_LIFETIME), said.text("token_type", "bearer")
        )


class _Outcome:
    """The outcome of an exchange or refresh. While it is in flight, there is neither."""

    access: Optional[Credential] = None
    error: Optional[RemitError] = None

    def is_lost(self) -> bool:
        """Returns whether it will never be done."""
        return False


class _SharedCall(_Outcome):
    """One exchange or refresh, shared by all threads that wait for it."""

    def __init__(self) -> None:
        self.process = os.getpid()  # a fork copies this object, but not its thread
        self.started = False  # its thread runs
        self.done = threading.Event()  # set after access or error

    def is_lost(self) -> bool:
        return self.process != os.getpid()


class _SharedTask(_Outcome):
    """The same for the tasks of one event loop."""

    def __init__(self, steps: Callable[[_SharedTask], Coroutine[Any, Any, None]]) -> None:
        self._loop = asyncio.get_running_loop()
        self.task = self._loop.create_task(steps(self))

    def is_lost(self) -> bool:
        return self._loop is not asyncio.get_running_loop() or self.task.done()


@dataclass(frozen=True)
class _Moment:
    """A moment on both clocks. The monotonic clock stops while the machine sleeps; the wall clock may be set."""

    monotonic: float
    wall: float

    def until(self, later: _Moment) -> float:
        """The seconds that may have passed: the larger difference of the two clocks."""
        return max(later.monotonic - self.monotonic, later.wall - self.wall)


# Gets tokens from the service. The arguments are the refresh token to present, or None for an exchange of the agent's credential,
# a timeout for all attempts, and a predicate that runs before each retry and returns whether to make it.
Ask = Callable[[Optional[Credential], float, Callable[[], bool]], TokenPair]
AsyncAsk = Callable[[Optional[Credential], float, Callable[[], bool]], Coroutine[Any, Any, TokenPair]]

C = TypeVar("C", bound=_Outcome)


class _Tokens(Generic[C]):
    """The tokens of one agent. It measures time on this machine's monotonic clock, from when it received a token, so this
    machine's clock need not agree with the service's."""

    def __init__(self, clock: Callable[[], float], wall_clock: Callable[[], float]) -> None:
        self._clock = clock
        self._wall_clock = wall_clock
        self._lock = threading.Lock()  # guards all fields below
        self._access: Optional[Credential] = None
        self._renew_at = 0.0
        self._usable_until = 0.0
        self._refresh: Optional[Credential] = None
        self._presented_at: Optional[_Moment] = None  # since then the refresh token may be spent
        self._shared: Optional[C] = None  # the exchange or refresh in flight

    async def _asked(
        self, refresh: Optional[Credential], timeout: float, may_go_on: Callable[[], bool]
    ) -> TokenPair:
        raise NotImplementedError

    def _current(self, refused: Optional[Credential], renew: bool) -> Tuple[Optional[Credential], bool]:
        """Returns the current token, if it is usable, and whether a renewal is due. The caller holds the lock."""
        if refused is not None and self._access is refused:
            self._access = None
        now = self._clock()
        usable = self._access if now < self._usable_until else None
        return usable, usable is None or now >= self._renew_at or renew

    async def _renewed(self, call: C) -> None:
        """Makes a shared call."""
        pair: Optional[TokenPair] = None
        error = RemitError("the exchange failed")
        try:
            pair = await self._obtain()
        except RemitError as e:
            error = again(e)
        finally:  # also after other exceptions, so that waiters always wake up
            with self._lock:
                if pair is not None:
                    self._keep(pair)
                    call.access = pair.access_token
                else:
                    self._renew_at = self._clock() + random.uniform(_RENEW_PAUSE / 2, _RENEW_PAUSE)
                    call.error = error
                if self._shared is call:
                    self._shared = None

    async def _obtain(self) -> TokenPair:
        """Refreshes, or exchanges the credential if there is no refresh token or the service refuses it. Both are repeatable: the
        service returns the same successor, and a second family of tokens does no harm."""
        end = time.monotonic() + RENEWAL_LIMIT
        presented, left = self._present()
        if presented is not None:
            short = left < RENEWAL_LIMIT  # then the refresh may fail for lack of time, and the exchange can still succeed
            try:
                return await self._asked(presented, min(left, RENEWAL_LIMIT), self._may_present)
            except RemitError as e:
                if e.code != codes.INVALID_REFRESH_TOKEN and not short and self._may_present():
                    raise
            self._forget(presented)
        left = max(end - time.monotonic(), 1.0)
        return await self._asked(None, left, lambda: True)

    def _present(self) -> Tuple[Optional[Credential], float]:
        """Returns the refresh token, if it may be presented, and for how many seconds more. From now on the token counts as
        spent, until _keep stores its successor."""
        with self._lock:
            if self._presented_at is None:
                self._presented_at = self._now()
            left = _REPEAT_WITHIN - self._presented_at.until(self._now())
            if left <= 0:
                self._refresh = None
            return self._refresh, left

    def _may_present(self) -> bool:
        return self._present()[1] > 0

    def _now(self) -> _Moment:
        return _Moment(self._clock(), self._wall_clock())

    def _forget(self, refused: Credential) -> None:
        with self._lock:
            if self._refresh is refused:
                self._refresh = None

    def _keep(self, pair: TokenPair) -> None:
        """Starts using a pair that was just received. The caller holds the lock."""
        now, lifetime = self._clock(), pair.expires_in
        self._access, self._refresh, self._presented_at = pair.access_token, pair.refresh_token, None
        self._renew_at = now + lifetime * random.uniform(_RENEW_FROM, _RENEW_UNTIL)
        self._usable_until = now + lifetime * _USE_UNTIL


class Tokens(_Tokens[_SharedCall]):
    """The tokens of one agent, for threads."""

    def __init__(
        self,
        ask: Ask,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(clock, wall_clock)
        self._ask = ask

    async def _asked(
        self, refresh: Optional[Credential], timeout: float, may_go_on: Callable[[], bool]
    ) -> TokenPair:
        return self._ask(refresh, timeout, may_go_on)

    def get(self, end: float, refused: Optional[Credential] = None) -> Credential:
        """Returns an access token other than the refused one. It waits, until end, only if no token is usable: a token that
        is due for renewal stays in use meanwhile."""
        usable, call = self._join(refused, renew=False)
        return self._wait(call, end) if usable is None else usable

    def renew(self, end: float) -> Credential:
        """Returns a new access token, even if the current one is still valid."""
        _, call = self._join(None, renew=True)
        return self._wait(call, end)

    def _join(self, refused: Optional[Credential], renew: bool) -> Tuple[Optional[Credential], Optional[_SharedCall]]:
        """Returns the current token, if it is usable, and the shared call in flight, if a renewal is due. It starts the call
        if there is none."""
        started: Optional[_SharedCall] = None
        try:
            with self._lock:
                usable, is_due = self._current(refused, renew)
                if not is_due:
                    return usable, None
                call = self._shared
                if call is None or call.is_lost():
                    call = started = self._shared = _SharedCall()
            if started is not None:
                self._start(started)
            return usable, call
        except BaseException:  # an interrupt, before the thread runs
            if started is not None:
                self._abandon(started)
            raise

    def _start(self, call: _SharedCall) -> None:
        """Runs the call on its own thread, because the thread that started it may stop waiting while others still wait."""
        try:
            threading.Thread(target=self._do, args=(call,), name="remit-tokens", daemon=True).start()
        except RuntimeError:  # the interpreter is shutting down and starts no more threads
            self._do(call)

    def _abandon(self, call: _SharedCall) -> None:
        """Ends a call that has no thread. Otherwise its waiters would wait forever."""
        with self._lock:
            if call.started:
                return
            call.error = Unavailable("the exchange was interrupted")
            if self._shared is call:
                self._shared = None
            call.done.set()

    def _wait(self, call: Optional[_SharedCall], end: float) -> Credential:
        """Returns the call's access token. A waiter that times out leaves; the call goes on until RENEWAL_LIMIT."""
        assert call is not None
        patience = min(end - time.monotonic(), RENEWAL_LIMIT + 15)
        if not call.done.wait(max(patience, 0)):
            raise Unavailable("the time given is over")
        if call.error is not None:
            raise again(call.error)
        assert call.access is not None
        return call.access

    def _do(self, call: _SharedCall) -> None:
        with self._lock:
            if call.done.is_set():  # abandoned
                return
            call.started = True
        try:
            Runtime().run(self._renewed(call))
        finally:
            call.done.set()


class AsyncTokens(_Tokens[_SharedTask]):
    """The tokens of one agent, for the tasks of an event loop. The call is a task of its own: it goes on when the task that
    started it is cancelled."""

    def __init__(
        self,
        ask: AsyncAsk,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(clock, wall_clock)
        self._asked = ask  # type: ignore[assignment]  # instead of the method

    async def get(self, end: float, refused: Optional[Credential] = None) -> Credential:
        """Like Tokens.get."""
        usable, call = self._join(refused, renew=False)
        return await self._wait(call, end) if usable is None else usable

    async def renew(self, end: float) -> Credential:
        """Like Tokens.renew."""
        _, call = self._join(None, renew=True)
        return await self._wait(call, end)

    def _join(self, refused: Optional[Credential], renew: bool) -> Tuple[Optional[Credential], Optional[_SharedTask]]:
        usable, is_due = self._current(refused, renew)
        call = self._shared
        if is_due and (call is None or call.is_lost()):  # another event loop's may take its place at any time
            call = self._shared = _SharedTask(self._renewed)
        return usable, call

    async def _wait(self, call: Optional[_SharedTask], end: float) -> Credential:
        assert call is not None
        patience = min(end - time.monotonic(), RENEWAL_LIMIT + 15)
        await asyncio.wait({call.task}, timeout=max(patience, 0))
        if call.access is not None:
            return call.access
        if call.task.cancelled():  # by the end of asyncio.run, during which a transaction may still have to be rolled back
            return await self.get(end)
        raise Unavailable("the time given is over") if call.error is None else again(call.error)
