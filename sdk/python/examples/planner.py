"""A planner that gives three researchers a part of its budget each.

    REMIT_ADDR=… REMIT_AGENT=… REMIT_SECRET=… REMIT_SESSION=… python3 planner.py

The session is the planner's. Its agent and the session have the scope sessions:delegate. The models here are STAND-INS: they
find a fixed number of sources, and the prices are made up.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import List, Tuple

import remit

TOPICS = {"suppliers": 4, "prices": 6, "reviews": 9}  # and how many sources there are
PART = "0.40"  # USD that each researcher may spend at most
PRICE = "0.06"  # of one source


def research(session: remit.Session, topic: str) -> Tuple[int, str]:
    """A researcher: it charges its own part of the budget, and knows nothing of the planner's."""
    found, why = 0, "done"
    try:
        for _ in range(TOPICS[topic]):
            session.charge("llm.call", PRICE)  # before the call: what is refused here has cost nothing
            found += 1
    except remit.LimitReached as e:
        why = f"stopped: {e.usage.remaining_value} USD left"
    session.end()  # what it did not use goes back to the planner
    return found, why


def show(tree: remit.SessionTree, indent: str = "  ") -> None:
    delegated = f" and {tree.value_delegated} delegated" if tree.value_delegated else ""
    print(f"{indent}{tree.metadata.get('topic', 'planner')}: {tree.value_used} used{delegated} of {tree.max_value} USD")
    for child in sorted(tree.children, key=lambda c: str(c.metadata)):
        show(child, indent + "  ")


def main() -> int:
    agent = remit.Agent.from_env()
    planner = agent.session(os.environ["REMIT_SESSION"])
    planner.charge("llm.call", "0.10")  # the plan
    parts: List[remit.SessionInfo] = [
        planner.create_child(max_actions=20, max_value=PART, expires_in=600, metadata={"topic": topic}) for topic in TOPICS
    ]
    print("planned:")
    show(planner.tree())

    with ThreadPoolExecutor() as pool:
        results = pool.map(lambda part, topic: research(agent.session(part.id), topic), parts, TOPICS)
    print("researched:")
    for topic, (found, why) in zip(TOPICS, results):
        print(f"  {topic}: {found} sources, {why}")

    left = planner.charge("llm.call", "0.20")  # the summary
    print(f"summarized: {left.value_used} of {left.max_value} USD used, {left.remaining_value} left")
    return 0


if __name__ == "__main__":
    sys.exit(main())
