package client

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"
)

// proofTolerance is how far this machine's clock may differ from the service's, which accepts proofs of the last minute.
const proofTolerance = 30 * time.Second

// prover proves the key that an agent's tokens are bound to (RFC 9449). A nil prover proves nothing.
type prover struct {
	key   *Key
	nonce atomic.Pointer[string] // the service's last; nil: none
}

func newProver(key *Key) *prover {
	if key == nil {
		return nil
	}
	return &prover{key: key}
}

// learn keeps the nonce of a response, for the proofs after it.
func (p *prover) learn(header http.Header) {
	if p == nil {
		return
	}
	if nonce := header.Get("DPoP-Nonce"); nonce != "" {
		p.nonce.Store(&nonce)
	}
}

// prove adds a proof to a request, and makes the scheme of its token the one of bound tokens.
func (p *prover) prove(r *http.Request, access string) error {
	if p == nil {
		return nil
	}
	proof, err := p.proof(r.Method, r.URL, access)
	if err != nil {
		return err
	}
	r.Header.Set("DPoP", proof)
	if access != "" {
		r.Header.Set("Authorization", "DPoP "+access)
	}
	return nil
}

// errRepeatedProof says why the refusal of a proof tells nothing about the request.
var errRepeatedProof = errors.New("the connection broke, and the request was repeated with the proof that it had used")

// countConnections counts on how many connections a request with a proof is sent. http.Transport repeats some requests by itself when a
// connection breaks, with the same proof: the refusal of the second is then that of a proof that the first may have used.
func countConnections(r *http.Request) (*http.Request, *atomic.Int32) {
	count := new(atomic.Int32)
	if r.Header.Get("DPoP") == "" {
		return r, count
	}
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { count.Add(1) }}
	return r.WithContext(httptrace.WithClientTrace(r.Context(), trace)), count
}

// proof returns a new proof for a request with the token; empty: a request for tokens.
func (p *prover) proof(method string, address *url.URL, access string) (string, error) {
	target := *address
	target.RawQuery, target.Fragment, target.User = "", "", nil
	claims := struct {
		ID     string `json:"jti"`
		Method string `json:"htm"`
		URL    string `json:"htu"`
		Issued int64  `json:"iat"`
		Hash   string `json:"ath,omitzero"`
		Nonce  string `json:"nonce,omitzero"`
	}{ID: randomKey(), Method: method, URL: target.String(), Issued: time.Now().Unix()}
	if access != "" {
		sum := sha256.Sum256([]byte(access))
		claims.Hash = encodeSegment(sum[:])
	}
	if nonce := p.nonce.Load(); nonce != nil {
		claims.Nonce = *nonce
	}
	return p.key.jwt(struct {
		Type      string    `json:"typ"`
		Algorithm Algorithm `json:"alg"`
		Key       jwk       `json:"jwk"`
	}{"dpop+jwt", p.key.algorithm, p.key.public.bare()}, claims)
}

// Prove adds the agent's access token to a request to another server, such as one behind a proxy, and a proof if the agent has a
// DPoP key. A proof is for this request alone, so call it for each.
func (a *Agent) Prove(ctx context.Context, r *http.Request) error {
	access, err := a.Token(ctx)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+access)
	if a.caller.prover == nil {
		return nil
	}
	return newProver(a.caller.prover.key).prove(r, access) // without the nonces, which are the service's
}

// clockSkew returns this machine's clock minus the one in the header of a response.
func clockSkew(header http.Header) time.Duration {
	served, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return 0
	}
	return time.Since(served).Truncate(time.Second)
}
