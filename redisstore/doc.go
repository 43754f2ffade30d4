// Package redisstore stores all of Remit's data in Redis.
//
// Each operation is one script of package lua. It validates first and then writes, so it happens completely or not at all.
// Package internal/kernel has what all operations share: keys, scripts, callers, idempotency keys, quotas. Package redisclient
// sends scripts, and never repeats one that may have run. Times come from Redis's clock, money is whole micro-dollars. Readers derive a
// status from stored events (an agent's revocation, an expiry); no job updates it in the background: see Session.Status.
//
// Errors are ErrUnavailable (nothing happened), ErrOutcomeUnknown (a write may have happened), or one of the refusals.
package redisstore
