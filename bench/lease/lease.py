"""Charges a lease of the session in REMIT_SESSION for some seconds, and prints how many charges it made in each.

    python3 lease.py WARMUP SECONDS        with the SDK on PYTHONPATH; WARMUP are seconds before, that do not count
"""

import sys
import time
from decimal import Decimal

import remit

TURN = 1000  # charges between two looks at the clock

lease = remit.Session.from_env().lease()
value = Decimal("0.000001")


def charges_for(seconds: float) -> float:
    charges, charge, began = 0, lease.charge, time.perf_counter()
    while time.perf_counter() - began < seconds:
        for _ in range(TURN):
            charge("llm.call", value)
        charges += TURN
    return charges / (time.perf_counter() - began)


charges_for(float(sys.argv[1]))
for _ in range(int(sys.argv[2])):
    print(round(charges_for(1)))
lease.close()
