package redisproc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	sentinelLimit = 15 * time.Second

	// primaryName is what clients call the primary, whichever server it is.
	primaryName = "remit"
)

var errNoSentinels = errors.New("the sentinels do not know each other within 15 s")

// Sentinels are running Redis Sentinels that monitor one primary. When it is silent for a
// second, a majority of them promotes a replica.
type Sentinels struct{ nodes }

// StartSentinels runs sentinels on 127.0.0.1 that monitor the primary at this host:port,
// and returns when each of them knows the primary, its replicas and the other sentinels,
// so that a failover can begin. A replica must follow the primary already, because
// sentinels ask only every 10 s.
//
// The context bounds StartSentinels alone, not the life of the sentinels;
// StartSentinels gives up after 15 s in any case. It fails as Start does. On an
// error, nothing is left running.
func StartSentinels(ctx context.Context, sentinels int, primary string) (*Sentinels, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, sentinelLimit, errNoSentinels)
	defer cancel()
	s := &Sentinels{}
	content, err := sentinelFile(primary, sentinels/2+1)
	for err == nil && len(s.nodes) < sentinels {
		var n node
		if n, err = startOnFreePort(ctx, Config{sentinel: content}); err == nil {
			s.nodes = append(s.nodes, n)
		}
	}
	if err == nil {
		err = s.waitUntilTheyKnowEachOther(ctx)
	}
	if err != nil {
		_ = s.Stop()
		return nil, err
	}
	return s, nil
}

// sentinelFile returns the configuration that a sentinel starts with, and writes on.
func sentinelFile(primary string, quorum int) (string, error) {
	host, port, err := net.SplitHostPort(primary)
	if err != nil {
		return "", fmt.Errorf("redisproc: primary of the sentinels: %w", err)
	}
	return fmt.Sprintf("sentinel monitor %[1]s %[2]s %[3]s %[4]d\n"+
		"sentinel down-after-milliseconds %[1]s 1000\n"+
		"sentinel failover-timeout %[1]s 10000\n", // of each step; another one begins no sooner than twice that after the one before
		primaryName, host, port, quorum), nil
}

// waitUntilTheyKnowEachOther polls every sentinel: they learn of replicas and of each
// other through the primary.
func (s *Sentinels) waitUntilTheyKnowEachOther(ctx context.Context) error {
	for _, n := range s.nodes {
		client := redis.NewClient(&redis.Options{Network: "unix", Addr: n.socket(), Protocol: 2})
		defer client.Close()
		var known []string
		var err error
		if over := poll(ctx, joinPause, func() (bool, error) {
			known, err = client.Do(ctx, "SENTINEL", "MASTER", primaryName).StringSlice()
			return err == nil && field(known, "num-slaves") != "0" && field(known, "flags") == "master" &&
				field(known, "num-other-sentinels") == strconv.Itoa(len(s.nodes)-1), nil
		}); over != nil {
			return fmt.Errorf("redisproc: sentinels: %w: %q, %v", over, known, err)
		}
	}
	return nil
}

// field returns the value that follows a name in a flat list of both.
func field(pairs []string, name string) string {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] == name {
			return pairs[i+1]
		}
	}
	return ""
}

// URL returns redis+sentinel://127.0.0.1:p1,127.0.0.1:p2,.../remit with every sentinel.
func (s *Sentinels) URL() string {
	return "redis+sentinel://" + strings.Join(s.Addrs(), ",") + "/" + primaryName
}

// Servers returns the processes, in the order of Addrs.
func (s *Sentinels) Servers() []*Server {
	servers := make([]*Server, len(s.nodes))
	for i, n := range s.nodes {
		servers[i] = n.Server
	}
	return servers
}
