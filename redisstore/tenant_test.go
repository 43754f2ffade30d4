package redisstore

import (
	"maps"
	"reflect"
	"testing"
	"time"

	"remit/money"
)

// roomy is a session that has room for everything.
var roomy = NewSession{MaxActions: 10, MaxValue: money.USD, MaxLease: time.Hour}

// onTenant is onEachRedis, in parallel with other tests, for a tenant with a roomy session.
func onTenant(t *testing.T, cfg Config, test func(t *testing.T, s *Store, w tenant)) {
	t.Helper()
	onTenantOf(t, cfg, roomy, test)
}

// onTenantOf is onTenant for a tenant with a session like n.
func onTenantOf(t *testing.T, cfg Config, n NewSession, test func(t *testing.T, s *Store, w tenant)) {
	t.Helper()
	onEachRedis(t, cfg, func(t *testing.T, s *Store) { test(t, s, newTenant(t, s, n)) })
}

// onTenantWithCluster is onTenantOf on all three kinds of Redis in every run.
func onTenantWithCluster(t *testing.T, cfg Config, n NewSession, test func(t *testing.T, s *Store, w tenant)) {
	t.Helper()
	onEachRedisAndCluster(t, cfg, func(t *testing.T, s *Store) { test(t, s, newTenant(t, s, n)) })
}

// unchanged returns a check that what Redis holds of the tenant, and these keys, are as they are now.
func (w tenant) unchanged(t *testing.T, s *Store, more ...string) (check func()) {
	t.Helper()
	return same(t, func() map[string]any {
		held := w.contents(t, s)
		maps.Copy(held, contents(t, s, more...))
		return held
	})
}

// unchangedOf is unchanged with all that the tenant was furnished with.
func (w tenant) unchangedOf(t *testing.T, s *Store, of target, more ...string) (check func()) {
	t.Helper()
	return same(t, func() map[string]any {
		held := w.contentsOf(t, s, of)
		maps.Copy(held, contents(t, s, more...))
		return held
	})
}

// same returns a check that a reading gives what it gives now.
func same(t *testing.T, read func() map[string]any) (check func()) {
	t.Helper()
	before := read()
	return func() {
		t.Helper()
		if after := read(); !reflect.DeepEqual(after, before) {
			t.Errorf("%q became %q", before, after)
		}
	}
}

// wantEqual checks a value, deeply.
func wantEqual[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

// errOf2 is errOf for two values.
func errOf2[A, B any](_ A, _ B, err error) error { return err }
