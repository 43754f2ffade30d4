package kernel

import (
	"context"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/internal/redisclient"
)

// WalkStep is about how many keys one step of a walk reads. Redis serves other clients between steps.
const WalkStep = 1000

// Walk calls visit with all keys of a kind ("a", "s", …; "*" for all) on every primary, a chunk at a time. It may visit a key
// twice. It visits every key that exists from its start to its end (the guarantee of SCAN).
func (s *Core) Walk(ctx context.Context, kind string, visit func(context.Context, []string) error) error {
	pattern := globEscaper.Replace(s.config.Prefix) + kind + ":*"
	var alone sync.Mutex // walks of several primaries run in parallel
	onPrimary := func(ctx context.Context, primary *redis.Client) error {
		for cursor := uint64(0); ; {
			keys, next, err := primary.Scan(ctx, cursor, pattern, WalkStep).Result()
			if err != nil {
				return s.Client.Classify(err, redisclient.Reads)
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
	return s.Client.ForEachPrimary(ctx, onPrimary)
}

var globEscaper = strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, `\`, `\\`)

// KeyName is the content of a key's name.
type KeyName struct {
	Kind string
	Cell uint16
	ID   uuid.UUID // uuid.Nil for the outcome of an idempotency key
}

// Parse splits a key. It returns false for keys that belong to no organization.
func (k Keys) Parse(key string) (KeyName, bool) {
	name, found := strings.CutPrefix(key, k.Prefix)
	kind, rest, tagged := strings.Cut(name, ":{")
	text, last, whole := strings.Cut(rest, "}:")
	cell, isCell := parseCell(text)
	if !found || !tagged || !whole || !isCell {
		return KeyName{}, false
	}
	if kind == "pr" {
		last, _, _ = strings.Cut(last, ":") // the period of the proofs
	}
	id, err := uuid.Parse(last)
	return KeyName{kind, cell, id}, err == nil || kind == "i"
}
