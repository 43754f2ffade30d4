package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

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
