package redisstore

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"remit/internal/redisproc"
	"remit/test/redistest"
)

// demotion is a pair in which the replica is promoted and the primary, to which a store has open connections, follows it.
type demotion struct {
	*redistest.Pair
	old, promoted *redis.Client
}

func newDemotion(t *testing.T) *demotion {
	t.Helper()
	p := redistest.StartPair(t, false)
	return &demotion{p, redistest.PlainClient(t, "redis://"+p.Primary), redistest.PlainClient(t, "redis://"+p.Replica)}
}

// demote returns when the old primary follows the new one.
func (d *demotion) demote(t *testing.T) {
	t.Helper()
	must(d.old.Wait(t.Context(), 1, callTimeout).Result())(t)
	must(d.promoted.SlaveOf(t.Context(), "NO", "ONE").Result())(t)
	host, port := must2(net.SplitHostPort(d.Replica))(t)
	must(d.old.SlaveOf(t.Context(), host, port).Result())(t)
}

func must2[A, B any](a A, b B, err error) func(*testing.T) (A, B) {
	return func(t *testing.T) (A, B) {
		t.Helper()
		return must(a, err)(t), b
	}
}

// readsOf are the reads that let a caller through, with credentials that are right.
func readsOf(s *Store, w tenant, g Grant) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"CheckToken":  func(ctx context.Context) error { return s.CheckToken(ctx, g.AccessToken) },
		"CheckSecret": func(ctx context.Context) error { return errOf(s.CheckSecret(ctx, w.agent.ID, w.secret)) },
		"CheckRefresh": func(ctx context.Context) error {
			return errOf2(s.CheckRefresh(ctx, w.agent.ID, g.Family, g.Generation))
		},
		"Session":      func(ctx context.Context) error { return errOf(s.Session(ctx, byToken(g), w.session.ID)) },
		"Organization": func(ctx context.Context) error { return errOf(s.Organization(ctx, w.key)) },
		"Sessions":     func(ctx context.Context) error { return errOf(s.Sessions(ctx, byToken(g), Query{Limit: 1})) },
	}
}

// besides returns another store on the same keys, at another address.
func besides(t *testing.T, s *Store, address string) *Store {
	t.Helper()
	other := must(Open(Config{URL: "redis://" + address, Prefix: s.config.Prefix}))(t)
	t.Cleanup(func() { _ = other.Close() })
	return other
}

func wantReplica(t *testing.T, reads map[string]func(context.Context) error) {
	t.Helper()
	for name, read := range reads {
		if err := read(t.Context()); !errors.Is(err, ErrUnavailable) || !redis.HasErrorPrefix(err, "READONLY") {
			t.Errorf("%s: %v, want %v by READONLY", name, err, ErrUnavailable)
		}
	}
}

// The agent is revoked on the new primary, which the old one has no way to know when it is cut off.
func TestADemotedPrimaryAuthorizesNoCallerOnOpenConnections(t *testing.T) {
	aloneAndShared(t, func(t *testing.T, crowd func(*testing.T, *Store)) {
		d := newDemotion(t)
		s := openStore(t, Config{}, d.URL, nil)
		w := newTenant(t, s, NewSession{MaxActions: 10})
		grant := w.exchange(t, s)
		crowd(t, s)
		for name, read := range readsOf(s, w, grant) {
			wantError(t, name, read(t.Context()), nil)
		}
		eventually(t, "the server is watched", func() bool {
			return strings.Contains(d.old.Do(t.Context(), "CLIENT", "LIST").String(), "cmd=blpop")
		})
		untilRetired(t, s, func() { d.demote(t) })
		wantReplica(t, readsOf(s, w, grant))
		_, err := s.Ready(t.Context())
		wantNotReady(t, err, isReplica.reason)

		other := besides(t, s, d.Replica)
		must(other.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
		wantReplica(t, readsOf(s, w, grant))
		eventually(t, "the revocation has reached the old primary", func() bool {
			return d.old.HExists(t.Context(), s.keys.Agent(w.agent.ID), "revoked").Val()
		})
		must(d.old.SlaveOf(t.Context(), "NO", "ONE").Result())(t)
		wantError(t, "CheckToken on the primary that it is again", s.CheckToken(t.Context(), grant.AccessToken), ErrInvalidToken)
	})
}

func TestAStoreOnAReplicaAuthorizesNoCaller(t *testing.T) {
	t.Parallel()
	for name, writable := range map[string]string{"read-only": "yes", "writable": "no"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDemotion(t)
			s := openStore(t, Config{}, d.URL, nil)
			w := newTenant(t, s, NewSession{MaxActions: 10})
			grant := w.exchange(t, s)
			set("replica-read-only", writable)(t, d.promoted)
			onReplica := besides(t, s, d.Replica)
			wantReplica(t, readsOf(onReplica, w, grant))
		})
	}
}

// A user file of an operator may not allow the watch its command.
func TestADemotionIsDetectedWithoutPermissionToBlock(t *testing.T) {
	t.Parallel()
	s, client := withOwnRedis(t, Config{})
	w := newTenant(t, s, NewSession{MaxActions: 10})
	must(client.Do(t.Context(), "ACL", "SETUSER", "default", "-blpop").Result())(t)
	untilRetired(t, s, func() { isReplica.begin(t, client) })
	wantReplica(t, readsOf(s, w, Grant{AccessToken: AccessToken{Organization: w.key.Organization, Agent: w.agent.ID}}))
}

func TestTheRoleMonitorEndsWithItsStore(t *testing.T) {
	t.Parallel()
	server := redistest.StartRedis(t, redisproc.Config{})
	client := redistest.PlainClient(t, server.URL())
	s := must(Open(Config{URL: server.URL()}))(t)
	mustDo(t, s.Ping(t.Context()))
	blocked := func() bool {
		return strings.Contains(must(client.Info(t.Context(), "clients").Result())(t), "blocked_clients:1")
	}
	eventually(t, "the server is watched", blocked)
	mustDo(t, s.Close())
	eventually(t, "it is watched no more", func() bool { return !blocked() })
}
