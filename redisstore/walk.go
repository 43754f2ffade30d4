package redisstore

import (
	"context"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// walkStep is about how many keys one step of a walk reads: Redis serves others between two steps.
const walkStep = 1000

// walk calls visit with all keys of the service that are of a kind ("a", "s", …; "*" for all), some at a time, on every
// primary. A key may be visited twice. A key that exists from the beginning to the end is visited at least once.
func (s *Store) walk(ctx context.Context, kind string, visit func(context.Context, []string) error) error {
	pattern := globEscaper.Replace(s.config.Prefix) + kind + ":*"
	var alone sync.Mutex // the primaries of a cluster are walked at once
	onPrimary := func(ctx context.Context, primary *redis.Client) error {
		for cursor := uint64(0); ; {
			keys, next, err := primary.Scan(ctx, cursor, pattern, walkStep).Result()
			if err != nil {
				return s.client.Classify(err, reads)
			}
			if len(keys) > 0 {
				alone.Lock()
				err = visit(ctx, keys)
				alone.Unlock()
			}
			if cursor = next; err != nil || cursor == 0 {
				return err
			}
		}
	}
	return s.client.ForEachPrimary(ctx, onPrimary)
}

var globEscaper = strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, `\`, `\\`)

// keyName is what a key's name says.
type keyName struct {
	kind string
	cell uint16
	id   uuid.UUID // uuid.Nil for the outcome of an idempotency key
}

// parse parses a key. It returns false for keys that belong to no tenant.
func (k keyspace) parse(key string) (keyName, bool) {
	name, found := strings.CutPrefix(key, k.prefix)
	kind, rest, tagged := strings.Cut(name, ":{")
	text, last, whole := strings.Cut(rest, "}:")
	cell, isCell := parseCell(text)
	if !found || !tagged || !whole || !isCell {
		return keyName{}, false
	}
	id, err := uuid.Parse(last)
	return keyName{kind, cell, id}, err == nil || kind == "i"
}
