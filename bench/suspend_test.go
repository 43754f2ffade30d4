package bench

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/redisstore"
)

const suspendedAgents = 10_000

// BenchmarkSuspendAll suspends all 10,000 agents of an organization, and resumes them.
func BenchmarkSuspendAll(b *testing.B) {
	s := startService(b)
	key := redisstore.APIKey{Organization: uuid.New(), Hash: [32]byte{1}}
	must(s.store.CreateOrganization(b.Context(), "", key, "many", "", nil))(b)
	for range suspendedAgents {
		must(s.store.CreateAgent(b.Context(), key, redisstore.Agent{Name: "scout"}, [32]byte{2}, nil))(b)
	}
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
	n := float64(b.N)
	reportAll(b, map[string]float64{"suspend-s": suspending.Seconds() / n, "resume-s": resuming.Seconds() / n})
}
