// Package redisproc runs redis-server (or valkey-server) processes of our own:
// the store of a development start, and the real Redis of the tests.
//
// Start runs one standalone server behind a unix socket, StartCluster a Redis
// Cluster on loopback TCP ports, StartSentinels those that watch a primary. Neither asks for a password: a socket is
// reachable by its owner alone, a cluster by every user of the machine.
//
// A server ends with the process that started it. On Linux that holds however
// this process ends, on other systems only if Stop is called. The package needs
// a Unix: it relies on process groups, signals and flock.
package redisproc

import (
	"errors"
	"os/exec"
)

var (
	// ErrNotInstalled means that the PATH holds neither redis-server nor valkey-server.
	ErrNotInstalled = errors.New("redisproc: neither redis-server nor valkey-server is on the PATH")

	// ErrDirInUse means that another server keeps its data in Config.Dir.
	ErrDirInUse = errors.New("redisproc: another redis-server is using the data directory")

	errEnded = errors.New("redisproc: redis-server ended before it answered")
)

// Find returns the path of redis-server, or else valkey-server, on the PATH.
// The error is ErrNotInstalled when neither is there.
func Find() (path string, err error) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNotInstalled
}
