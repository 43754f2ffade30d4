// Package redisstore stores everything that Remit keeps, in Redis.
//
// Each operation is one script of package lua, which validates first and then writes, so it happens completely or not at
// all. keys.go alone spells keys; package redisclient sends scripts, and never one twice that may have run;
// refusals.go alone turns a script's reply codes into errors. Times come from Redis's clock, money is whole
// micro-dollars, and what a status depends on (an agent's revocation, an expiry) is read with the object, never copied
// into it: see Session.Status.
//
// Errors are ErrUnavailable (nothing happened), ErrOutcomeUnknown (a write may have happened), or one of the refusals.
package redisstore
