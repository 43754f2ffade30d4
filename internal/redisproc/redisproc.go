// Package redisproc starts redis-server (or valkey-server) processes: for a
// service without --redis-url, and for the tests.
//
// Start runs one standalone server behind a unix socket, StartCluster a Redis
// Cluster on loopback TCP ports, StartSentinels the Sentinels of a primary. None of
// them needs a password: only its owner can reach a socket, but every user of the
// machine can reach a cluster.
//
// A server ends with the process that started it: on Linux however that process
// ends, on other systems only if it calls Stop. The package needs a Unix, because
// it relies on process groups, signals and flock.
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

	errEnded = errors.New("redisproc: redis-server ended before it was ready")
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
