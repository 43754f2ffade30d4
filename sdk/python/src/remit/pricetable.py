"""Reads the entries of a price table, with exact decimals."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

from .modelerrors import InvalidPrices

# Prices are whole multiples of 10^-30 USD, so that sums of them are exact.
SCALE = 30
MOST_TOKENS = (1 << 53) - 1

_USD = 10**SCALE
_NUMBER = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?)([0-9]+))?", re.ASCII)
_MOST_TIERS = 16  # of a price: every call goes through them
_LONGEST_EXPONENT = 12  # digits; longer ones are beyond every number of digits that a table can have
_TIER = re.compile(r"([a-z_]+)_above_([1-9][0-9]{0,8})k_tokens", re.ASCII)
_MEMBERS = {
    "input_cost_per_token": "input",
    "output_cost_per_token": "output",
    "cache_read_input_token_cost": "cached_input",
    "cache_creation_input_token_cost": "cache_creation_input",
    "output_cost_per_reasoning_token": "reasoning",
}


class _Digits(str):
    """The text of a JSON number."""


@dataclass(frozen=True)
class Costs:
    """What a token of each kind costs in one call."""

    input: int
    cached_input: int
    cache_creation_input: int
    output: int
    reasoning: int


@dataclass(frozen=True)
class Model:
    """The prices of a model, and its limits in tokens."""

    base: Dict[str, int]  # by kind of token
    tiers: Dict[str, List[Tuple[int, int]]]  # by kind: the price of a prompt above a threshold, by threshold
    max_input: Optional[int]
    max_output: Optional[int]

    def at(self, prompt: int) -> Costs:
        """Returns the prices of a call with so many tokens in its prompt. What has no price of its own costs what input or output
        costs."""
        cost = dict(self.base)
        for kind, tiers in self.tiers.items():
            for above, price in tiers:
                if prompt > above:
                    cost[kind] = price
        input, output = cost["input"], cost["output"]
        return Costs(
            input, cost.get("cached_input", input), cost.get("cache_creation_input", input), output, cost.get("reasoning", output)
        )

    def prompts_within(self, prompt: int) -> List[int]:
        """Returns a size for each tier that a prompt of so many tokens can be in: 0, and one above each threshold."""
        return [0, *(above + 1 for tiers in self.tiers.values() for above, _ in tiers if prompt > above)]


def read(text: str) -> Dict[str, Model]:
    """Reads a table. Raises InvalidPrices for the first fault in the order of names."""
    entries = _decoded(text)
    models: Dict[str, Model] = {}
    for name in sorted(entries):
        if name == "sample_spec":  # by which LiteLLM's table describes itself
            continue
        entry = entries[name]
        if not isinstance(entry, dict):
            raise InvalidPrices._of(name, "", "must be an object")
        model = _model(name, entry)
        if "input" in model.base and "output" in model.base:
            models[name] = model
    return models


def _decoded(text: str) -> Dict[str, Any]:
    try:
        entries = json.loads(text, parse_int=_Digits, parse_float=_Digits, parse_constant=_refuse)
    except (ValueError, RecursionError) as e:
        said = f"must be JSON: {e}"
    else:
        if isinstance(entries, dict):
            return entries
        said = "must be an object"
    raise InvalidPrices._of("", "", said)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number")


def _model(name: str, entry: Dict[str, Any]) -> Model:
    model = Model({}, {}, _limit(entry, "max_input_tokens"), _limit(entry, "max_output_tokens") or _limit(entry, "max_tokens"))
    for member in sorted(entry):
        tier = _TIER.fullmatch(member)
        kind = _MEMBERS.get(tier[1] if tier else member)
        if kind is None or kind == "reasoning" and tier or entry[member] is None:
            continue
        try:
            cost = _cost(entry[member])
        except ValueError as e:
            raise InvalidPrices._of(name, member, str(e)) from None
        if tier:
            tiers = model.tiers.setdefault(kind, [])
            if len(tiers) == _MOST_TIERS:
                raise InvalidPrices._of(name, member, "must not be the seventeenth threshold of its price")
            tiers.append((int(tier[2]) * 1000, cost))
        else:
            model.base[kind] = cost
    for tiers in model.tiers.values():
        tiers.sort()
    return model


def _number(value: Any) -> Tuple[str, int, bool]:
    """Reads the text of a number as digits × 10^exponent, without zeros at either end of the digits, and whether it is negative."""
    found = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    if not found:
        raise ValueError("must be a number")
    sign, whole, fraction, exponent_sign, exponent = (part or "" for part in found.groups())
    exponent = exponent.lstrip("0") or "0"
    power = int(exponent) if len(exponent) <= _LONGEST_EXPONENT else 10**_LONGEST_EXPONENT
    digits = (whole + fraction).lstrip("0")
    power = (-power if exponent_sign == "-" else power) - len(fraction) + len(digits)
    digits = digits.rstrip("0")
    return digits, power - len(digits), sign == "-"


def _cost(value: Any) -> int:
    digits, exponent, is_negative = _number(value)
    if not digits:
        return 0
    if is_negative:
        raise ValueError("must not be negative")
    if len(digits) + exponent > 1:  # 10 or more
        raise ValueError("must be at most 1 USD per token")
    if exponent < -SCALE:
        raise ValueError("must have at most 30 decimals")
    cost: int = int(digits) * 10 ** (SCALE + exponent)
    if cost > _USD:
        raise ValueError("must be at most 1 USD per token")
    return cost


def _limit(entry: Dict[str, Any], member: str) -> Optional[int]:
    """Returns a limit in tokens: an integer from 1 to MOST_TOKENS. Any other value says nothing."""
    value = entry.get(member)
    if not isinstance(value, _Digits):
        return None
    digits, exponent, is_negative = _number(value)
    if not digits or is_negative or exponent < 0 or len(digits) + exponent > 16:
        return None
    limit: int = int(digits) * 10**exponent
    return limit if limit <= MOST_TOKENS else None
