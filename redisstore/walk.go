package redisstore

import (
	"context"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// walkStep is about how many keys one step of a walk reads. Redis serves other clients between steps.
const walkStep = 1000

// walk calls visit with all keys of a kind ("a", "s", …; "*" for all) on every primary, a chunk at a time. It may visit a key
// twice. It visits every key that exists from its start to its end (the guarantee of SCAN).
func (s *Store) walk(ctx context.Context, kind string, visit func(context.Context, []string) error) error {
	pattern := globEscaper.Replace(s.config.Prefix) + kind + ":*"
	var alone sync.Mutex // walks of several primaries run in parallel
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

// keyName is the content of a key's name.
type keyName struct {
	kind string
	cell uint16
	id   uuid.UUID // uuid.Nil for the outcome of an idempotency key
}

// parse splits a key. It returns false for keys that belong to no organization.
func (k keyspace) parse(key string) (keyName, bool) {
	name, found := strings.CutPrefix(key, k.prefix)
	kind, rest, tagged := strings.Cut(name, ":{")
	text, last, whole := strings.Cut(rest, "}:")
	cell, isCell := parseCell(text)
	if !found || !tagged || !whole || !isCell {
		return keyName{}, false
	}
	if kind == "pr" {
		last, _, _ = strings.Cut(last, ":") // the period of the proofs
	}
	id, err := uuid.Parse(last)
	return keyName{kind, cell, id}, err == nil || kind == "i"
}
