package main

import (
	"log/slog"
	"math"
	"strings"
	"syscall"

	"remit/redisstore"
	"remit/server"
)

const (
	// maxConnections bounds the connected clients even when more descriptors are free.
	maxConnections = 1 << 15
	// otherDescriptors are reserved for the metrics listener and its 64 connections, files, the log, the runtime's poller
	// and the redis-server that the service starts.
	otherDescriptors = 128
)

// connections returns how many clients the limit on open files allows, and logs it.
func (c *serve) connections(log *slog.Logger) int {
	descriptors := openFiles()
	connections := connectionsFor(descriptors, c.redisServers())
	log.Info("connections limited by open files (RLIMIT_NOFILE)", "open_files", descriptors,
		"connections", connections, "per_address", server.ConnectionsOfOneAddress(connections))
	return connections
}

// openFiles returns the soft limit, which the Go runtime has raised to the hard limit.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxUint64 // unknown: assume no limit
	}
	return limit.Cur
}

// connectionsFor reserves descriptors for Redis and the process itself, but at most half of them. Clients get the rest.
func connectionsFor(descriptors uint64, redisServers int) int {
	const most = 1 << 30
	all := int(min(descriptors, most))
	reserved := min(otherDescriptors+redisServers*redisstore.ConnectionsPerServer, all/2)
	return max(min(all-reserved, maxConnections), 1)
}

// clusterServers is the least number of servers assumed of a Redis Cluster: it may have more primaries than its URL names.
const clusterServers = 8

// redisServers returns how many servers the store may connect to.
func (c *serve) redisServers() int {
	if strings.Contains(string(c.RedisURL), "+cluster://") {
		return max(1+strings.Count(string(c.RedisURL), ","), clusterServers)
	}
	return 1
}
