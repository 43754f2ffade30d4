package faults

import (
	"testing"

	"remit/redisproc"
)

// A full Redis refuses writes before their first, so 503 unavailable is the truth.
func TestAFullRedisRefusesWritesAndLetsReadsGoOn(t *testing.T) {
	redis := StartRedis(t, redisproc.Config{})
	s := New(t, Setup{URL: redis.URL(), Servers: []string{redis.Addr}})
	for range rounds(1) {
		limitMemory(t, redis, "1mb") // less than an empty Redis uses
		s.refusesWritesAndReads()
		limitMemory(t, redis, "0") // no limit
		s.FaultOver()
		s.Acknowledged(100)
	}
	s.Finish()
}

func limitMemory(t *testing.T, r *Redis, limit string) {
	t.Helper()
	if err := r.Client().ConfigSet(t.Context(), "maxmemory", limit).Err(); err != nil {
		t.Fatal(err)
	}
}
