package redisproc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

const (
	loopback = "127.0.0.1"

	// busOffset is the distance from a node's port to the port of the cluster bus.
	busOffset = 10_000

	// Both ports stay below 32768, where Linux begins to give out ports for
	// outgoing connections: those could take a port between the check and the bind.
	firstPort, endPort = 12_000, 22_000

	// portTries bounds the ports that are tried, and the starts that lose a port to
	// another process.
	portTries = 20
)

// node is a server that also listens on a TCP port.
type node struct {
	*Server
	port int
	dir  string // of its data, "" for none
}

// startOnFreePort runs a server on a free port. The package talks to it through
// its unix socket, which the server opens after binding its ports: a reply there
// cannot come from another process on the same port.
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
			return node{Server: s, port: port, dir: cfg.Dir}, nil
		}
		if !errors.Is(err, errEnded) {
			return node{}, err
		}
	}
	return node{}, fmt.Errorf("after %d ports: %w", portTries, err)
}

// config returns how the node runs in cluster mode.
func (n node) config() Config {
	return Config{Dir: n.dir, Port: n.port, Args: []string{
		"--cluster-enabled", "yes",
		"--cluster-announce-ip", loopback, // otherwise a node learns its address only from others
		"--cluster-node-timeout", "2000", // ms
	}}
}

// FreePort returns a free port of 127.0.0.1 whose cluster bus port is free too.
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

// nodes are servers that belong together.
type nodes []node

// Addrs returns the host:port of every node. Those of a cluster's primaries come first, in the order of their slots, then those of their
// replicas in the same order.
func (all nodes) Addrs() []string {
	addrs := make([]string, len(all))
	for i, n := range all {
		addrs[i] = net.JoinHostPort(loopback, strconv.Itoa(n.port))
	}
	return addrs
}

// Stop ends all nodes at once, each as Server.Stop does, and joins their errors.
func (all nodes) Stop() error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, n := range all {
		wg.Go(func() { errs[i] = n.Stop() })
	}
	wg.Wait()
	return errors.Join(errs...)
}
