package bench

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/redisstore"
)

const suspendedAgents = 10_000

// BenchmarkSuspendAll suspends all 10,000 agents of an organization, and resumes them. It reports the last of b.N times.
func BenchmarkSuspendAll(b *testing.B) {
	s := startService(b)
	store, key := s.withAgents(b, suspendedAgents)
	for range b.N {
		began := time.Now()
		n, err := store.SuspendAgents(b.Context(), key, "drill")
		if err != nil || n != suspendedAgents {
			b.Fatal(n, err)
		}
		suspended := time.Now()
		if n, err = store.ResumeAgents(b.Context(), key, ""); err != nil || n != suspendedAgents {
			b.Fatal(n, err)
		}
		b.ReportMetric(suspended.Sub(began).Seconds(), "suspend-s")
		b.ReportMetric(time.Since(suspended).Seconds(), "resume-s")
	}
	b.ReportMetric(0, "ns/op")
}

// withAgents returns the service's store and the key of an organization with so many agents.
func (s *service) withAgents(tb testing.TB, agents int) (*redisstore.Store, redisstore.APIKey) {
	tb.Helper()
	key := redisstore.APIKey{Organization: uuid.New(), Hash: [32]byte{1}}
	if _, err := s.store.CreateOrganization(context.Background(), "", key, "many", "", nil); err != nil {
		tb.Fatal(err)
	}
	for range agents {
		if _, err := s.store.CreateAgent(context.Background(), key, redisstore.Agent{Name: "scout"}, [32]byte{2}, nil); err != nil {
			tb.Fatal(err)
		}
	}
	return s.store, key
}
