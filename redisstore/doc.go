// Package redisstore keeps everything that Remit keeps, in Redis.
//
// Each operation is one script of package lua, which validates first and then writes, so it happens whole or not at
// all. keys.go alone spells keys; package redisclient sends scripts, and never one twice that may have run;
// refusals.go alone turns a script's reply codes into errors. Times come from Redis's clock, money is whole
// micro-dollars, and what a state follows from (an agent's revocation, an expiry) is read with the state, never swept
// into it: see Session.Status.
//
// Errors are ErrUnavailable (nothing happened), ErrOutcomeUnknown (a write may have happened), or one of the refusals.
package redisstore
