package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
	"remit/redisproc"
)

// redisURL is without the white space around it: a secret made from a file ends with the file's newline.
type redisURL string

// UnmarshalText is called by the flag parser.
func (u *redisURL) UnmarshalText(text []byte) error {
	*u = redisURL(strings.TrimSpace(string(text)))
	return nil
}

// chosenRedis is the store that this process works on, and how to leave it.
type chosenRedis struct {
	url   string
	ended <-chan struct{} // closed when a server of our own has ended; never, if it is not ours
	stop  func()
}

// chooseRedis takes the Redis it is given; else starts redis-server from the PATH; else keeps everything in memory. It
// says which.
func (c *serve) chooseRedis(ctx context.Context, log *slog.Logger) (chosenRedis, error) {
	goredis.SetLogger(redisLog{log})
	if c.RedisURL != "" {
		log.Info("store: the Redis it was given")
		return chosenRedis{url: string(c.RedisURL), stop: func() {}}, nil
	}
	memory := ownMaxMemory()
	server, err := redisproc.Start(ctx, redisproc.Config{
		Dir: c.DataDir, Fsync: "everysec", Args: []string{"--maxmemory", strconv.FormatUint(memory, 10)},
	})
	if errors.Is(err, redisproc.ErrNotInstalled) {
		return inMemory(log)
	}
	if err != nil {
		return chosenRedis{}, fmt.Errorf("cannot start a Redis of our own: %w", err)
	}
	log.Info("store: a redis-server of our own; a power cut may lose about its last two seconds (appendfsync everysec)",
		"data", c.DataDir, "url", server.URL(), "maxmemory_mib", memory>>20)
	stop := func() {
		if err := server.Stop(); err != nil {
			log.Error("redis-server did not stop well", "cause", err)
		}
	}
	return chosenRedis{url: server.URL(), ended: server.Done(), stop: stop}, nil
}

// inMemory starts a Redis inside this process. Its keys expire only when it is told that time has passed.
func inMemory(log *slog.Logger) (chosenRedis, error) {
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		return chosenRedis{}, fmt.Errorf("cannot start the in-memory store: %w", err)
	}
	password := rand.Text() // every user of this machine can reach the port
	server.RequireAuth(password)
	log.Warn("store: IN MEMORY, for trying out only. Nothing survives a restart. " +
		"Install redis-server, or set REMIT_REDIS_URL, to keep what is written.")
	ticker := time.NewTicker(time.Second)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-ticker.C:
				server.FastForward(time.Second)
			case <-done:
				return
			}
		}
	}()
	stop := func() {
		ticker.Stop()
		close(done)
		server.Close()
	}
	return chosenRedis{url: "redis://:" + password + "@" + server.Addr(), stop: stop}, nil
}

// redisLog keeps what go-redis has to say in our own log, where it is rarely needed.
type redisLog struct{ log *slog.Logger }

func (l redisLog) Printf(_ context.Context, format string, args ...any) {
	l.log.Debug("go-redis: " + fmt.Sprintf(format, args...))
}
