package redisproc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

const (
	loopback = "127.0.0.1"

	// busOffset is the distance from a node's port to the port of the cluster bus.
	busOffset = 10_000

	// Both ports stay below 32768, where Linux begins to give out ports for
	// outgoing connections: those could take a port between our look and the bind.
	firstPort, endPort = 12_000, 22_000

	// portTries bounds the looks for a free port, and the starts that lose a port
	// to another process.
	portTries = 20
)

// startNode runs a server in cluster mode that knows no other node.
func startNode(ctx context.Context, dir string) (node, error) {
	n, err := startOnFreePort(ctx, node{dir: dir}.config())
	n.dir = dir
	return n, err
}

// startOnFreePort runs a server on a port that nobody else has. The package
// speaks to it by its unix socket, which it opens after its ports are its own:
// an answer there cannot come from another process on the same port.
func startOnFreePort(ctx context.Context, cfg Config) (node, error) {
	var err error
	for range portTries {
		port, portErr := FreePort()
		if portErr != nil {
			return node{}, portErr
		}
		cfg.Port = port
		var s *Server
		s, err = Start(ctx, cfg)
		if err == nil {
			return node{Server: s, port: port}, nil
		}
		if !errors.Is(err, errEnded) {
			return node{}, err
		}
	}
	return node{}, fmt.Errorf("after %d ports: %w", portTries, err)
}

func (n node) config() Config { return Config{Dir: n.dir, Port: n.port, Args: clusterArguments()} }

func clusterArguments() []string {
	return []string{
		"--cluster-enabled", "yes",
		"--cluster-announce-ip", loopback, // else a node learns its address from others only
		"--cluster-node-timeout", "2000", // ms
	}
}

// FreePort returns a port of 127.0.0.1 that is free just now, as is the one of a cluster node's bus.
func FreePort() (int, error) {
	for range portTries {
		port := firstPort + rand.IntN(endPort-firstPort)
		if isFree(port) && isFree(port+busOffset) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("redisproc: no free pair of ports between %d and %d after %d tries", firstPort, endPort+busOffset, portTries)
}

func isFree(port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if err != nil {
		return false
	}
	listener.Close()
	return true
}
