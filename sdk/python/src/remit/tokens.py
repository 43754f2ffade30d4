"""Keeps an agent's tokens fresh, by one exchange or refresh at a time however many threads ask."""

from __future__ import annotations

import os
import random
import threading
import time
from dataclasses import dataclass
from typing import Callable, Mapping, Optional, Tuple

from .credential import Credential
from .errors import RemitError, Unavailable
from .retry import again
from .wire import Fields, Malformed

# A token is renewed at a random moment between these parts of its lifetime, so that a fleet that began together does not
# renew together, and not used after the last part, as it has to arrive in time.
_RENEW_FROM, _RENEW_UNTIL, _USE_UNTIL = 0.75, 0.90, 0.98

FLIGHT_LIMIT = 30.0  # seconds: ends an exchange or refresh, over all its attempts
_RENEW_PAUSE = 10.0  # between early renewals that fail, half of it at least
_LONGEST_LIFETIME = 1 << 30
# How long a refresh token is presented again after a lost answer. The service returns the same successor for 60 seconds;
# after that it would have to take the token for stolen.
_REPEAT_WITHIN = 50.0

EXCHANGE, REFRESH = "/v1/auth/token", "/v1/auth/refresh"


@dataclass(frozen=True)
class TokenPair:
    """What an agent's secret, or a refresh token, is exchanged for."""

    access_token: Credential
    refresh_token: Optional[Credential]
    expires_in: int  # seconds that the access token lives
    token_type: str = "bearer"

    @classmethod
    def _read(cls, said: Fields) -> TokenPair:
        access, lifetime = said.credential("access_token"), said.integer("expires_in")
        if access is None or lifetime <= 0:
            raise Malformed("it has no token, or no lifetime")
        return cls(
            access, said.credential("refresh_token"), min(lifetime, _LONGEST_LIFETIME), said.text("token_type", "bearer")
        )


class _Flight:
    """One exchange or refresh, and all who wait for it."""

    def __init__(self) -> None:
        self.process = os.getpid()  # a fork takes the flight along, and not its thread
        self.begun = False  # its thread runs
        self.landed = threading.Event()  # set when the other fields are
        self.access: Optional[Credential] = None
        self.error: Optional[RemitError] = None


@dataclass(frozen=True)
class _Moment:
    """A moment on both clocks. The monotonic one stands still while the machine sleeps, and the other one may be set."""

    monotonic: float
    wall: float

    def until(self, later: _Moment) -> float:
        """The seconds that may have passed: the more by either clock."""
        return max(later.monotonic - self.monotonic, later.wall - self.wall)


# Calls the service without a credential: with a path, a body, a time for all attempts, and what is asked before each
# attempt but the first, whether it may be made.
Ask = Callable[[str, Mapping[str, object], float, Callable[[], bool]], TokenPair]


class Tokens:
    """The tokens of one agent. Time is measured on this machine's monotonic clock, from when a token was received, so its
    clock need not agree with the service's."""

    def __init__(
        self,
        agent: str,
        secret: Credential,
        ask: Ask,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._agent = agent
        self._secret = secret
        self._ask = ask
        self._clock = clock
        self._wall_clock = wall_clock
        self._lock = threading.Lock()  # of all below
        self._access: Optional[Credential] = None
        self._renew_at = 0.0
        self._usable_until = 0.0
        self._refresh: Optional[Credential] = None
        self._doubt: Optional[_Moment] = None  # since when the refresh token may be spent, for want of an answer
        self._flight: Optional[_Flight] = None  # the one exchange or refresh under way

    def get(self, end: float, refused: Optional[Credential] = None) -> Credential:
        """An access token that is not the refused one. It waits, until end, only when there is none that can be used: a
        token that should be renewed still serves while that happens."""
        usable, flight = self._board(refused, renew=False)
        return self._wait(flight, end) if usable is None else usable

    def renew(self, end: float) -> Credential:
        """A new access token, whatever the state of the present one."""
        _, flight = self._board(None, renew=True)
        return self._wait(flight, end)

    def _board(self, refused: Optional[Credential], renew: bool) -> Tuple[Optional[Credential], Optional[_Flight]]:
        """The present token, if it can be used, and the flight that is under way or starts now, if there is to be one."""
        started: Optional[_Flight] = None
        try:
            with self._lock:
                if refused is not None and self._access is refused:
                    self._access = None
                now = self._clock()
                usable = self._access if now < self._usable_until else None
                if usable is not None and now < self._renew_at and not renew:
                    return usable, None
                flight = self._flight
                if flight is None or flight.process != os.getpid():
                    flight = started = self._flight = _Flight()
            if started is not None:
                self._start(started)
            return usable, flight
        except BaseException:  # an interrupt, before the thread runs
            if started is not None:
                self._abandon(started)
            raise

    def _start(self, flight: _Flight) -> None:
        """It has a thread of its own, for whoever came first may leave before it lands, and others wait for it."""
        try:
            threading.Thread(target=self._fly, args=(flight,), name="remit-tokens", daemon=True).start()
        except RuntimeError:  # the interpreter ends, and starts no threads any more
            self._fly(flight)

    def _abandon(self, flight: _Flight) -> None:
        """Lands a flight that has no thread: else everybody would wait for it, for ever."""
        with self._lock:
            if flight.begun:
                return
            flight.error = Unavailable("the exchange was interrupted")
            if self._flight is flight:
                self._flight = None
            flight.landed.set()

    def _wait(self, flight: Optional[_Flight], end: float) -> Credential:
        """The flight's access token. A waiter whose time is over leaves; the flight goes on, and lands by its own limit."""
        assert flight is not None
        patience = min(end - time.monotonic(), FLIGHT_LIMIT + 15)
        if not flight.landed.wait(max(patience, 0)):
            raise Unavailable("the time given is over")
        if flight.error is not None:
            raise again(flight.error)
        assert flight.access is not None
        return flight.access

    def _fly(self, flight: _Flight) -> None:
        with self._lock:
            if flight.landed.is_set():  # abandoned
                return
            flight.begun = True
        pair: Optional[TokenPair] = None
        error = RemitError("the exchange failed")
        try:
            pair = self._obtain()
        except RemitError as e:
            error = again(e)
        finally:  # whatever happened: nobody waits in vain
            with self._lock:
                if pair is not None:
                    self._keep(pair)
                    flight.access = pair.access_token
                else:
                    self._renew_at = self._clock() + random.uniform(_RENEW_PAUSE / 2, _RENEW_PAUSE)
                    flight.error = error
                if self._flight is flight:
                    self._flight = None
            flight.landed.set()

    def _obtain(self) -> TokenPair:
        """Refreshes, or exchanges the secret when there is no refresh token or it is refused. Both may be repeated: the
        service returns the same successor, and a second family of tokens does no harm."""
        end = time.monotonic() + FLIGHT_LIMIT
        presented, left = self._present()
        if presented is not None:
            short = left < FLIGHT_LIMIT  # then what fails may have failed for want of time, which the secret does not need
            try:
                return self._ask(REFRESH, {"refresh_token": presented}, min(left, FLIGHT_LIMIT), self._may_present)
            except RemitError as e:
                if e.code != "invalid_refresh_token" and not short and self._may_present():
                    raise
            self._forget(presented)
        left = max(end - time.monotonic(), 1.0)
        return self._ask(EXCHANGE, {"agent_id": self._agent, "secret": self._secret}, left, lambda: True)

    def _present(self) -> Tuple[Optional[Credential], float]:
        """The refresh token, if it may be presented, and for how long it may; it is taken for spent until _keep has its
        successor."""
        with self._lock:
            if self._doubt is None:
                self._doubt = self._now()
            left = _REPEAT_WITHIN - self._doubt.until(self._now())
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
        """Takes a pair that was just received into use. Called with the lock held."""
        now, lifetime = self._clock(), pair.expires_in
        self._access, self._refresh, self._doubt = pair.access_token, pair.refresh_token, None
        self._renew_at = now + lifetime * random.uniform(_RENEW_FROM, _RENEW_UNTIL)
        self._usable_until = now + lifetime * _USE_UNTIL
