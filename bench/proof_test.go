package bench

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"remit/internal/prover"
)

// holders is how many agents verify with proofs: more than one, because an agent may use 100,000 within some minutes.
const holders = 16

// BenchmarkProof verifies tokens that are bound to a key, each with a proof of its own (RFC 9449), beside verify.
func BenchmarkProof(b *testing.B) {
	for _, algorithm := range []string{"ES256", "EdDSA", "ES384", "RS256", "PS256"} {
		b.Run(algorithm, func(b *testing.B) {
			over, floor := proofs(b, startProgram(b), algorithm, connections)
			compare(b, over, floor)
		})
	}
}

// proofs returns verify with proofs, and verify. The proofs of a round are made before its time begins.
func proofs(tb testing.TB, s *service, algorithm string, connections int) (over, floor contender) {
	tb.Helper()
	a := s.newAgent(tb)
	bearers := connect(tb, s.addr, connections, verifying.prepare(tb, s, a))
	greet(tb, bearers)
	var all []*holder
	for range holders {
		all = append(all, s.newHolder(tb, algorithm))
	}
	next := 0
	bound := connect(tb, s.addr, connections, func() turns {
		h := all[next%holders]
		next++
		return func([]byte) call { return h.next() }
	})
	greet(tb, bound)
	over, floor = timed("proof", bound.run), timed("verify", bearers.run)
	run := over.run
	over.run = func(n int) (round, error) {
		for _, h := range all {
			h.prepare(2 * (n/holders + 1))
		}
		return run(n)
	}
	over.server, over.redis = s.pid, s.redisPID
	floor.server, floor.redis = s.pid, s.redisPID
	return over, floor
}

// holder is an agent whose access token is bound to a key.
type holder struct {
	key    *prover.Key
	access string
	ready  []call
	used   atomic.Int64
}

func (s *service) newHolder(tb testing.TB, algorithm string) *holder {
	tb.Helper()
	h, a := &holder{key: prover.New(algorithm)}, s.newAgent(tb)
	conn := connect(tb, s.addr, 1, same(post("/v1/auth/token", "DPoP: "+h.prove(http.MethodPost, "/v1/auth/token")+"\r\n", a.exchangeBody())))[0]
	if err := conn.take(); err != nil {
		tb.Fatal(err)
	}
	h.access = textField(conn.answer, "access_token")
	return h
}

func (h *holder) prove(method, path string) string {
	return h.key.Prove(prover.Proof{Method: method, URL: "http://bench" + path, Token: h.access, Issued: time.Now()})
}

func (h *holder) verify() call {
	return get("/v1/auth/verify?scope=read",
		fmt.Sprintf("Authorization: DPoP %s\r\nDPoP: %s\r\n", h.access, h.prove(http.MethodGet, "/v1/auth/verify")))
}

// prepare makes calls in advance.
func (h *holder) prepare(count int) {
	h.ready = h.ready[:0]
	for range count {
		h.ready = append(h.ready, h.verify())
	}
	h.used.Store(0)
}

// next returns a call that was prepared, or makes one.
func (h *holder) next() call {
	if i := int(h.used.Add(1) - 1); i < len(h.ready) {
		return h.ready[i]
	}
	return h.verify()
}
