package service

import (
	"log/slog"
	"math"
	"strings"
	"syscall"

	"remit/internal/webhook"
	"remit/redisstore"
	"remit/server"
)

const (
	// maxConnections bounds the connected clients even when more descriptors are free.
	maxConnections = 1 << 15
	// otherDescriptors are reserved for the metrics listener and its 64 connections, the 32 of jwksfetch, files, the log, the
	// runtime's poller and the redis-server that the service starts.
	otherDescriptors = 128
)

// sockets are those that the limit on open files allows.
type sockets struct {
	clients  int // connections of clients
	webhooks int // to receivers
}

// sockets returns what the limit on open files allows, and logs it.
func (c *serve) sockets(log *slog.Logger) sockets {
	descriptors := openFiles()
	allowed := socketsFor(descriptors, c.redisServers())
	log.Info("connections limited by open files (RLIMIT_NOFILE)", "open_files", descriptors,
		"connections", allowed.clients, "per_address", server.ConnectionsOfOneAddress(allowed.clients), "webhook_sockets", allowed.webhooks)
	return allowed
}

// openFiles returns the soft limit, which the Go runtime has raised to the hard limit.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxUint64 // unknown: assume no limit
	}
	return limit.Cur
}

// socketsFor reserves descriptors for Redis and the process itself, but at most half of them. Webhooks get what they may need of the rest,
// but at most a quarter, and clients get what is left. So a receiver that hangs takes no connection of a client's.
func socketsFor(descriptors uint64, redisServers int) sockets {
	const most = 1 << 30
	all := int(min(descriptors, most))
	rest := all - min(otherDescriptors+redisServers*redisstore.ConnectionsPerServer, all/2)
	webhooks := min(rest/4, webhook.MostSockets)
	return sockets{clients: max(min(rest-webhooks, maxConnections), 1), webhooks: max(webhooks, webhook.LeastSockets)}
}

// clusterServers is the least number of servers assumed of a Redis Cluster: it may have more primaries than its URL names.
const clusterServers = 8

// redisServers returns how many servers the store may connect to.
func (f *storeFlags) redisServers() int {
	if strings.Contains(string(f.RedisURL), "+cluster://") {
		return max(1+strings.Count(string(f.RedisURL), ","), clusterServers)
	}
	return 1
}
