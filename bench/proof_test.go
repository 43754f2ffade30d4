package bench

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"remit/test/prover"
)

// holders is how many agents verify with proofs: more than one, because an agent may use 100,000 within some minutes.
const holders = 16

// proofAlgorithms has one name of each algorithm of token.ProofAlgorithms.
var proofAlgorithms = []string{"ES256", "EdDSA", "ES384", "RS256", "PS256"}

// BenchmarkProof verifies tokens that are bound to a key, each with a proof of its own (RFC 9449), beside verify.
func BenchmarkProof(b *testing.B) {
	for _, algorithm := range proofAlgorithms {
		for _, connections := range []int{1, connections} {
			b.Run(fmt.Sprintf("%s/connections=%d", algorithm, connections), func(b *testing.B) {
				over, floor := proofs(b, startProgram(b), algorithm, connections)
				if _, err := over.measure(connections); err != nil { // loads the merged script, as in BenchmarkSocket
					b.Fatal(err)
				}
				compare(b, over, floor)
			})
		}
	}
}

// proofs returns verify with proofs, and verify.
func proofs(tb testing.TB, s *service, algorithm string, connections int) (over, floor contender) {
	tb.Helper()
	a := s.newAgent(tb)
	bearers := connect(tb, s.addr, connections, verifying.prepare(tb, s, a))
	greet(tb, bearers)
	all := make([]*holder, min(holders, connections))
	for i := range all {
		all[i] = s.newHolder(tb, algorithm)
	}
	next := 0
	bound := connect(tb, s.addr, connections, func() turns {
		h := all[next%len(all)]
		next++
		return func([]byte) call { return h.next() }
	})
	greet(tb, bound)
	over, floor = timed("proof", func(n int) ([]time.Duration, error) {
		latencies, err := bound.run(n)
		for _, h := range all {
			if int(h.used.Load()) > len(h.ready) {
				err = cmp.Or(err, errors.New("proofs were signed within the time that is measured"))
			}
		}
		return latencies, err
	}).beside(s.pid, s.redisPID), timed("verify", bearers.run).beside(s.pid, s.redisPID)
	over.prepare = func(n int) {
		for _, h := range all {
			h.prepare(2 * (n + connections) / len(all)) // connections are not equally fast
		}
	}
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
	noError(tb, conn.take())
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
