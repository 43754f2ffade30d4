package bench

import (
	"context"
	"testing"
)

// emptyArguments is EVALSHA's tail for a script with three keys and seven arguments of about the sizes of a charge's: what
// Redis pays for any script before it does something.
var emptyArguments = []string{
	"3", "a:{c3f1}:01931b6e0a5b-7c0", "s:{c3f1}:01931b6e0a5b-7c1", "ev:{c3f1}:01931b6e0a5b-7c",
	"organization-id-", "an-agents-own-id", "family:the-family-of-it", "1", "1", "-", "-",
}

// emptyCalls is the least number of calls of a round: with few, redis-benchmark's start counts.
const emptyCalls = 100_000

// emptyScript calls a script that does nothing with redis-benchmark -P 64 -c 50: the least processor time that Redis can take
// for a script with as many keys and arguments as a charge's.
func (s *service) emptyScript(tb testing.TB) contender {
	tb.Helper()
	program := must(findRedisBenchmark())(tb)
	sha := must(s.redis.ScriptLoad(context.Background(), "").Result())(tb)
	command := append([]string{"EVALSHA", sha}, emptyArguments...)
	return contender{name: "empty-script", redis: s.redisPID, run: func(n int) (round, error) {
		return runRedisBenchmark(program, s.redis.Options().Addr, 64, max(8*n, emptyCalls), command)
	}}
}
