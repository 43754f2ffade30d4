package service

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
	"remit/internal/redisproc"
)

// chosenRedis is the Redis that this process uses.
type chosenRedis struct {
	url   string
	ended <-chan struct{} // closed when a redis-server that this process started has ended; nil for any other
	stop  func()
}

// chooseRedis takes the Redis of --redis-url; else starts redis-server from the PATH; else keeps everything in memory. It
// logs which.
func (c *serve) chooseRedis(ctx context.Context, log *slog.Logger) (chosenRedis, error) {
	goredis.SetLogger(redisLog{log})
	if c.RedisURL != "" {
		log.Info("store: the Redis of --redis-url")
		return chosenRedis{url: string(c.RedisURL), stop: func() {}}, nil
	}
	own, err := c.ownRedis(ctx, log)
	if err != nil {
		return chosenRedis{}, err
	}
	forget, stop := c.keepURL(own.url, log), own.stop
	own.stop = func() {
		forget()
		stop()
	}
	return own, nil
}

// ownRedis starts redis-server from the PATH, or else a Redis inside this process.
func (c *serve) ownRedis(ctx context.Context, log *slog.Logger) (chosenRedis, error) {
	memory := ownMaxMemory()
	server, err := redisproc.Start(ctx, redisproc.Config{
		Dir: c.DataDir, Fsync: "everysec", Args: []string{"--maxmemory", strconv.FormatUint(memory, 10)},
	})
	if errors.Is(err, redisproc.ErrNotInstalled) {
		return inMemory(log)
	}
	if err != nil {
		return chosenRedis{}, fmt.Errorf("cannot start a redis-server: %w", err)
	}
	log.Info("store: own redis-server; a power failure may lose about the last two seconds of writes (appendfsync everysec)",
		"data", c.DataDir, "url", server.URL(), "maxmemory_mib", memory>>20)
	stop := func() {
		if err := server.Stop(); err != nil {
			log.Error("redis-server did not stop cleanly", "cause", err)
		}
	}
	return chosenRedis{url: server.URL(), ended: server.Done(), stop: stop}, nil
}

// urlFile has the URL of an own Redis, in the data directory, for commands on this machine that work on Redis themselves.
const urlFile = "redis.url"

// keepURL writes the URL for the owner of this process, until the function that it returns is called. The service runs without it.
func (c *serve) keepURL(url string, log *slog.Logger) (forget func()) {
	path := filepath.Join(c.DataDir, urlFile)
	err := os.MkdirAll(c.DataDir, 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(url+"\n"), 0o600)
	}
	if err != nil {
		log.Info("the URL of the own Redis is not kept: other commands cannot find it", "cause", err)
		return func() {}
	}
	return func() { _ = os.Remove(path) } // the next start writes it anew
}

// inMemory starts a Redis inside this process. Its clock advances by FastForward only, so a ticker expires its keys.
func inMemory(log *slog.Logger) (chosenRedis, error) {
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		return chosenRedis{}, fmt.Errorf("cannot start the in-memory store: %w", err)
	}
	password := rand.Text() // because every user of this machine can reach the port
	server.RequireAuth(password)
	log.Warn("store: IN MEMORY, for evaluation only. A restart loses everything. " +
		"Install redis-server or set REMIT_REDIS_URL to keep data.")
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

// redisLog writes go-redis's messages to the service's log, at level debug.
type redisLog struct{ log *slog.Logger }

func (l redisLog) Printf(_ context.Context, format string, args ...any) {
	l.log.Debug("go-redis: " + fmt.Sprintf(format, args...))
}
