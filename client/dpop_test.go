package client_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"remit/client"
)

type proofClaims struct {
	Jti, Htm, Htu, Ath, Nonce string
	Iat                       int64
}

// proofOf returns the claims of a request's proof, once it is verified with the key in it, which must be the given one.
func proofOf(t *testing.T, key *client.Key, r seen) proofClaims {
	t.Helper()
	var header struct {
		Typ, Alg string
		Jwk      published
	}
	proofs := r.header.Values("DPoP")
	if len(proofs) != 1 {
		t.Fatalf("%s %s has %d proofs", r.method, r.path, len(proofs))
	}
	noError(t, json.Unmarshal(segment(t, strings.Split(proofs[0], ".")[0]), &header))
	own := onlyKey(t, key.JWKS())
	var claims proofClaims
	own.verifies(t, proofs[0], &struct{}{}, &claims)
	bare := own
	bare.ID, bare.Algorithm = "", ""
	if header.Typ != "dpop+jwt" || header.Alg != string(key.Algorithm()) || header.Jwk != bare {
		t.Errorf("the header is %+v", header)
	}
	if claims.Htm != r.method || claims.Htu != "http://remit.test"+r.path || r.at.Sub(time.Unix(claims.Iat, 0)) >= time.Second || len(claims.Jti) != 32 {
		t.Errorf("for %s %s: %+v", r.method, r.path, claims)
	}
	return claims
}

func boundPair(n int) reaction {
	p := pair(n)
	p.body = strings.Replace(p.body, `"bearer"`, `"DPoP"`, 1)
	return p
}

func bound(t *testing.T, f *fake, key *client.Key) *client.Agent {
	t.Helper()
	return agentWith(t, f, client.AgentOptions{Secret: "rms_1", DPoP: key})
}

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func TestEveryRequestOfABoundAgentHasItsOwnProof(t *testing.T) {
	t.Parallel()
	for _, all := range texts(t) {
		synctest.Test(t, func(t *testing.T) {
			key := must(client.ParseKey(all[0]))(t)
			f := &fake{react: func(n int, r seen) reaction {
				switch {
				case r.path == exchangePath || r.path == refreshPath:
					return boundPair(len(r.path) - len(exchangePath) + n) // 1, and 3 after the refresh
				case r.method == http.MethodGet:
					return ok("[]")
				case n == 1:
					return refusal(503, "unavailable")
				}
				return ok(usageBody)
			}}
			agent := bound(t, f, key)
			must(agent.Session("s1").Charge(t.Context(), client.Charge{}))(t)
			noError(t, agent.Refresh(t.Context()))
			collect(t, agent.Sessions(t.Context(), client.SessionFilter{Status: "active"}), sessionID)
			seen := map[string]bool{}
			for i, r := range f.requests {
				claims := proofOf(t, key, r)
				seen[claims.Jti] = true
				want, hash := "", ""
				switch {
				case r.path == actionsPath:
					want, hash = "DPoP access-1", hashOf("access-1")
				case r.query != "": // it is no part of what the proof is for (RFC 9449 §4.2)
					want, hash = "DPoP access-3", hashOf("access-3")
				}
				if got := r.header.Get("Authorization"); got != want || claims.Ath != hash {
					t.Errorf("request %d has %q and %+v", i, got, claims)
				}
			}
			if len(seen) != 5 || len(f.requests) != 5 {
				t.Errorf("%d proofs of %d requests", len(seen), len(f.requests))
			}
		})
	}
}

func withNonce(r reaction, nonce string) reaction {
	r.header = http.Header{"Dpop-Nonce": {nonce}}
	return r
}

func TestANonceIsUsedAndRemembered(t *testing.T) {
	t.Parallel()
	for _, asks := range []struct {
		status          int
		code, challenge string
	}{{400, "use_dpop_nonce", ""}, {401, "invalid_dpop_proof", `DPoP error="use_dpop_nonce", algs="ES256"`}} {
		synctest.Test(t, func(t *testing.T) {
			key := generated(t, client.ES256)
			nonce := "n-1"
			var nonces []string
			f := &fake{}
			f.react = func(n int, r seen) reaction {
				claims := proofOf(t, key, r)
				nonces = append(nonces, claims.Nonce)
				if claims.Nonce != nonce {
					asked := withNonce(refusal(asks.status, asks.code), nonce)
					asked.header.Set("WWW-Authenticate", asks.challenge)
					return asked
				}
				if r.path == exchangePath {
					return withNonce(boundPair(n), nonce)
				}
				return withNonce(ok(usageBody), nonce)
			}
			remit := newClient(t, f, client.Options{MaxAttempts: 1, NoIdempotencyKeys: true}) // asking is no attempt
			agent := must(remit.AgentWith("a1", client.AgentOptions{Secret: "s", DPoP: key}))(t)
			for i := range 3 {
				if i == 2 {
					nonce = "n-2"
				}
				if _, err := agent.Session("s1").Charge(t.Context(), client.Charge{}); err != nil {
					t.Errorf("%s: %v", asks.code, err)
				}
			}
			if got := strings.Join(nonces, ","); got != ",n-1,n-1,n-1,n-1,n-2" {
				t.Errorf("%s: nonces %s", asks.code, got)
			}
		})
	}
}

// A service that asks for a nonce gets it once. A token that is bound to no key lacks the protection that the program asked for.
func TestATokenIsBoundOrNotUsed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for _, test := range []struct {
			scopes       []string // some: the token endpoint is asked
			answers      []reaction
			nonce, fails string
			requests     int
		}{
			{[]string{"read"}, []reaction{withNonce(oauthRefusal(400, "use_dpop_nonce"), "n"), boundPair(1)}, "n", "", 2},
			{nil, []reaction{withNonce(refusal(400, "use_dpop_nonce"), "n")}, "n", "use_dpop_nonce", 2},
			{nil, []reaction{pair(1)}, "", "not bound", 1},
		} {
			key := generated(t, client.ES256)
			f := &fake{react: inTurn(test.answers...)}
			_, err := agentWith(t, f, client.AgentOptions{Secret: "s", Scopes: test.scopes, DPoP: key}).Token(t.Context())
			if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("%v, want %s", err, test.fails)
			}
			if n := len(f.requests); n != test.requests || proofOf(t, key, f.requests[n-1]).Nonce != test.nonce {
				t.Errorf("%s: %d requests", test.fails, n)
			}
		}
	})
}

func TestARefusedProofTellsWhy(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for _, test := range []struct {
			ahead time.Duration // of the service
			want  string
		}{{3 * time.Minute, "clock is 3m0s behind"}, {-time.Hour, "clock is 1h0m0s ahead"}, {time.Second, "400 invalid_dpop_proof: words (request r-1)"}} {
			answer := refusal(400, "invalid_dpop_proof")
			answer.header = http.Header{"Date": {time.Now().Add(test.ahead).UTC().Format(http.TimeFormat)}}
			f := &fake{react: inTurn(answer)}
			_, err := bound(t, f, generated(t, client.ES256)).Token(t.Context())
			proof, is := errors.AsType[*client.InvalidProof](err)
			if !is || proof.ClockSkew != -test.ahead || !strings.Contains(err.Error(), test.want) || errors.Is(err, client.ErrDPoPRequired) {
				t.Errorf("%v, want %s", err, test.want)
			}
			f = &fake{react: inTurn(answer)}
			_, err = newClient(t, f, client.Options{}).Agent("a1", "s").Token(t.Context())
			if !errors.Is(err, client.ErrDPoPRequired) || !strings.Contains(err.Error(), "set AgentOptions.DPoP") {
				t.Errorf("without a proof: %v", err)
			}
		}
	})
}

// http.Transport repeats some requests by itself when their connection breaks, with the same proof. The service may have used it.
func TestARequestThatABrokenConnectionRepeatsGetsANewProof(t *testing.T) {
	t.Parallel()
	var used sync.Map // proofs
	var breaks atomic.Bool
	broken := make(chan string, 1) // the idempotency key of the request whose response was lost
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, again := used.LoadOrStore(r.Header.Get("DPoP"), true)
		switch {
		case again:
			w.WriteHeader(401)
			io.WriteString(w, refusal(401, "invalid_dpop_proof").body)
		case r.URL.Path == exchangePath:
			io.WriteString(w, boundPair(1).body)
		case breaks.CompareAndSwap(true, false): // the request is done, and its response lost
			if key := r.Header.Get("Idempotency-Key"); key != "" {
				broken <- key
			}
			panic(http.ErrAbortHandler)
		case r.Method == "GET":
			io.WriteString(w, "[]")
		default:
			if len(broken) > 0 && <-broken != r.Header.Get("Idempotency-Key") {
				t.Error("it is sent again with another idempotency key")
			}
			io.WriteString(w, usageBody)
		}
	}))
	defer server.Close()
	remit := must(client.New(server.URL, client.Options{HTTPClient: &http.Client{Transport: &http.Transport{}}}))(t)
	agent := must(remit.AgentWith("a1", client.AgentOptions{Secret: "s", DPoP: generated(t, client.EdDSA)}))(t)
	for name, call := range map[string]func() error{
		"a charge": func() error { return second(agent.Session("s1").Charge(t.Context(), client.Charge{})) },
		"a list":   func() error { return errorOf(agent.Sessions(t.Context(), client.SessionFilter{})) },
	} {
		for _, broken := range []bool{false, true} { // at first, so that there is a connection that may break
			breaks.Store(broken)
			if err := call(); err != nil || breaks.Load() {
				t.Errorf("%s, whose connection breaks %t: %v", name, broken, err)
			}
		}
	}
}

func TestARequestToAnotherServerIsProved(t *testing.T) {
	t.Parallel()
	key := generated(t, client.ES256)
	for _, agent := range []*client.Agent{bound(t, &fake{react: inTurn(boundPair(1))}, key), agentWith(t, &fake{react: inTurn(pair(1))}, client.AgentOptions{Secret: "s"})} {
		r := must(http.NewRequestWithContext(t.Context(), "PUT", "https://tools.test/x%2Fy?q=1", nil))(t)
		noError(t, agent.Prove(t.Context(), r))
		if r.Header.Get("DPoP") == "" {
			if got := r.Header.Get("Authorization"); got != "Bearer access-1" {
				t.Error(got)
			}
			continue
		}
		var claims proofClaims
		onlyKey(t, key.JWKS()).verifies(t, r.Header.Get("DPoP"), &struct{}{}, &claims)
		if claims.Htm != "PUT" || claims.Htu != "https://tools.test/x%2Fy" || claims.Ath != hashOf("access-1") || r.Header.Get("Authorization") != "DPoP access-1" {
			t.Errorf("%+v %s", claims, r.Header.Get("Authorization"))
		}
	}
}

func jwtWith(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

func TestAChildSessionIsDelegated(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		key := generated(t, client.ES256)
		child := jwtWith(`{"sub":"a2","session_id":"s2"}`)
		for _, dpop := range []*client.Key{nil, key} {
			f := &fake{react: func(n int, r seen) reaction {
				switch {
				case r.path == exchangePath && dpop != nil:
					return boundPair(n)
				case r.path == exchangePath:
					return pair(n)
				case r.path == oauthPath && n == 1:
					return fails(errReset)
				case r.path == oauthPath:
					return ok(`{"access_token":"` + child + `","issued_token_type":"urn:ietf:params:oauth:token-type:access_token","token_type":"Bearer","expires_in":600,"scope":"read pay"}`)
				}
				return ok(usageBody)
			}}
			agent := agentWith(t, f, client.AgentOptions{Secret: "s", DPoP: dpop})
			got, err := agent.Delegate(t.Context(), "s2", client.DelegateParams{Scopes: []string{"read"}, Resource: []string{"urn:b"}})
			if err != nil || string(got.AccessToken) != child || got.AgentID != "a2" || got.SessionID != "s2" || got.ExpiresIn != 600 || strings.Join(got.Scopes, ",") != "read,pay" {
				t.Fatalf("%+v, %v", got, err)
			}
			r := f.to(oauthPath)[1]
			sent(t, r, "grant_type=urn:ietf:params:oauth:grant-type:token-exchange&resource=urn:b&scope=read&session_id=s2&subject_token=access-1&"+
				"subject_token_type=urn:ietf:params:oauth:token-type:access_token")
			if r.header.Get("Authorization") != "" || (r.header.Get("DPoP") != "") != (dpop != nil) {
				t.Errorf("%+v", r.header)
			}
			if dpop != nil && proofOf(t, key, r).Ath != "" {
				t.Error("the proof of a request for a token names one")
			}
		}
	})
}

// A token that was revoked is an invalid_request of the token endpoint, as other mistakes are.
func TestADelegationByARevokedTokenIsRepeatedOnce(t *testing.T) {
	t.Parallel()
	for name, works := range map[string]bool{"revoked": true, "another mistake": false} {
		f := &fake{react: issues(func(_ int, r seen) reaction {
			if works && formOf(t, r).Get("subject_token") == "access-2" {
				return ok(`{"access_token":"` + jwtWith(`{"sub":"a2"}`) + `","token_type":"Bearer","expires_in":600,"scope":""}`)
			}
			return oauthRefusal(400, "invalid_request")
		})}
		_, err := agentWith(t, f, client.AgentOptions{Secret: "s"}).Delegate(t.Context(), "s2", client.DelegateParams{})
		if (err == nil) != works || f.count(oauthPath) != 2 || f.count(refreshPath) != 1 {
			t.Errorf("%s: %v, after %d requests and %d renewals", name, err, f.count(oauthPath), f.count(refreshPath))
		}
	}
}

func TestAnAgentByATokenAloneUsesIt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		key := generated(t, client.EdDSA)
		plain, tied := jwtWith(`{"sub":"a2"}`), jwtWith(`{"sub":"a2","cnf":{"jkt":"`+key.Thumbprint()+`"}}`)
		f := &fake{react: func(n int, _ seen) reaction {
			if n > 2 {
				return refusal(401, "invalid_token")
			}
			return ok(usageBody)
		}}
		remit := newClient(t, f, client.Options{})
		agent, err := remit.AgentWithToken(plain, nil)
		if err != nil || agent.ID() != "a2" {
			t.Fatal(err)
		}
		proved := must(remit.AgentWithToken(tied, key))(t)
		for _, a := range []*client.Agent{agent, proved} {
			must(a.Session("s1").Charge(t.Context(), client.Charge{}))(t)
		}
		if a, b := f.requests[0].header, f.requests[1].header; a.Get("Authorization") != "Bearer "+plain || b.Get("Authorization") != "DPoP "+tied || proofOf(t, key, f.requests[1]).Ath != hashOf(tied) {
			t.Errorf("%v %v", a, b)
		}
		if access, err := agent.Token(t.Context()); access != plain || err != nil {
			t.Error(access, err)
		}
		if err := agent.Refresh(t.Context()); !errors.Is(err, client.ErrUnauthorized) || !strings.Contains(err.Error(), "cannot be renewed") {
			t.Error(err)
		}
		if _, err := agent.Session("s1").Charge(t.Context(), client.Charge{}); !errors.Is(err, client.ErrUnauthorized) || len(f.requests) != 3 {
			t.Errorf("%v, after %d requests", err, len(f.requests))
		}
		for token, with := range map[string]*client.Key{"nonsense": nil, jwtWith(`{}`): nil, tied: nil, plain: key} {
			_, err := remit.AgentWithToken(token, with)
			if _, is := errors.AsType[*client.UnusableCredential](err); !is || strings.Contains(err.Error(), token) {
				t.Errorf("%s: %v", token, err)
			}
		}
	})
}
