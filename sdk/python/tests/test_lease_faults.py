from __future__ import annotations

import os
import subprocess
import sys
import time
import unittest
import warnings
from pathlib import Path
from unittest import mock

import remit
from ledger import DOWN, LOSE, PASS, SUSPENDED, Clock, Ledger, Request, until


class LeaseFaults(unittest.TestCase):
    def test_lost_answers_are_asked_for_again_with_the_same_key_or_the_same_numbers(self) -> None:
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

    def test_a_settlement_whose_answer_was_lost_and_that_the_service_has_forgotten_was_made(self) -> None:
        ledger = Ledger(self)
        lease = ledger.session(max_attempts=1).lease()
        lease.charge()
        ledger.react = lambda r: LOSE if r.place == "POST settle" else PASS
        with self.assertRaises(remit.OutcomeUnknown):
            lease.close()
        for made in ledger.leases.values():
            made.forgotten = True  # an hour later
        ledger.react = lambda _: PASS
        lease.close()
        self.assertEqual(ledger.count("POST settle"), 2)
        ledger.balances(1, 0)

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

    def test_a_settlement_of_a_lease_that_others_settled_is_reported_by_close(self) -> None:
        ledger = Ledger(self)
        lease = ledger.session().lease()
        lease.charge()
        next(iter(ledger.leases.values())).status = "settled"
        with self.assertRaises(remit.RemitError) as caught:
            lease.close()
        self.assertEqual(caught.exception.code, "lease_settled")
        lease.close()

    def test_a_settlement_waits_until_a_suspended_organization_is_resumed(self) -> None:
        ledger = Ledger(self)
        lease = ledger.session().lease()
        lease.charge()
        ledger.react = lambda _: SUSPENDED
        with self.assertRaises(remit.OrganizationSuspended):
            lease.close()
        ledger.react = lambda _: PASS
        lease.close()
        ledger.balances(1, 0)

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
