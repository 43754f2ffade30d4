from __future__ import annotations

import copy
import dataclasses
import pickle
import traceback
from email.message import Message
from typing import Any, Callable, List

import remit
from network import DROP, PASS, Answer, Reaction, Request, ServiceTest, refusal
from remit.calls import next_page

KEY, SECRET = remit.Credential("rmk_hush-hush-key"), remit.Credential("rms_hush-hush-secret")
PAIR = '{"access_token":"hush-hush-access","refresh_token":"hush-hush-refresh","expires_in":3600}'
SOME = "01a1ffac-a9a1-7dc1-aa48-a64bee9cc8b2"


def visible(error: BaseException) -> str:
    """Returns what a tool shows of an error if it prints the variables of every frame except the test's own, including those
    of causes and contexts."""
    assert error.__traceback__
    error = error.with_traceback(error.__traceback__.tb_next)
    chain: List[BaseException] = []
    todo = [error]
    while todo:
        one = todo.pop()
        chain.append(one)
        todo += [e for e in (one.__cause__, one.__context__) if e is not None and e not in chain]
    shown: List[str] = []
    for one in chain:
        shown += traceback.TracebackException.from_exception(one, capture_locals=True).format(chain=False)
        shown += [repr(one), str(one), repr(vars(one))]
    return "\n".join(shown)


class Errors(ServiceTest):
    def test_errors_show_no_credential(self) -> None:
        calls: List[Callable[[remit.Client], object]] = [
            lambda c: c.organization(KEY).create_agent("scout"),
            lambda c: c.organization(KEY).introspect(SECRET),
            lambda c: c.agent(SOME, SECRET).session(SOME).charge(value=1),
            lambda c: c.agent(SOME, SECRET).refresh(),
            lambda c: c.verify(SECRET),
            lambda c: c.create_organization("acme", bootstrap_token=KEY),
            lambda c: c.organization(KEY).rotate_agent_secret(SOME),
        ]
        reactions: List[Reaction] = [
            PASS, DROP, refusal(503, "unavailable"), refusal(401, "invalid_token"), refusal(403, "session_limit_reached"),
            Answer(200, PAIR[:-1]), Answer(200, PAIR.replace("3600", '"hush-hush"')), Answer(500, PAIR),
            Answer(200, "[" + PAIR + "]"),
            Answer(200, '{"secret":"hush-hush\\nsecret","previous_expires_at":"hush"}'),
        ]
        errors = 0
        for first in (True, False):  # whether the token exchange succeeds
            for does in reactions:
                def react(request: Request, n: int) -> Reaction:
                    return Answer(200, PAIR) if request.path.startswith("/v1/auth/") and n == 1 and first else does

                client, proxy = self.proxied(react)
                for call in calls:
                    try:
                        call(client)
                    except remit.RemitError as error:
                        errors += 1
                        self.assertNotIn("hush-hush", visible(error))
                self.assertTrue(proxy.requests)
        self.assertGreater(errors, 100)

    def test_only_reveal_shows_a_credential(self) -> None:
        shown: List[str] = [repr(SECRET), str(SECRET), f"{SECRET}", f"{SECRET:>40}", "%s %r" % (SECRET, SECRET)]
        for text in [*shown, repr([SECRET]), repr({"a": SECRET})]:
            self.assertNotIn("hush", text)
        self.assertEqual(SECRET.reveal(), "rms_hush-hush-secret")
        self.assertIs(copy.deepcopy(SECRET), SECRET)
        with self.assertRaises(TypeError):
            pickle.dumps(SECRET)
        for text in ("", "two\r\nlines", "gr\u00fcn", "a b c"):
            with self.assertRaises(ValueError) as caught:
                remit.Credential(text)
            self.assertNotIn(text or "?", str(caught.exception))
        self.assertEqual(remit.Credential(" rmk_of-a-file\r\n").reveal(), "rmk_of-a-file")

    def test_errors_show_no_malformed_credential(self) -> None:
        takers: List[Callable[[Any], object]] = [
            remit.Credential,
            lambda text: self.client.organization(text),
            lambda text: self.client.agent(SOME, text),
            lambda text: self.client.exchange(SOME, text),
            lambda text: self.client.create_organization("acme", bootstrap_token=text),
            lambda text: self.client.verify(text),
            lambda text: self.client.organization(KEY).introspect(text),
        ]
        refused = 0
        for text in ("hush-hush\nsecret", "hush-hush-s\u00e9cret", b"hush-hush"):
            for take in takers:
                try:
                    take(text)
                except ValueError as error:
                    assert error.__traceback__
                    if take is not remit.Credential:  # the lambda is the test's own, too
                        error = error.with_traceback(error.__traceback__.tb_next)
                    self.assertNotIn("hush", visible(error))
                    refused += 1
        self.assertEqual(refused, 3 * len(takers))

    def test_no_repr_shows_a_credential(self) -> None:
        client = self.client_of("http://127.0.0.1:1")
        organization, agent = client.organization(KEY), client.agent(SOME, SECRET)
        made = self.client.create_organization("acme")
        assert made.api_key
        for value in (client, organization, agent, agent.session(SOME), agent.transaction(SOME), made):
            self.assertNotRegex(repr(value) + repr(getattr(value, "__dict__", "")), "hush|rmk_|rms_|rmsk_")
        self.assertNotIn(made.api_key.reveal(), repr(dataclasses.asdict(made)))

    def test_an_error_names_the_call_and_the_cause(self) -> None:
        answer = refusal(400, "invalid_request", errors=[{"field": "name", "message": "must be a text"}])
        client, _ = self.proxied(lambda _r, _n: answer)
        with self.assertRaises(remit.RemitError) as caught:
            client.organization(KEY).get_agent(SOME)
        want = f"GET /v1/agents/{SOME}: 400 invalid_request: words; name must be a text (request r-1)"
        self.assertEqual(str(caught.exception), want)

    def test_an_error_survives_pickling(self) -> None:
        session = self.new_session(max_value=1)
        with self.assertRaises(remit.LimitReached) as caught:
            session.charge(value=2)
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((str(again), again.usage), (str(caught.exception), caught.exception.usage))

    def test_unknown_fields_are_ignored_and_malformed_ones_refused(self) -> None:
        good = (
            '{"id":"a","agent_id":"b","status":"new_kind","action_count":1,"max_actions":2,'
            '"expires_at":"2026-11-21T09:19:32.1+01:00"%s}'
        )
        body = ""
        client, _ = self.proxied(lambda _r, _n: Answer(200, body))
        organization = client.organization(KEY)
        body = "[" + good % ',"more":{"a":[1e400]}' + "]"
        self.assertEqual(next(organization.sessions()).expires_at.isoformat(), "2026-11-21T08:19:32.100000+00:00")
        for wrong in ('"status":"new_kind",', '"a"', '"2026-11-21T09:19:32.1+01:00"', '"action_count":1,'):
            for instead in ("", "7", '"x"', "true"):
                body = "[" + good.replace(wrong, instead) % "" + "]"
                if instead in ('"x"',) and wrong == '"a"':
                    continue  # which is an id, too
                with self.subTest(body), self.assertRaises(remit.RemitError) as caught:
                    next(organization.sessions())
                self.assertIn("unreadable answer", str(caught.exception))

    def test_the_next_page_is_found_among_other_links(self) -> None:
        following = '</v1/sessions?cursor=c%2B1>; rel="next"'
        other = '<https://a.example/?cursor=no>; rel="preload"; title="a, <b>"'
        for links in (
            [following], [other, following], [following, other], [f"{other},{following}"], [f"{other}, {following}"],
            [f"{following} ,{other}"], ['</other?cursor=no>; rel="prev"', f"{other},{following}"],
        ):
            headers = Message()
            for link in links:
                headers["Link"] = link
            with self.subTest(links):
                self.assertEqual(next_page(headers, "cursor"), "c+1")
        for link in (other, "", "<", '<>; rel="next"', '<http://[?cursor=c>; rel="next"', "<" * 60_000, '<>"' * 20_001):
            headers = Message()
            headers["Link"] = link
            with self.subTest(link[:40]):
                self.assertEqual(next_page(headers, "cursor"), "")

    def test_a_next_link_to_the_same_page_ends_the_list(self) -> None:
        link = '<http://elsewhere/?cursor=c&limit=1>; rel="next"'
        client, proxy = self.proxied(lambda _r, _n: Answer(200, "[]", {"Link": link}))
        with self.assertRaises(remit.RemitError):
            list(client.organization(KEY).sessions())
        self.assertEqual([request.query for request in proxy.requests], ["limit=100", "limit=100&cursor=c"])
