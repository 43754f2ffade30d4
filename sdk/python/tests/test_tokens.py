from __future__ import annotations

import http.client
import json
import math
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, List, Optional, Tuple
from unittest import mock
from urllib.parse import urlsplit

import remit
from network import LOSE, PASS, URL, Answer, Reaction, Request, ServiceTest
from remit.credential import Credential
from remit.exchange import EXCHANGE, REFRESH
from remit.tokens import TokenPair, Tokens, _SharedCall


def together(threads: int, do: Callable[[], object]) -> List[object]:
    """Returns the result of each of the threads that start at the same moment."""
    start = threading.Barrier(threads)

    def run(_: int) -> object:
        start.wait()
        return do()

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, range(threads)))


class TokensOfTheService(ServiceTest):
    def test_concurrent_threads_share_one_exchange(self) -> None:
        client, proxy = self.proxied()
        session = self.new_session(client)
        together(50, session.charge)
        self.assertEqual(len(proxy.to(EXCHANGE)), 1)
        self.assertEqual(session.get().action_count, 50)

    def test_concurrent_threads_share_one_refresh(self) -> None:
        held = threading.Event()

        def react(request: Request, _: int) -> Reaction:
            if request.path == REFRESH:
                held.wait(30)
            return PASS

        client, proxy = self.proxied(react)
        self.new_session(client)
        before = self.agent.token()
        in_flight = threading.Semaphore(0)
        wait = Tokens._wait

        def boards(*given: Any) -> Credential:
            in_flight.release()
            return wait(*given)

        with mock.patch.object(Tokens, "_wait", boards), ThreadPoolExecutor(50) as pool:
            waiting = [pool.submit(self.agent.refresh) for _ in range(50)]
            for _ in waiting:
                self.assertTrue(in_flight.acquire(timeout=30))
            self.assertEqual(self.agent.token().reveal(), before.reveal())  # calls go on meanwhile
            held.set()
            for one in waiting:
                one.result()
        self.assertEqual((len(proxy.to(EXCHANGE)), len(proxy.to(REFRESH))), (1, 1))
        self.assertNotEqual(self.agent.token().reveal(), before.reveal())

    def test_a_refused_token_is_replaced_and_the_call_sent_once_more(self) -> None:
        client, proxy = self.proxied(max_attempts=1)
        session = self.new_session(client)
        session.charge()
        self.revoke_family()
        together(20, session.charge)
        self.assertEqual(session.get().action_count, 21)
        self.assertEqual(len(proxy.to(REFRESH)), 1)  # which is refused, too
        self.assertEqual(len(proxy.to(EXCHANGE)), 2)

    def revoke_family(self) -> None:
        """Revokes the agent's tokens without the SDK."""
        tokens: Any = self.agent._tokens
        assert tokens._refresh is not None
        parts = urlsplit(URL)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=10)
        self.addCleanup(connection.close)
        body = json.dumps({"refresh_token": tokens._refresh.reveal()})
        headers = {"Authorization": "Bearer " + self.agent.token().reveal(), "Content-Type": "application/json"}
        connection.request("POST", "/v1/auth/revoke", body, headers)
        self.assertEqual(connection.getresponse().status, 200)

    def test_a_lost_refresh_is_repeated_with_the_same_token(self) -> None:
        client, proxy = self.proxied(lambda r, n: LOSE if r.path == REFRESH and n <= 2 else PASS)
        session = self.new_session(client)
        session.charge()
        self.agent.refresh()
        session.charge()
        self.assertEqual(len({request.body for request in proxy.to(REFRESH)}), 1)
        self.assertEqual((len(proxy.to(REFRESH)), len(proxy.to(EXCHANGE))), (3, 1))

    def test_a_wrong_secret_is_unauthorized_and_not_retried(self) -> None:
        client, proxy = self.proxied()
        self.new_session(client)
        session = client.agent(self.agent.id, "rms_wrong").session("01a1ffac-a9a1-7dc1-aa48-a64bee9cc8b2")
        with self.assertRaises(remit.Unauthorized):
            session.charge()
        self.assertEqual(len(proxy.requests), 1)

    def test_a_waiter_times_out_without_the_others(self) -> None:
        held = threading.Event()

        def react(request: Request, _: int) -> Reaction:
            held.wait(30)
            return PASS

        client, proxy = self.proxied(react)
        self.new_session(client)
        with self.assertRaises(remit.Unavailable):
            self.agent.token(timeout=0.02)
        held.set()
        self.assertTrue(self.agent.token())
        self.assertEqual(len(proxy.to(EXCHANGE)), 1)


class Issuer:
    """A service with numbered tokens that are valid for an hour, and clocks that the test controls."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.asleep = 0.0  # seconds that the monotonic clock missed
        self.limits: List[float] = []  # of each call, in seconds
        self.asked: List[Tuple[str, str]] = []  # the path, and the credential that was presented
        self.fail: Callable[[str], Optional[remit.RemitError]] = lambda path: None
        self.tokens = Tokens(self.ask, lambda: self.now, lambda: self.now + self.asleep)

    def ask(self, refresh: Optional[Credential], timeout: float, may_go_on: Callable[[], bool] = lambda: True) -> TokenPair:
        self.limits.append(timeout)
        path = EXCHANGE if refresh is None else REFRESH
        self.asked.append((path, "rms_secret" if refresh is None else refresh.reveal()))
        error = self.fail(path)
        if error:
            raise error
        n = len(self.asked)
        return TokenPair(Credential(f"access-{n}"), Credential(f"refresh-{n}"), 3600)

    def get(self) -> str:
        """Returns the token that a call would use now, and waits for the renewal that it may have started."""
        token = self.tokens.get(math.inf).reveal()
        self.wait()
        return token

    def refresh(self) -> None:
        try:
            self.tokens.renew(math.inf)
        finally:
            self.wait()

    def wait(self) -> None:
        call = self.tokens._shared
        if call:
            assert call.done.wait(10)

    def count(self, path: str) -> int:
        return len([asked for asked, _ in self.asked if asked == path])


def refused(status: int, code: str) -> remit.RemitError:
    error = remit.Unauthorized() if status == 401 else remit.RemitError()
    error.status, error.code = status, code
    return error


class TokensInTime(unittest.TestCase):
    def test_tokens_are_renewed_early_while_calls_go_on(self) -> None:
        issuer = Issuer()
        self.assertEqual(issuer.get(), "access-1")
        issuer.now += 2699
        self.assertEqual((issuer.get(), len(issuer.asked)), ("access-1", 1))
        issuer.now += 542  # past 90 %
        self.assertEqual(issuer.get(), "access-1")
        self.assertEqual(issuer.get(), "access-2")
        self.assertEqual(issuer.asked[1:], [(REFRESH, "refresh-1")])

    def test_an_expired_token_is_not_used(self) -> None:
        issuer = Issuer()
        issuer.get()
        issuer.now += 3599
        self.assertEqual(issuer.get(), "access-2")

    def test_a_fleet_spreads_its_renewals(self) -> None:
        moments = []
        for _ in range(200):
            issuer = Issuer()
            issuer.get()
            moments.append(issuer.tokens._renew_at - issuer.now)
        self.assertTrue(all(2700 <= moment <= 3240 for moment in moments))
        for minute in range(2700, 3240, 60):
            self.assertLess(len([m for m in moments if minute <= m < minute + 60]), 60)

    def test_a_token_that_may_be_spent_is_presented_for_a_limited_time(self) -> None:
        for after, want in ((40, [(REFRESH, "refresh-1")]), (55, [(EXCHANGE, "rms_secret")])):
            issuer = Issuer()
            issuer.get()
            issuer.fail = lambda path: remit.Unavailable("no answer")
            with self.assertRaises(remit.Unavailable):
                issuer.refresh()
            issuer.fail = lambda path: None
            issuer.now += after
            issuer.refresh()
            self.assertEqual(issuer.asked[2:], want)

    def test_a_refresh_ends_when_its_token_may_no_longer_be_presented(self) -> None:
        """Its attempts would last 30 seconds. Instead, the same shared call exchanges the secret."""
        issuer = Issuer()
        issuer.get()
        issuer.fail = lambda path: remit.Unavailable("no answer")
        with self.assertRaises(remit.Unavailable):
            issuer.refresh()
        issuer.now += 45
        issuer.fail = lambda path: remit.Unavailable("no answer") if path == REFRESH else None
        issuer.refresh()
        self.assertEqual(issuer.asked[2:], [(REFRESH, "refresh-1"), (EXCHANGE, "rms_secret")])
        self.assertEqual(issuer.limits[1:3], [30, 5])

    def test_a_machine_that_slept_does_not_present_a_token_that_may_be_spent(self) -> None:
        issuer = Issuer()
        issuer.get()
        issuer.fail = lambda path: remit.Unavailable("no answer")
        with self.assertRaises(remit.Unavailable):
            issuer.refresh()
        issuer.now += 5
        issuer.asleep += 55
        issuer.fail = lambda path: None
        issuer.refresh()
        self.assertEqual(issuer.asked[2:], [(EXCHANGE, "rms_secret")])

    def test_an_interrupt_before_the_shared_call_wakes_the_waiters(self) -> None:
        for moment in ("_start", "_do"):
            issuer = Issuer()
            start = Tokens._start

            def interrupted(tokens: Tokens, call: Any) -> None:
                if moment == "_do":  # its thread is already running and must not run twice
                    start(tokens, call)
                raise KeyboardInterrupt

            with mock.patch.object(Tokens, "_start", interrupted), self.assertRaises(KeyboardInterrupt):
                issuer.tokens.get(math.inf)
            with self.subTest(moment):
                self.assertIn(issuer.tokens.get(time.monotonic() + 5).reveal(), ("access-1", "access-2"))

    def test_a_forked_process_does_not_wait_for_the_call_of_its_parent(self) -> None:
        issuer = Issuer()
        issuer.tokens._shared = parents = _SharedCall()
        parents.process += 1
        self.assertEqual(issuer.tokens.get(time.monotonic() + 5).reveal(), "access-1")

    def test_a_refused_refresh_falls_back_to_the_secret_once(self) -> None:
        issuer = Issuer()
        issuer.get()
        issuer.fail = lambda path: refused(401, "invalid_refresh_token") if path == REFRESH else None
        issuer.refresh()
        self.assertEqual((issuer.count(REFRESH), issuer.count(EXCHANGE)), (1, 2))
        issuer.fail = lambda path: refused(401, "invalid_refresh_token" if path == REFRESH else "invalid_credentials")
        with self.assertRaises(remit.Unauthorized):
            issuer.refresh()
        self.assertEqual((issuer.count(REFRESH), issuer.count(EXCHANGE)), (2, 3))

    def test_a_refused_refresh_token_is_not_presented_again(self) -> None:
        issuer = Issuer()
        issuer.get()
        issuer.fail = lambda path: refused(401, "invalid_refresh_token") if path == REFRESH else remit.Unavailable("down")
        with self.assertRaises(remit.Unavailable):
            issuer.refresh()
        issuer.fail = lambda path: None
        issuer.refresh()
        self.assertEqual(issuer.asked[1:], [(REFRESH, "refresh-1"), (EXCHANGE, "rms_secret"), (EXCHANGE, "rms_secret")])

    def test_a_failed_renewal_does_not_storm(self) -> None:
        issuer = Issuer()
        issuer.get()
        issuer.fail = lambda path: refused(500, "internal_error")
        issuer.now += 3300
        for _ in range(1000):
            self.assertEqual(issuer.get(), "access-1")
            issuer.now += 0.01
        self.assertTrue(1 <= issuer.count(REFRESH) <= 3, issuer.count(REFRESH))

    def test_a_fault_in_the_shared_call_wakes_the_waiters(self) -> None:
        issuer = Issuer()

        def breaks(path: str) -> Optional[remit.RemitError]:
            raise MemoryError

        issuer.fail = breaks
        noted: List[object] = []
        hook, threading.excepthook = threading.excepthook, noted.append
        try:
            with self.assertRaises(remit.RemitError):
                issuer.tokens.get(math.inf)
        finally:
            while not noted:
                pass
            threading.excepthook = hook


class AttemptsInTime(ServiceTest):
    def test_no_attempt_of_a_shared_call_presents_a_token_too_late(self) -> None:
        """The attempts fail within one shared call, while the machine sleeps or just waits."""
        for sleeps in (False, True):
            asleep, now = 0.0, 0.0

            def react(request: Request, n: int) -> Reaction:
                nonlocal asleep, now
                if request.path != REFRESH:
                    return PASS
                asleep, now = (asleep + 20, now) if sleeps else (asleep, now + 20)
                return LOSE

            client, proxy = self.proxied(react, max_attempts=10)
            self.new_session(client)
            tokens: Any = self.agent._tokens
            tokens._clock, tokens._wall_clock = lambda: 1000 + now, lambda: 5000 + now + asleep
            before = self.agent.token().reveal()
            self.agent.refresh()
            with self.subTest(sleeps=sleeps):
                self.assertNotEqual(self.agent.token().reveal(), before)
                # At 0, 20 and 40 seconds after its first use.
                self.assertEqual((len(proxy.to(REFRESH)), len(proxy.to(EXCHANGE))), (3, 2))


class EmptyPairs(ServiceTest):
    def test_a_token_pair_without_token_or_lifetime_is_refused(self) -> None:
        body = ""
        client, _ = self.proxied(lambda _r, _n: Answer(200, body))
        for body in ("{}", '{"access_token":"a","refresh_token":"r"}', '{"refresh_token":"r","expires_in":5}', "<html>",
                     '{"access_token":"a\\r\\nb","expires_in":5}', '{"access_token":7,"expires_in":5}', "[]"):
            with self.subTest(body), self.assertRaises(remit.RemitError) as caught:
                client.agent("a1", "rms_some").token()
            self.assertIn("unreadable answer", str(caught.exception))
