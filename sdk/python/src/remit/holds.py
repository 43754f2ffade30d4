"""Holds what calls can cost before they are made, and settles them. hooks.py and meteredcall.py say when."""

from __future__ import annotations

import logging
from typing import Any, Dict, Mapping, Optional

from .errors import AgentLimitReached, BudgetExhausted, LimitReached, RemitError
from .metering import ModelCall, Settlement, Terms, terms
from .prices import Prices
from .runtime import now

_SETTLE_LIMIT = 10.0  # seconds

_log = logging.getLogger("remit")


class Holds:
    """Begins transactions and settles them. Its steps are coroutines: what is synchronous runs them to their end."""

    def __init__(
        self,
        session: Any,  # a Session or an AsyncSession
        prices: Prices,
        models: Optional[Mapping[str, str]],
        on_limit: Optional[str],
        reason: Optional[str],
        action_type: str,
        expires_in: float,
    ) -> None:
        self._session = session
        self._prices = prices
        self._models = dict(models or {})
        self._asks: Dict[str, Any] = {} if on_limit is None else {"on_limit": on_limit, "reason": reason}
        self._action_type = action_type
        self._expires_in = expires_in

    def _terms(self, call: ModelCall) -> Terms:
        return terms(self._prices, self._models, call)

    async def _begin_call(self, call: ModelCall, held: Terms) -> Any:
        """Begins the transaction of a call of a model. A provider may have answered a program that is killed, so it is spent then."""
        try:
            return await self._begin(self._action_type, held.value, {"model": call.model}, "commit")
        except (LimitReached, AgentLimitReached, BudgetExhausted) as e:
            limit = "max_value_usd" if isinstance(e, BudgetExhausted) else e.limit
            if limit.startswith("max_value_usd") or limit == "max_committed_usd":  # less output does not help against others
                e._needs = held.needs
            raise

    async def _begin(self, action_type: str, value: Any, metadata: Mapping[str, Any], on_expiry: Optional[str]) -> Any:
        return await now(self._session.begin(
            action_type, value=value, expires_in=self._expires_in, reversible=False, on_expiry=on_expiry, metadata=metadata, **self._asks
        ))

    async def _settle(self, transaction: Any, settlement: Optional[Settlement]) -> None:
        """Commits or rolls back; None commits what is held. The answer is delivered even if that fails: then the hold expires."""
        try:
            if settlement is None:
                await now(transaction.commit(timeout=_SETTLE_LIMIT))
            elif settlement.value is None:
                await now(transaction.rollback(settlement.reason, timeout=_SETTLE_LIMIT))
            else:
                await now(transaction.commit(value=settlement.value, timeout=_SETTLE_LIMIT))
        except RemitError as e:
            _log.warning("transaction %s could not be settled and is left to expire: %s", transaction.id, e)
