"""An agent loop that spends no more than its Remit session allows.

    REMIT_ADDR=… REMIT_AGENT=… REMIT_SECRET=… REMIT_SESSION=… python3 agent_loop.py "task"

The model here is a STAND-IN: it follows a script, and what a step costs is made up. Put your own into next_step(), the only
function that knows it; nothing else has to change. The tools are as harmless: they print what they would do.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Callable, Dict, List, Optional

import remit


@dataclass(frozen=True)
class Step:
    """What the model wants: a tool with its arguments, or no tool and its last words."""

    words: str
    tool: Optional[str] = None
    arguments: Dict[str, Any] = field(default_factory=dict)


MODEL_PRICE = Decimal("0.03")  # USD for one call of the model: the most that it may cost, as it is charged before


def next_step(task: str, history: List[str]) -> Step:
    """Asks the model what to do next. THE STAND-IN: a model of yours gets the task and the history, and returns a Step."""
    script = [
        Step("I look for a supplier.", "search", {"query": task}),
        Step("I compare the first three.", "search", {"query": task + " prices"}),
        Step("I order from the cheapest.", "pay", {"to": "Bolt & Nut Ltd", "amount": Decimal("0.50")}),
        Step("I look whether it was sent.", "search", {"query": "order status"}),
    ]
    return script[len(history)] if len(history) < len(script) else Step("The order is placed.")


def search(session: remit.Session, query: str) -> str:
    """A tool with a fixed price: charged before it runs."""
    session.charge("tool.search", "0.01")
    return f"3 results for {query!r}"


def pay(session: remit.Session, to: str, amount: Decimal) -> str:
    """The dangerous tool. Its transaction holds the amount before anything is done; an exception releases it, and
    the prior state says what to restore. The commit charges what it came to."""
    with session.begin("tool.pay", pre_state={"balance": 100, "to": to}, value=amount) as tx:
        print(f"    paying {amount} USD to {to}")  # the call of your payment provider
        tx.commit(value=amount, post_state={"balance": 100 - amount, "to": to})
    return f"paid, as transaction {tx.id}"


TOOLS: Dict[str, Callable[..., str]] = {"search": search, "pay": pay}


def run(session: remit.Session, task: str) -> bool:
    """Works until the model is done, which is True, or the budget is."""
    history: List[str] = []
    try:
        while True:
            session.charge("llm.call", MODEL_PRICE)  # before the call: what is refused here has cost nothing
            step = next_step(task, history)
            print(f"  {step.words}")
            if step.tool is None:
                return True
            history.append(TOOLS[step.tool](session, **step.arguments))
            print(f"    {history[-1]}")
    except remit.LimitReached as e:
        print(f"stopped: {e.limit} is reached, {e.usage.remaining_actions} actions and {e.usage.remaining_value} USD are left")
    except remit.SessionNotActive as e:
        print(f"stopped: the session is {e.session_status}")
    return False


def main() -> int:
    session = remit.Session.from_env()
    done = run(session, " ".join(sys.argv[1:]) or "a box of M4 bolts")
    now = session.get()
    print(f"used: {now.action_count} of {now.max_actions} actions, {now.value_used} of {now.max_value} USD")
    return 0 if done else 3


if __name__ == "__main__":
    sys.exit(main())
