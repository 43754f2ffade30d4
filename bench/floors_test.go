package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/internal/serviceproc"
)

// bareProgram builds the bare handler once, with the profile that the service is built with.
var bareProgram = sync.OnceValues(func() (string, error) {
	profile, err := filepath.Abs("../default.pgo")
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(profile); err != nil {
		profile = "off"
	}
	return serviceproc.Build("remit/bench/bare", "-pgo="+profile)
})

// bare calls a server that only answers, with that many bytes in total, over as many connections as the path has.
func bare(tb testing.TB, size, connections int) contender {
	tb.Helper()
	addr, pid := startBare(tb, size)
	c := timed("bare", connect(tb, addr, connections, same(get("/", ""))).run)
	c.server = pid
	return c
}

// startBare runs a fasthttp server that only answers, with that many bytes in total, until the test or benchmark ends.
func startBare(tb testing.TB, size int) (addr string, pid int) {
	tb.Helper()
	binary, err := bareProgram()
	if err != nil {
		tb.Fatal(err)
	}
	process, err := serviceproc.StartProcess(exec.Command(binary, strconv.Itoa(size)))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(process.Kill)
	url, err := serviceproc.AwaitURL(process)
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimPrefix(url, "http://"), process.PID()
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
			reply, err := client.Do(context.Background(), scripts[goroutine]()...).Slice()
			if err == nil && reply[0] != "ok" {
				return fmt.Errorf("the script refuses: %q", reply)
			}
			return err
		})
	})
	floor.alone = len(scripts) == 1
	return floor
}
