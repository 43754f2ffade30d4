from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import unittest
import warnings
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Callable, List
from unittest import mock

import network
import remit
from ledger import DOWN, LOSE, PASS, Clock, Ledger, Request
from network import ServiceTest


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("never")
        time.sleep(0.002)


class Leases(unittest.TestCase):
    def test_a_lease_charges_without_a_request_and_the_settlement_books_it_exactly(self) -> None:
        ledger = Ledger(self, max_actions=1_000_000, max_value=100_000)
        actions = cents = 0
        with ledger.session().lease() as lease:
            for i in range(20_000):
                lease.charge(None if i % 3 == 0 else f"type {i % 100}", Decimal(i % 7) / 100, count=1 + i % 2)
                actions, cents = actions + 1 + i % 2, cents + i % 7
            self.assertLess(len(ledger.seen), 100)
        ledger.balances(actions, cents)
        self.assertEqual(ledger.count("POST actions"), 0)
        lease.close()
        with self.assertRaises(remit.LeaseClosed):
            lease.charge()

    def test_the_last_unit_that_fits_is_charged_and_the_refusal_is_the_services(self) -> None:
        for limits, most, limit in (
            ({"max_actions": 500}, 500, "max_actions"), ({"max_value": 5}, 500, "max_value_usd"),
            ({"max_actions": 3}, 3, "max_actions"), ({"max_value": 1}, 100, "max_value_usd"),
        ):
            ledger = Ledger(self, **limits)  # type: ignore[arg-type]
            with ledger.session().lease() as lease:
                charged = 0
                with self.assertRaises(remit.LimitReached) as caught:
                    while True:
                        lease.charge("llm.call", "0.01")
                        charged += 1
            self.assertEqual((charged, caught.exception.limit), (most, limit))
            self.assertIn("POST /v1/sessions/s1/actions: 403 session_limit_reached", str(caught.exception))
            ledger.balances(charged, charged)

    def test_threads_never_exceed_the_limit_and_use_all_of_it(self) -> None:
        ledger = Ledger(self, max_actions=2_000)
        charged, refused = [0] * 8, [0] * 8

        def spend(lease: remit.Lease, nth: int) -> None:
            for _ in range(300):
                try:
                    lease.charge("t", "0.01")
                    charged[nth] += 1
                except remit.LimitReached:
                    refused[nth] += 1

        with ledger.session().lease() as lease:
            threads = [threading.Thread(target=spend, args=(lease, nth)) for nth in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(30)
        self.assertEqual((sum(charged), sum(refused)), (2_000, 400))
        ledger.balances(2_000, 2_000)

    def test_a_charge_that_the_lease_itself_leaves_no_room_for_is_charged_after_all(self) -> None:
        for key in None, "own":
            ledger = Ledger(self, max_actions=100)
            with ledger.session().lease() as lease:
                lease.charge()
                self.assertEqual(ledger.count("POST actions"), 0)
                lease.charge(count=99, idempotency_key=key)  # the lease holds 11 of them
                with self.assertRaises(remit.LimitReached):
                    lease.charge()
            ledger.balances(100, 0)

    def test_two_leases_overlap_so_that_charges_do_not_wait(self) -> None:
        ledger, waited = Ledger(self), 0
        slow = threading.Event()
        ledger.react = lambda _: PASS if slow.wait(0.2) else PASS  # every answer takes 200 ms
        with ledger.session().lease() as lease:
            end = time.monotonic() + 4
            n = 0
            while time.monotonic() < end:
                began = time.monotonic()
                lease.charge("t", "0.01")
                n += 1
                waited += time.monotonic() - began > 0.15
                time.sleep(0.002)
            self.assertLess(waited, 8)
            self.assertLess(ledger.count("POST settle") + ledger.count("POST leases"), 20)
        ledger.balances(n, n)

    def test_charges_go_to_the_service_that_a_lease_does_not_serve(self) -> None:
        ledger = Ledger(self, max_actions=1_000, max_value=100)
        with ledger.session().lease() as lease:
            lease.charge(scope="read")
            lease.charge(idempotency_key="own")
            lease.charge(value=60)
            self.assertEqual(ledger.count("POST actions"), 3)
            self.assertIn("own", [r.key for r in ledger.seen if r.place == "POST actions"])
        ledger.balances(3, 6_000)

    def test_what_is_wrong_with_a_charge_is_said_at_once_or_by_the_service(self) -> None:
        ledger = Ledger(self)
        with ledger.session().lease() as lease:
            wrong: List[Any] = [0.5, None, True, [1]]
            for value in wrong:
                with self.assertRaises(TypeError):
                    lease.charge(value=value)
            for value in ("-1", "0.0000001", Decimal("sNaN"), 10**10):
                with self.assertRaises(ValueError):
                    lease.charge(value=value)
            with self.assertRaises(ValueError):
                lease.charge(timeout=0)
            self.assertEqual(ledger.count("POST actions"), 0)
            for members in ({"count": 0}, {"count": 1001}, {"action_type": ""}, {"action_type": "x" * 201}):
                before = ledger.count("POST actions")
                try:
                    lease.charge(**members)  # type: ignore[arg-type]
                except remit.RemitError:
                    pass
                self.assertEqual(ledger.count("POST actions"), before + 1, members)

    def test_lost_answers_are_asked_for_again_with_the_same_key_and_the_same_numbers(self) -> None:
        ledger = Ledger(self, max_actions=100_000)
        sent = [0]

        def react(request: Request) -> str:
            if request.place.startswith("GET"):
                return PASS
            sent[0] += 1
            return LOSE if sent[0] % 3 == 1 else DOWN if sent[0] % 7 == 0 else PASS

        ledger.react = react
        n = 0
        with ledger.session().lease() as lease:
            while sent[0] < 60 and n < 20_000:
                lease.charge("t", "0.01")
                n += 1
        ledger.balances(n, n)
        for request in ledger.seen:
            for other in ledger.seen:
                self.assertTrue(request.key is None or request.key != other.key or request.text == other.text)

    def test_an_outcome_that_stays_unknown_is_learned_later_and_nothing_of_the_lease_is_lost(self) -> None:
        for lost in ("POST leases", "POST settle"):
            ledger = Ledger(self, max_actions=10_000)
            lease = ledger.session(max_attempts=1).lease()
            failures = [3]

            def react(request: Request) -> str:
                failures[0] -= request.place == lost
                return LOSE if request.place == lost and failures[0] >= 0 else PASS

            ledger.react = react
            n = 0
            while n < 200 or failures[0] == 3 and n < 5_000:
                lease.charge("t", "0.01")
                n += 1
                time.sleep(0.001)  # the thread that gets leases has its turn
            for _ in range(5):
                try:
                    lease.close()
                except remit.OutcomeUnknown:
                    pass
            self.assertLess(failures[0], 3)
            ledger.balances(n, n)

    def test_a_first_lease_whose_answer_was_lost_is_given_back(self) -> None:
        ledger = Ledger(self)
        ledger.react = lambda r: LOSE if (r.place, r.nth) == ("POST leases", 1) else PASS
        with self.assertRaises(remit.OutcomeUnknown):
            ledger.session(max_attempts=1).lease()
        until(lambda: ledger.count("POST settle") > 0 and not ledger.open())
        ledger.balances(0, 0)

    def test_while_the_service_is_down_what_is_leased_is_spent_and_nothing_else(self) -> None:
        ledger = Ledger(self)
        lease = ledger.session(max_attempts=1).lease()
        ledger.react = lambda _: DOWN
        n = 0
        with self.assertRaises(remit.Unavailable):
            while True:
                lease.charge()
                n += 1
        self.assertEqual(n, 16)
        with self.assertRaises(remit.Unavailable):
            lease.close()
        ledger.react = lambda _: PASS
        lease.close()
        ledger.balances(16, 0)

    def test_a_process_that_dies_has_spent_what_it_leased_and_no_more(self) -> None:
        ledger = Ledger(self, max_actions=100_000)
        clock = Clock(self)
        ledger.now = clock.monotonic
        with mock.patch("remit.spender.Spender._watch"):  # nothing settles
            for _ in range(20):
                lease = ledger.session().lease()
                for _ in range(300):
                    lease.charge()
        clock.forward(70)
        self.assertEqual(ledger.open(), [])
        self.assertGreaterEqual(ledger.actions, 6_000)
        ledger.within_limits()

    def test_an_expired_lease_is_not_spent_whichever_clock_says_so(self) -> None:
        for moved in ("moved", "moved_wall"):
            ledger = Ledger(self, max_lease=1)
            clock = Clock(self)
            with mock.patch("remit.spender.Spender._watch"):
                lease = ledger.session().lease()
                lease.charge()
                before = len(ledger.seen)
                setattr(clock, moved, 0.951)
                lease.charge()
                self.assertGreater(len(ledger.seen), before)
            setattr(clock, moved, 0.0)
            lease.close()
            ledger.balances(2, 0)

    def test_the_lifetime_counts_from_before_the_request(self) -> None:
        ledger, clock = Ledger(self, max_lease=10), Clock(self)

        def react(request: Request) -> str:
            clock.forward(9.6 if request.place == "POST leases" else 0)  # the answer takes long
            return PASS

        ledger.react = react
        lease = ledger.session().lease()
        ledger.react = lambda _: PASS
        before = len(ledger.seen)
        lease.charge()
        self.assertGreater(len(ledger.seen), before)
        lease.close()

    def test_a_settlement_after_the_lease_has_expired_is_late_and_exact(self) -> None:
        ledger, clock = Ledger(self, max_lease=2), Clock(self)
        ledger.now = clock.monotonic
        with ledger.session().lease() as lease:
            lease.charge()
            clock.forward(3)  # the process slept
            lease.charge()
        ledger.balances(2, 0)
        self.assertTrue(any(each.late and each.actions == 1 for each in ledger.leases.values()))

    def test_idle_leases_are_given_back_and_not_renewed(self) -> None:
        ledger, clock = Ledger(self), Clock(self)
        lease = ledger.session().lease()
        for _ in range(100):
            lease.charge()
        clock.forward(5.1)
        until(lambda: not ledger.open() and ledger.actions == 100)
        ledger.balances(100, 0)
        until(lambda: "remit-lease" not in [thread.name for thread in threading.enumerate()])
        lease.charge()  # it leases again
        lease.close()
        ledger.balances(101, 0)

    def test_a_lease_in_use_is_renewed_before_it_expires(self) -> None:
        ledger = Ledger(self, max_lease=2)
        with ledger.session().lease() as lease:
            end = time.monotonic() + 3.5
            n = 0
            while time.monotonic() < end:
                lease.charge()
                n += 1
                time.sleep(0.15)
            self.assertEqual(ledger.count("POST actions"), 0)
        ledger.balances(n, 0)
        self.assertFalse(any(each.late for each in ledger.leases.values()))

    def test_a_session_that_has_ended_refuses_as_the_service_does_once_the_lease_is_spent(self) -> None:
        ledger = Ledger(self)
        with ledger.session().lease() as lease:
            ledger.status = "completed"
            n = 0
            with self.assertRaises(remit.SessionNotActive) as caught:
                while True:
                    lease.charge()
                    n += 1
        self.assertEqual((n, caught.exception.session_status), (16, "completed"))
        ledger.balances(16, 0)

    def test_a_session_without_leases_refuses_one(self) -> None:
        with self.assertRaises(remit.LimitReached) as caught:
            Ledger(self, max_lease=0).session().lease()
        self.assertEqual(caught.exception.limit, "max_lease_seconds")

    def test_leases_have_keys_on_a_client_without_them(self) -> None:
        ledger = Ledger(self)
        with ledger.session(idempotency_keys=False).lease(expires_in=0.5) as lease:
            lease.charge(scope="read")
        keyed = {r.place: r.key is not None for r in ledger.seen}
        self.assertEqual(
            {place: keyed[place] for place in ("POST leases", "POST settle", "POST actions")},
            {"POST leases": True, "POST settle": True, "POST actions": False},
        )
        self.assertEqual([r.body["expires_in_seconds"] for r in ledger.seen if r.place == "POST leases"], [1])

    def test_64_types_are_told_apart_at_most_and_the_rest_is_other(self) -> None:
        ledger = Ledger(self)
        with ledger.session().lease() as lease:
            for i in range(1_000):
                lease.charge("other" if i == 0 else f"type {i}")
            lease.charge("a", count=3)
            lease.charge()
        ledger.balances(1_004, 0)
        types = [r.body.get("by_action_type", {}) for r in ledger.seen if r.place == "POST settle"]
        self.assertTrue(any(len(names) == 64 and "other" in names for names in types))

    def test_the_time_of_a_charge_bounds_its_wait(self) -> None:
        ledger = Ledger(self)
        lease = ledger.session().lease()
        for _ in range(16):
            lease.charge()
        held = threading.Event()
        ledger.react = lambda _: PASS if held.wait(5) else PASS
        waiting = threading.Thread(target=lease.charge, args=("t", "0.01"))
        waiting.start()
        until(lambda: ledger.count("POST settle") > 0)
        began = time.monotonic()
        with self.assertRaises(remit.Unavailable):
            lease.charge("t", "0.01", timeout=0.05)
        self.assertLess(time.monotonic() - began, 2)
        held.set()
        waiting.join(10)
        lease.close()
        ledger.balances(17, 1)

    def test_a_settlement_of_a_lease_that_others_settled_is_reported_by_close(self) -> None:
        ledger = Ledger(self)
        lease = ledger.session().lease()
        lease.charge()
        next(iter(ledger.leases.values())).status = "settled"
        with self.assertRaises(remit.RemitError) as caught:
            lease.close()
        self.assertEqual(caught.exception.code, "lease_settled")
        lease.close()

    def test_an_error_in_the_block_wins_over_one_of_the_settlement(self) -> None:
        ledger = Ledger(self)
        with self.assertLogs("remit", "WARNING"), self.assertRaises(KeyError):
            with ledger.session(max_attempts=1).lease() as lease:
                lease.charge()
                ledger.react = lambda _: DOWN
                raise KeyError
        ledger.react = lambda _: PASS
        lease.close()
        ledger.balances(1, 0)

    @unittest.skipUnless(hasattr(os, "fork"), "this system does not fork")
    def test_a_forked_child_does_not_spend_what_its_parent_has_leased(self) -> None:
        ledger = Ledger(self)
        lease = ledger.session().lease()
        lease.charge()
        read, write = os.pipe()
        lease._spender._holdings.lock.acquire()  # as a thread might that the child does not have
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of a fork beside threads
            child = os.fork()
        if child == 0:
            try:
                before = set(ledger.leases)
                lease.charge("child")
                ids = sorted(set(ledger.leases) - before)
                lease.close()
                settled = [each.id for each in ledger.leases.values() if each.status == "settled"]
                os.write(write, f"{ids == settled and len(ids) > 0}".encode())
            finally:
                os._exit(0)
        lease._spender._holdings.lock.release()
        os.close(write)
        with os.fdopen(read) as answer:
            self.assertEqual(answer.read(), "True")
        os.waitpid(child, 0)
        lease.close()
        ledger.balances(1, 0)


class LeasesOfTheService(ServiceTest):
    def test_the_books_show_what_was_charged_from_leases_to_the_last_unit(self) -> None:
        for limits, limit in ({"max_actions": 300}, "max_actions"), ({"max_value": 3}, "max_value_usd"):
            session = self.new_session(max_lease=60, **limits)
            charged = 0
            with session.lease() as lease, self.assertRaises(remit.LimitReached) as caught:
                while True:
                    lease.charge(f"type {charged % 5}", "0.01")
                    charged += 1
            info = session.get()
            self.assertEqual((charged, info.action_count, info.value_used, info.value_held), (300, 300, 3, 0))
            self.assertEqual(caught.exception.limit, limit)

    def test_what_a_lease_holds_is_shown_as_held_and_given_back_when_it_is_closed(self) -> None:
        session = self.new_session(max_value=100, max_lease=timedelta(minutes=1))
        with session.lease(expires_in=timedelta(hours=1)) as lease:  # longer than allowed: it gets what is allowed
            lease.charge(value="0.01")
            lease.charge(value="0.01")
            self.assertGreater(session.get().value_held, Decimal("0.02"))
        info = session.get()
        self.assertEqual((info.action_count, info.value_used, info.value_held), (2, Decimal("0.02"), 0))
        self.assertEqual(info.max_lease_seconds, 60)

    def test_settlements_whose_answers_were_lost_are_booked_once(self) -> None:
        client, proxy = self.proxied(lambda r, n: network.LOSE if "lease" in r.path and n == 1 else network.PASS)
        session = self.new_session(client, max_lease=60)
        with session.lease() as lease:
            for _ in range(200):
                lease.charge("llm.call", "0.01")
        info = session.get()
        self.assertEqual((info.action_count, info.value_used, info.value_held), (200, 2, 0))
        self.assertGreater(len(proxy.to(f"/v1/sessions/{session.id}/leases")), 1)

    def test_a_session_must_allow_leases_and_one_that_ended_grants_none(self) -> None:
        session = self.new_session()
        with self.assertRaises(remit.LimitReached) as caught:
            session.lease()
        self.assertEqual(caught.exception.limit, "max_lease_seconds")
        self.organization.update_session(session.id, max_lease=30)
        with session.lease() as lease:
            session.end()
            with self.assertRaises(remit.SessionNotActive):
                session.lease()
            lease.charge()  # what is leased may be spent
        self.assertEqual(session.get().action_count, 1)


class Exit(unittest.TestCase):
    def test_leases_that_are_open_at_exit_are_settled(self) -> None:
        # Exit handlers run in the opposite order of their registration, so the check follows the SDK's own handler.
        program = (
            "import atexit, sys, unittest\n"
            "atexit.register(lambda: print(len(kept.open()), kept.actions))\n"
            "import ledger\n"
            "kept = ledger.Ledger(unittest.TestCase())\n"
            "lease = kept.session().lease()\n"
            "for _ in range(5): lease.charge()\n"
        )
        here = Path(__file__).resolve().parent
        for end, status in ("", 0), ("sys.exit(3)", 3), ("raise SystemExit('no')", 1):
            done = subprocess.run(
                [sys.executable, "-c", program + end], cwd=here, capture_output=True, text=True, timeout=30,
                env={**os.environ, "PYTHONPATH": f"{here}:{here.parent / 'src'}"},
            )
            self.assertEqual((done.stdout, done.returncode), ("0 5\n", status), done.stderr)
