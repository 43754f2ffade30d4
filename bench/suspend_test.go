package bench

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/redisstore"
)

const suspendedAgents = 10_000

// BenchmarkSuspendAll suspends all 10,000 agents of an organization, and resumes them.
func BenchmarkSuspendAll(b *testing.B) {
	s := startService(b)
	key := s.withAgents(b, suspendedAgents)
	var suspending, resuming time.Duration
	for b.Loop() {
		began := time.Now()
		n, err := s.store.SuspendAgents(b.Context(), key, "drill")
		if err != nil || n != suspendedAgents {
			b.Fatal(n, err)
		}
		suspended := time.Now()
		if n, err = s.store.ResumeAgents(b.Context(), key, ""); err != nil || n != suspendedAgents {
			b.Fatal(n, err)
		}
		suspending, resuming = suspending+suspended.Sub(began), resuming+time.Since(suspended)
	}
	b.ReportMetric(suspending.Seconds()/float64(b.N), "suspend-s")
	b.ReportMetric(resuming.Seconds()/float64(b.N), "resume-s")
	b.ReportMetric(0, "ns/op")
}

// withAgents creates an organization with so many agents, and returns its key.
func (s *service) withAgents(tb testing.TB, agents int) redisstore.APIKey {
	tb.Helper()
	key := redisstore.APIKey{Organization: uuid.New(), Hash: [32]byte{1}}
	must(s.store.CreateOrganization(context.Background(), "", key, "many", "", nil))(tb)
	for range agents {
		must(s.store.CreateAgent(context.Background(), key, redisstore.Agent{Name: "scout"}, [32]byte{2}, nil))(tb)
	}
	return key
}
