package redisclient

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// sentBy returns what go-redis would write of a command.
func sentBy(c *Command) string {
	var words []string
	for _, word := range c.words {
		switch word := word.(type) {
		case *string:
			words = append(words, *word)
		case *chunk:
			words = append(words, string(*word))
		default:
			words = append(words, fmt.Sprint(word))
		}
	}
	return strings.Join(words, " ")
}

func TestACommandThatIsUsedAgainIsAsNew(t *testing.T) {
	t.Parallel()
	other := Flow{Owner: uuid.New()}
	for name, arguments := range map[string][]any{
		"few":                       {"secret", 1},
		"more than it has room for": slices.Repeat([]any{"secret", []byte("secret"), 7}, 20),
	} {
		fresh, used := NewCommand(other, 1), NewCommand(Flow{}, 2)
		used.Keys("first", "second")
		used.Arguments(arguments...)
		used.of(context.Background(), addScript, true)
		_, _ = used.script.MarshalBinary() // go-redis has written it
		used.confirm, used.unknown = true, true
		used.forget()
		if holds := fmt.Sprint(used.room.words, used.room.texts, used.words, used.texts); strings.Contains(holds, "secret") {
			t.Errorf("%s: it still holds %s", name, holds)
		}
		for _, c := range []*Command{fresh, used.begin(other, 1)} {
			c.Keys("third")
			c.Arguments("x", int64(-5))
			c.of(context.Background(), readScript, false)
		}
		if got, want := sentBy(used), sentBy(fresh); got != want || used.firstKey() != "third" {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if used.flow != fresh.flow || used.confirm || used.unknown || used.merged != fresh.merged || used.script.written.Load() {
			t.Errorf("%s: it remembers the call before", name)
		}
	}
}

// A reply is read after its command has gone to another call.
func TestRepliesOutliveTheirCommands(t *testing.T) {
	t.Parallel()
	aloneAndShared(t, func(t *testing.T, crowd func(*testing.T, *Client)) {
		onRealRedis(t, Config{}, func(t *testing.T, c *Client, _ *redis.Client) {
			crowd(t, c)
			loadScripts(t, c)
			const calls = 100
			var group sync.WaitGroup
			for caller := range 2 * maxMerged {
				group.Go(func() {
					key := newCounter(c).key
					var replies [calls]*Reply
					for i := range replies {
						r, err := c.Run(t.Context(), Flow{}, addScript, []string{key}, caller+1, 0)
						if err != nil {
							t.Error(err)
							return
						}
						replies[i] = r
					}
					for i, r := range replies {
						if sum := r.Number(0); sum != int64((i+1)*(caller+1)) || r.Err != nil {
							t.Errorf("call %d of %d: the sum is %d (%v)", i, caller, sum, r.Err)
						}
					}
				})
			}
			group.Wait()
		})
	})
}
