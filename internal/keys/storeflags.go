package keys

import (
	"time"

	"remit/redisstore"
)

// storeFlags say which Redis the commands work on.
type storeFlags struct {
	RedisURL         redisstore.URL        `required:"" help:"URL of the Redis that the instances use."`
	Durability       redisstore.Durability `default:"local" enum:"local,replicated" help:"When a write is acknowledged, as for the instances: local or replicated."`
	KeyEncryptionKey string                `help:"File with the key that encrypts the keys stored in Redis." type:"existingfile"`
}

func (f storeFlags) open() (*redisstore.Store, error) {
	return redisstore.Open(redisstore.Config{URL: string(f.RedisURL), Durability: f.Durability})
}

// timeText returns "-" for the zero time.
func timeText(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}
