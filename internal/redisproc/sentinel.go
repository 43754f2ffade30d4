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

// Watch says which primary sentinels monitor, and how soon they act.
type Watch struct {
	Primary string // host:port, as its replicas reach it

	// Name is what clients call the primary, whichever server it is. Empty means "remit".
	Name string

	// DownAfter is how long the primary may be silent until a sentinel takes it for
	// down. 0 means 1 s.
	DownAfter time.Duration

	// FailoverTimeout bounds the steps of a failover; another one begins no sooner
	// than twice that after the one before. 0 means 10 s.
	FailoverTimeout time.Duration
}

// Sentinels are running Redis Sentinels that monitor one primary. When it is down, a
// majority of them promotes a replica.
type Sentinels struct {
	name  string
	nodes []node
}

// StartSentinels runs sentinels on 127.0.0.1, and returns when each of them knows the
// primary, its replicas and the other sentinels, so that a failover can begin. A
// replica must follow the primary already, because sentinels ask only every 10 s.
//
// The context bounds StartSentinels alone, not the life of the sentinels;
// StartSentinels gives up after 15 s in any case. It fails as Start does. On an
// error, nothing is left running.
func StartSentinels(ctx context.Context, sentinels int, w Watch) (*Sentinels, error) {
	if w.Name == "" {
		w.Name = "remit"
	}
	ctx, cancel := context.WithTimeoutCause(ctx, sentinelLimit, errNoSentinels)
	defer cancel()
	s := &Sentinels{name: w.Name}
	content, err := w.file(sentinels/2 + 1)
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

const (
	sentinelLimit = 15 * time.Second

	defaultDownAfter       = time.Second
	defaultFailoverTimeout = 10 * time.Second
)

var errNoSentinels = errors.New("the sentinels do not know each other within 15 s")

// file returns the configuration that a sentinel starts with, and writes on.
func (w Watch) file(quorum int) (string, error) {
	host, port, err := net.SplitHostPort(w.Primary)
	if err != nil {
		return "", fmt.Errorf("redisproc: primary of the sentinels: %w", err)
	}
	if w.DownAfter == 0 {
		w.DownAfter = defaultDownAfter
	}
	if w.FailoverTimeout == 0 {
		w.FailoverTimeout = defaultFailoverTimeout
	}
	return fmt.Sprintf("sentinel monitor %[1]s %[2]s %[3]s %[4]d\n"+
		"sentinel down-after-milliseconds %[1]s %[5]d\n"+
		"sentinel failover-timeout %[1]s %[6]d\n",
		w.Name, host, port, quorum, w.DownAfter.Milliseconds(), w.FailoverTimeout.Milliseconds()), nil
}

// waitUntilTheyKnowEachOther polls every sentinel: they learn of replicas and of each
// other through the primary.
func (s *Sentinels) waitUntilTheyKnowEachOther(ctx context.Context) error {
	pause := time.NewTicker(joinPause)
	defer pause.Stop()
	for _, n := range s.nodes {
		client := redis.NewClient(&redis.Options{Network: "unix", Addr: n.socket(), Protocol: 2})
		defer client.Close()
		for {
			known, err := client.Do(ctx, "SENTINEL", "MASTER", s.name).StringSlice()
			if err == nil && field(known, "num-slaves") != "0" && field(known, "flags") == "master" &&
				field(known, "num-other-sentinels") == strconv.Itoa(len(s.nodes)-1) {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("redisproc: sentinels: %w: %q, %v", context.Cause(ctx), known, err)
			case <-pause.C:
			}
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

// URL returns redis+sentinel://127.0.0.1:p1,127.0.0.1:p2,.../name with every sentinel.
func (s *Sentinels) URL() string {
	return "redis+sentinel://" + strings.Join(s.Addrs(), ",") + "/" + s.name
}

// Addrs returns the host:port of every sentinel.
func (s *Sentinels) Addrs() []string { return addrs(s.nodes) }

// Servers returns the processes, in the order of Addrs.
func (s *Sentinels) Servers() []*Server {
	servers := make([]*Server, len(s.nodes))
	for i, n := range s.nodes {
		servers[i] = n.Server
	}
	return servers
}

// Stop ends all sentinels at once, each as Server.Stop does, and joins their errors.
func (s *Sentinels) Stop() error { return stopAll(s.nodes) }
