package redistest

import (
	"strings"
	"testing"

	"remit/internal/redisproc"
	"remit/test/suite"
)

// Pair is a primary and a replica that follows it.
type Pair struct {
	URL              string // of the primary
	Primary, Replica string // addresses
	ReplicaPID       int
	Link             *Proxy // by which the replica follows; nil in a cluster
}

// StartPair runs a pair of the test's own. Of a cluster it is all that there is.
func StartPair(t *testing.T, cluster bool) *Pair {
	t.Helper()
	SkipIfShort(t)
	if cluster {
		c := Must(redisproc.StartClusterWithReplicas(t.Context(), 1, t.TempDir()))(t)
		t.Cleanup(func() { _ = c.Stop() })
		return &Pair{URL: c.URL(), Primary: c.Addrs()[0], Replica: c.Addrs()[1], ReplicaPID: c.PID(1)}
	}
	p := &Pair{}
	_, p.Primary = StartOnPort(t, redisproc.Config{})
	p.URL, p.Link = "redis://"+p.Primary, NewProxy(t, p.Primary)
	var replica *redisproc.Server
	replica, p.Replica = StartOnPort(t, redisproc.Config{ReplicaOf: p.Link.Address})
	p.ReplicaPID = replica.PID()
	client := PlainClient(t, "redis://"+p.Replica)
	suite.Eventually(t, "the replica follows", func() bool {
		return strings.Contains(client.Info(t.Context(), "replication").Val(), "master_link_status:up")
	})
	return p
}

// SuspendReplica stops the replica without ending it, until resume or the end of the test.
func (p *Pair) SuspendReplica(t *testing.T) (resume func()) {
	t.Helper()
	return SuspendProcess(t, p.ReplicaPID)
}
