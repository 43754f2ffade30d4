package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	redisBenchmarkClients = 50
	// redisBenchmarkLimit bounds a run that hangs.
	redisBenchmarkLimit = 2 * time.Minute
)

// redisBenchmark calls a script with redis-benchmark, with that many calls per pipeline. The clock of redis-benchmark has a
// resolution of milliseconds and starts before it connects, so a round makes more calls than requested.
func (s *service) redisBenchmark(tb testing.TB, pipeline int, command []string) contender {
	tb.Helper()
	program := must(findRedisBenchmark())(tb)
	more := 2
	if pipeline > 1 {
		more = 8
	}
	return contender{name: "redis-benchmark", redis: s.redisPID, run: func(n int) (round, error) {
		before, err := s.charged(command)
		if err != nil {
			return round{}, err
		}
		result, err := runRedisBenchmark(program, s.redis.Options().Addr, pipeline, more*n, command)
		if err != nil {
			return round{}, err
		}
		after, err := s.charged(command)
		if err == nil && after-before-1 < more*n {
			err = fmt.Errorf("of %d charges %d were counted", more*n, after-before-1)
		}
		return result, err
	}}
}

func findRedisBenchmark() (path string, err error) {
	for _, name := range []string{"redis-benchmark", "valkey-benchmark"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("redis-benchmark is not on the PATH: it comes with Redis (scripts/install-tools.sh installs it)")
}

// charged charges once more and returns the action count, because redis-benchmark does not check replies.
func (s *service) charged(command []string) (actions int, err error) {
	text, err := s.redis.Do(context.Background(), wordsOf(command)...).Text()
	if err != nil {
		return 0, err
	}
	reply := strings.Split(text, "\n")
	if len(reply) < 2 || reply[0] != "ok" {
		return 0, fmt.Errorf("the script refuses: %q", reply)
	}
	return strconv.Atoi(reply[1])
}

func runRedisBenchmark(program, socket string, pipeline, n int, command []string) (round, error) {
	ctx, cancel := context.WithTimeout(context.Background(), redisBenchmarkLimit)
	defer cancel()
	args := append([]string{"-s", socket, "-c", strconv.Itoa(redisBenchmarkClients), "-P", strconv.Itoa(pipeline),
		"-n", strconv.Itoa(n), "--csv"}, command...)
	output, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		return round{}, fmt.Errorf("redis-benchmark: %w: %s", err, bytes.TrimSpace(output))
	}
	result, err := parseRedisBenchmark(string(output))
	result.operations = n
	return result, err
}

// parseRedisBenchmark reads the last line of --csv: the command, with arbitrary bytes, and then rps, avg, min, p50, p95, p99
// and max, in quotes.
func parseRedisBenchmark(output string) (round, error) {
	fields := strings.Split(strings.TrimSpace(output), `","`)
	if len(fields) < 8 {
		return round{}, fmt.Errorf("redis-benchmark prints %q", output)
	}
	numbers := fields[len(fields)-7:]
	rate, err := strconv.ParseFloat(numbers[0], 64)
	if err != nil || rate <= 0 {
		return round{}, fmt.Errorf("redis-benchmark prints %q", output)
	}
	p50, err := strconv.ParseFloat(numbers[3], 64) // ms
	return round{rate: rate, p50: time.Duration(p50 * float64(time.Millisecond))}, err
}

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

// script returns the next command of one goroutine: EVALSHA and its arguments.
type script func() []any

// sameScript makes all goroutines repeat the same command.
func sameScript(command []string, goroutines int) []script {
	words := wordsOf(command)
	return slices.Repeat([]script{func() []any { return words }}, goroutines)
}

func wordsOf(command []string) []any {
	words := make([]any, len(command))
	for i, word := range command {
		words[i] = word
	}
	return words
}

// plainRedis sends scripts from several goroutines with the default go-redis client, except for a large enough pool.
func plainRedis(client *redis.Client, scripts []script) contender {
	floor := timed("redis", func(n int) ([]time.Duration, error) {
		return spread(len(scripts), n, func(goroutine int) error {
			reply, err := client.Do(context.Background(), scripts[goroutine]()...).Text()
			if code, _, _ := strings.Cut(reply, "\n"); err == nil && code != "ok" {
				return fmt.Errorf("the script refuses: %q", reply)
			}
			return err
		})
	})
	floor.alone = len(scripts) == 1
	return floor
}
