from __future__ import annotations

import logging
from contextlib import ExitStack, suppress
from typing import Any
from unittest import mock

import remit
from network import LOSE, PASS, Reaction, Request, ServiceTest, refusal
from remit.transactions import Transaction
from remit.transport import _Connection


class Oops(Exception):
    pass


class Transactions(ServiceTest):
    def test_an_exception_rolls_back_and_propagates(self) -> None:
        session = self.new_session()
        for error in (Oops, KeyboardInterrupt):
            with self.assertRaises(error):
                with session.begin("payment", pre_state={"a": 1}, value=2) as tx:
                    raise error
            self.assertEqual((tx.info.status, tx.info.reason, tx.info.pre_state), ("rolled_back", "not finished", {"a": 1}))
        self.assertEqual((session.get().value_used, session.get().value_held), (0, 0))

    def test_a_finished_transaction_sends_nothing(self) -> None:
        session = self.new_session()
        with self.assertRaises(Oops):
            with session.begin("payment", value=2) as tx:
                tx.commit()
                raise Oops  # after the commit: it stays committed
        self.assertEqual(tx.get().status, "committed")
        with self.assertRaises(remit.TransactionDone):
            tx.commit()
        with self.assertRaises(remit.TransactionDone):
            tx.rollback()
        with session.begin("payment", value=2) as tx:
            tx.rollback("changed my mind")
        self.assertEqual((tx.get().status, tx.get().reason), ("rolled_back", "changed my mind"))

    def test_a_transaction_without_a_session_keeps_a_state(self) -> None:
        self.new_session()
        with self.agent.begin("deploy", pre_state={"version": 6}, metadata={"by": "ci"}) as tx:
            tx.commit(post_state={"version": 7})
        listed = list(self.agent.transactions(status="committed"))
        self.assertEqual([t.id for t in listed], [tx.id])
        self.assertIsNone(listed[0].pre_state)
        self.assertEqual(self.agent.transaction(tx.id).info.metadata, {"by": "ci"})
        self.assertEqual([t.id for t in self.organization.transactions(agent_id=self.agent.id)], [tx.id])

    def test_a_hold_beyond_the_limit_begins_nothing(self) -> None:
        session = self.new_session(max_value=1)
        with self.assertRaises(remit.LimitReached):
            with session.begin("payment", value=2):
                self.fail("the block is entered")
        self.assertEqual(session.get().action_count, 0)

    def test_a_failed_rollback_does_not_hide_what_ended_the_block(self) -> None:
        organization = self.new_organization()
        made = organization.create_agent("scout", ["read"])
        assert made.secret
        refuses = refusal(403, "insufficient_scope", required_scope="admin")
        client, _ = self.proxied(lambda r, _n: refuses if r.path.endswith("/rollback") else PASS)
        session = client.agent(made.id, made.secret).session(organization.create_session(made.id).id)
        with self.assertLogs("remit", logging.WARNING) as logged, self.assertRaises(Oops):
            with session.begin("payment", value=2) as tx:
                raise Oops
        self.assertIn("insufficient_scope", logged.output[0])
        self.assertEqual(tx.get().status, "pending")

    def test_a_commit_with_unknown_outcome_is_not_rolled_back(self) -> None:
        def react(request: Request, n: int) -> Reaction:
            return LOSE if request.path.endswith("/commit") else PASS

        client, proxy = self.proxied(react)
        session = self.new_session(client)
        with self.assertRaises(remit.OutcomeUnknown):
            with session.begin("payment", value=2) as tx:
                tx.commit()
        self.assertEqual(tx.get().status, "committed")
        self.assertEqual([r for r in proxy.requests if r.path.endswith("/rollback")], [])

    def test_a_commit_that_did_not_happen_can_be_repeated_or_rolled_back(self) -> None:
        refused: Any = {"n": 4}

        def react(request: Request, n: int) -> Reaction:
            return refusal(503, "unavailable") if request.path.endswith("/commit") and n <= refused["n"] else PASS

        client, _ = self.proxied(react)
        session = self.new_session(client)
        tx = session.begin("payment", value=2)
        with self.assertRaises(remit.Unavailable):
            tx.commit()
        self.assertEqual(tx.commit().status, "committed")
        with self.assertRaises(remit.Unavailable):
            with session.begin("payment", value=2) as tx:
                tx.commit()
        self.assertEqual(tx.get().status, "rolled_back")

    def test_an_interrupted_commit_is_not_rolled_back(self) -> None:
        """Its outcome is unknown once the request was sent."""
        for error in (KeyboardInterrupt, SystemExit, Oops):
            client, proxy = self.proxied()
            session = self.new_session(client)
            answer = _Connection.answer

            def interrupted(connection: _Connection, early: bool, most: int) -> object:
                got = answer(connection, early, most)
                if proxy.requests[-1].path.endswith("/commit"):
                    raise error
                return got

            with self.subTest(error), self.assertRaises(error):
                with session.begin("payment", value=2) as tx:
                    with mock.patch.object(_Connection, "answer", interrupted):
                        tx.commit()
            self.assertEqual(tx.get().status, "committed")
            self.assertEqual([r for r in proxy.requests if r.path.endswith("/rollback")], [])

    def test_a_commit_that_cannot_be_sent_is_rolled_back(self) -> None:
        session = self.new_session()
        wrong: Any
        for wrong in ({"post_state": {"a": object()}}, {"timeout": -1}, {"value": 0.5}, {"idempotency_key": ""}):
            with self.subTest(wrong), self.assertRaises((TypeError, ValueError)):
                with session.begin("payment", value=2) as tx:
                    tx.commit(**wrong)
            self.assertEqual(tx.get().status, "rolled_back")

    def test_a_rollback_that_failed_does_not_become_a_commit(self) -> None:
        failing = 0

        def react(request: Request, n: int) -> Reaction:
            return refusal(503, "unavailable") if request.path.endswith("/rollback") and n <= failing else PASS

        client, _ = self.proxied(react)
        session = self.new_session(client)
        for give_up in (Transaction.rollback, Transaction.reverse):
            for failing, status in ((4, "rolled_back"), (8, "pending")):
                with self.subTest(failing, give_up=give_up), ExitStack() as logs:
                    if status == "pending":
                        logs.enter_context(self.assertLogs("remit", logging.WARNING))
                    with session.begin("payment", value=2) as tx, suppress(remit.Unavailable):
                        give_up(tx, "changed my mind")
                    self.assertEqual(tx.get().status, status)
            self.assertEqual(tx.commit().status, "committed")  # an explicit commit still works
