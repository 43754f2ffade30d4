"""Prints how many leased charges one core makes in a second, against the service at REMIT_ADDR:

    REMIT_ADDR=http://127.0.0.1:8080 PYTHONPATH=src python3 bench/lease.py
"""

from __future__ import annotations

import time
from decimal import Decimal

import remit

SECONDS = 5
BATCH = 1_000
PRICE = "0.00001"

with remit.Client.from_env() as client:
    made = client.create_organization("bench")
    assert made.api_key
    organization = client.organization(made.api_key)
    scout = organization.create_agent("scout")
    assert scout.secret
    limits = organization.create_session(scout.id, max_actions=1_000_000_000, max_value=1_000_000_000, max_lease=60)
    session = client.agent(scout.id, scout.secret).session(limits.id)
    charges = 0
    with session.lease() as lease:
        end, used = time.monotonic() + SECONDS, time.process_time()
        while time.monotonic() < end:
            for _ in range(BATCH):
                lease.charge("llm.call", PRICE)
            charges += BATCH
        used = time.process_time() - used
    print(f"lease.charge(…): {charges / used:.0f} charges per second of one core")
    leases = sum(event.type == "lease.granted" for event in organization.events(scout.id, wait=False))
    info = session.get()
    assert (info.action_count, info.value_used) == (charges, charges * Decimal(PRICE)), info
    print(f"{charges} charges with {leases} leases in {SECONDS} seconds; the session shows exactly these")
