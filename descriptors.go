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
	// usualConnections is how many clients may be connected when the descriptors suffice.
	usualConnections = 1 << 15
	// otherDescriptors are set aside for the metrics' listener and its 64 connections, files, the log, the runtime's poller
	// and a redis-server of our own.
	otherDescriptors = 128
)

// connections returns how many clients may be connected, by the limit on open files, and logs it.
func (c *serve) connections(log *slog.Logger) int {
	descriptors := openFiles()
	connections := connectionsFor(descriptors, c.redisServers())
	log.Info("connections: by the limit on open files (RLIMIT_NOFILE)", "open_files", descriptors,
		"connections", connections, "of_one_address", server.ConnectionsOfOneAddress(connections))
	return connections
}

// openFiles returns the limit, which the Go runtime has raised as far as it may.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxUint64 // not known: as if there were none
	}
	return limit.Cur
}

// connectionsFor leaves descriptors for Redis and whatever else the process opens. When that would be more than half of
// them, clients get the other half.
func connectionsFor(descriptors uint64, redisServers int) int {
	const most = 1 << 30
	all := int(min(descriptors, most))
	reserved := min(otherDescriptors+redisServers*redisstore.ConnectionsPerServer, all/2)
	return max(min(all-reserved, usualConnections), 1)
}

// clusterServers is assumed of a Redis Cluster, which may have more primaries than its URL names.
const clusterServers = 8

// redisServers returns how many servers the store may connect to.
func (c *serve) redisServers() int {
	if strings.Contains(string(c.RedisURL), "+cluster://") {
		return max(1+strings.Count(string(c.RedisURL), ","), clusterServers)
	}
	return 1
}
