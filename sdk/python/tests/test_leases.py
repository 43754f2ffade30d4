from __future__ import annotations

import threading
import time
import unittest
from decimal import Decimal
from typing import Any, Dict, List, Tuple

import network
import remit
from ledger import PASS, Clock, Ledger, until
from network import ServiceTest


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
            ledger = Ledger(self, **limits)
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

    def test_grants_have_keys_on_a_client_without_them_and_settlements_need_none(self) -> None:
        ledger = Ledger(self)
        with ledger.session(idempotency_keys=False).lease(expires_in=0.5) as lease:
            lease.charge(scope="read")
        keyed = {r.place: r.key is not None for r in ledger.seen}
        self.assertEqual(
            {place: keyed[place] for place in ("POST leases", "POST settle", "POST actions")},
            {"POST leases": True, "POST settle": False, "POST actions": False},
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


class LeasesOfTheService(ServiceTest):
    def test_the_books_show_what_was_charged_from_leases_to_the_last_unit(self) -> None:
        cases: List[Tuple[Dict[str, Any], str]] = [({"max_actions": 300}, "max_actions"), ({"max_value": 3}, "max_value_usd")]
        for limits, limit in cases:
            session = self.new_session(max_lease=60, **limits)
            charged = 0
            with session.lease() as lease, self.assertRaises(remit.LimitReached) as caught:
                while True:
                    lease.charge(f"type {charged % 5}", "0.01")
                    charged += 1
            info = session.get()
            self.assertEqual((charged, info.action_count, info.value_used, info.value_held), (300, 300, 3, 0))
            self.assertEqual(caught.exception.limit, limit)

    def test_settlements_whose_answers_were_lost_are_booked_once(self) -> None:
        client, proxy = self.proxied(lambda r, n: network.LOSE if "lease" in r.path and n == 1 else network.PASS)
        session = self.new_session(client, max_lease=60)
        with session.lease() as lease:
            for _ in range(200):
                lease.charge("llm.call", "0.01")
        info = session.get()
        self.assertEqual((info.action_count, info.value_used, info.value_held), (200, 2, 0))
        self.assertGreater(len(proxy.to(f"/v1/sessions/{session.id}/leases")), 1)
