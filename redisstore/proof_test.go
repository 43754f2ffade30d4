package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

// newProof returns a proof that was never used, of the key with this number.
func newProof(key byte) *Proof {
	p := &Proof{Key: [32]byte{key}}
	rand.Read(p.Fingerprint[:])
	return p
}

// bound returns the grant's access token as one that is bound to a key.
func bound(g Grant) AccessToken {
	t := g.AccessToken
	t.Bound = true
	return t
}

func TestAProofIsUsedOnce(t *testing.T) {
	onTenant(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store, w tenant) {
		first := newProof(1)
		grant := must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, GrantRequest{Proof: first}))(t)
		uses := map[string]func(*Proof) error{
			"an exchange": func(p *Proof) error {
				return errOf(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, GrantRequest{Proof: p}))
			},
			"a refresh": func(p *Proof) error {
				return errOf(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, 1, GrantRequest{Proof: p}))
			},
			"a use":          func(p *Proof) error { return s.UseProof(t.Context(), bound(grant), *p) },
			"a verification": func(p *Proof) error { return errOf(s.VerifyProof(t.Context(), bound(grant), *p)) },
		}
		for name, use := range uses {
			p := newProof(1)
			wantError(t, name, use(p), nil)
			for again, reuse := range uses {
				wantError(t, again+" after "+name, reuse(p), ErrProofUsed)
			}
			wantError(t, name+" with the first proof", use(first), ErrProofUsed)
		}
	})
}

// What is refused leaves an agent's proofs as they are: else strangers could fill them.
func TestARefusalUsesUpNoProof(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		p := newProof(1)
		grant := must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, GrantRequest{Proof: newProof(1)}))(t)
		other := bound(grant)
		other.Organization[0]++
		unchanged := w.unchanged(t, s)
		for name, test := range map[string]struct{ err, want error }{
			"a wrong secret":       {errOf(s.ExchangeSecret(t.Context(), w.agent.ID, [32]byte{9}, GrantRequest{Proof: p})), ErrInvalidCredentials},
			"an unknown family":    {errOf(s.RotateRefresh(t.Context(), w.agent.ID, NewID(w.agent.ID), 1, GrantRequest{Proof: p})), ErrInvalidRefreshToken},
			"another key":          {errOf(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, 1, GrantRequest{Proof: newProof(2)})), ErrInvalidRefreshToken},
			"another organization": {s.UseProof(t.Context(), other, *p), ErrInvalidToken},
		} {
			wantError(t, name, test.err, test.want)
		}
		unchanged()
		wantError(t, "the proof", s.UseProof(t.Context(), bound(grant), *p), nil)
	})
}

func TestABoundFamilyIsRefreshedWithItsKeyOnly(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		exchange, refresh *Proof
		want              error
		bound             bool
	}{
		"bound, with its key":      {newProof(1), newProof(1), nil, true},
		"bound, with another key":  {newProof(1), newProof(2), ErrInvalidRefreshToken, false},
		"bound, without a proof":   {newProof(1), nil, ErrInvalidRefreshToken, false},
		"unbound, with a proof":    {nil, newProof(1), nil, true},
		"unbound, without a proof": {nil, nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
				grant := must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, GrantRequest{Proof: test.exchange}))(t)
				wantEqual(t, "bound", grant.Bound, test.exchange != nil)
				unchanged := w.unchanged(t, s)
				next, err := s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, 1, GrantRequest{Proof: test.refresh})
				if err != test.want || next.Bound != test.bound {
					t.Fatalf("%+v, %v", next, err)
				}
				if test.want != nil { // nothing is spent
					unchanged()
					must(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, 1, GrantRequest{Proof: newProof(1)}))(t)
				}
			})
		})
	}
}

// A thief of a spent token without its key could end the family otherwise.
func TestReuseWithoutTheKeyEndsNoBoundFamily(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		family := must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, GrantRequest{Proof: newProof(1)}))(t).Family
		refresh := func(generation uint32, p *Proof) error {
			return errOf(s.RotateRefresh(t.Context(), w.agent.ID, family, generation, GrantRequest{Proof: p}))
		}
		for generation := uint32(1); generation <= 3; generation++ {
			wantError(t, "a refresh", refresh(generation, newProof(1)), nil)
		}
		for name, p := range map[string]*Proof{"without a proof": nil, "with another key": newProof(2)} {
			wantError(t, "reuse "+name, refresh(1, p), ErrInvalidRefreshToken)
		}
		wantError(t, "the holder's refresh", refresh(4, newProof(1)), nil)
		wantError(t, "reuse with the key", refresh(1, newProof(1)), ErrTokenReused)
		wantError(t, "a refresh afterwards", refresh(5, newProof(1)), ErrInvalidRefreshToken)
	})
}

func TestAnAgentHasABoundNumberOfProofs(t *testing.T) {
	const most = 100000
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		neighbour := newTenant(t, s, NewSession{MaxActions: 1})
		token := bound(w.exchange(t, s))
		s.fillProofs(t, w, 0, most/2)
		s.fillProofs(t, w, 1, most/2-1)
		wantError(t, "the last that fits", s.UseProof(t.Context(), token, *newProof(1)), nil)
		for name, err := range map[string]error{
			"a use":          s.UseProof(t.Context(), token, *newProof(1)),
			"a verification": errOf(s.VerifyProof(t.Context(), token, *newProof(1))),
			"an exchange":    errOf(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, GrantRequest{Proof: newProof(1)})),
		} {
			wantError(t, name+" beyond", err, ErrManyProofs)
		}
		must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, GrantRequest{}))(t)
		wantError(t, "a neighbour's", s.UseProof(t.Context(), bound(neighbour.exchange(t, s)), *newProof(1)), nil)
	})
}

// fillProofs gives an agent proofs in the hash of one kind of period.
func (s *Store) fillProofs(t *testing.T, w tenant, period byte, count int) {
	t.Helper()
	for done := 0; done < count; {
		fields := map[string]any{}
		for ; len(fields) < 5000 && done < count; done++ {
			fields[fmt.Sprintf("%d-%012d", period, done)] = ""
		}
		must(peek(t, s).HSet(t.Context(), s.keys.Proofs(w.agent.ID, period), fields).Result())(t)
	}
}

// A proof is known until no instance accepts it any more, and its record then ends by itself.
func TestProofsAreForgottenWithinFourMinutes(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		wantError(t, "a proof", s.UseProof(t.Context(), bound(w.exchange(t, s)), *newProof(1)), nil)
		kept := 0
		for period := range byte(2) {
			left := must(peek(t, s).PTTL(t.Context(), s.keys.Proofs(w.agent.ID, period)).Result())(t)
			if left > 0 {
				kept++
				if left < 119*time.Second || left > 239*time.Second {
					t.Errorf("it is kept for %v", left)
				}
			}
		}
		wantEqual(t, "the hashes that it is in", kept, 1)
	})
}

// The hash of the period before still counts.
func TestAProofOfThePeriodBeforeIsRefused(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		token := bound(w.exchange(t, s))
		for period := range byte(2) {
			p := newProof(1)
			must(peek(t, s).HSet(t.Context(), s.keys.Proofs(w.agent.ID, period), string(p.Fingerprint[:keptFingerprint]), "").Result())(t)
			wantError(t, "a proof", s.UseProof(t.Context(), token, *p), ErrProofUsed)
		}
	})
}

func TestOneProofAtTwoInstancesAtOncePassesOnce(t *testing.T) {
	t.Parallel()
	onRealRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, roomy)
		instances, token := []*Store{s, anotherInstance(t, s)}, bound(w.exchange(t, s))
		wantOneToPass(t, 1000, ErrProofUsed, func(int) (calls []func() error) {
			p := newProof(1)
			for _, instance := range instances {
				calls = append(calls, func() error { return instance.UseProof(context.Background(), token, *p) },
					func() error { return errOf(instance.VerifyProof(context.Background(), token, *p)) })
			}
			return calls
		})
	})
}

// wantOneToPass makes calls at once, so many times, and checks that one of them succeeds and the others are refused.
func wantOneToPass(t *testing.T, rounds int, refusal error, calls func(round int) []func() error) {
	t.Helper()
	for round := range rounds {
		var passed, refused atomic.Int32
		made := calls(round)
		concurrently(t, len(made), func(i int) {
			switch err := made[i](); {
			case err == nil:
				passed.Add(1)
			case errors.Is(err, refusal):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
		if passed.Load() != 1 || int(refused.Load()) != len(made)-1 {
			t.Fatalf("%d passed and %d were refused", passed.Load(), refused.Load())
		}
	}
}

// flag p of an agent's restricted: its tokens must be bound.
func TestAnAgentThatNeedsProofsGetsAndUsesBoundTokensOnly(t *testing.T) {
	t.Parallel()
	for _, restricted := range []string{"p", "np", "pl 1000  20000 1000 "} {
		t.Run(restricted, func(t *testing.T) {
			onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
				before := w.exchange(t, s)
				of := w.furnished(t, s)
				must(peek(t, s).HSet(t.Context(), s.keys.Agent(w.agent.ID), "restricted", restricted).Result())(t)
				wantError(t, "an exchange", errOf(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, GrantRequest{})), ErrProofRequired)
				wantError(t, "a refresh", errOf(s.RotateRefresh(t.Context(), w.agent.ID, before.Family, 1, GrantRequest{})), ErrProofRequired)
				unbound, holder := before.AccessToken, bound(before)
				for _, asked := range append(askedByEither(Caller{Token: &unbound}), askedByAgent(unbound)...) {
					wantError(t, asked.name+" by an unbound token", asked.ask(s, t, of), ErrInvalidToken)
				}
				must(s.Session(t.Context(), Caller{Token: &holder}, w.session.ID))(t)
				must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, GrantRequest{Proof: newProof(1)}))(t)
				must(s.RotateRefresh(t.Context(), w.agent.ID, before.Family, 1, GrantRequest{Proof: newProof(1)}))(t)
				must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
			})
		})
	}
}

// askedByAgent is every operation that only an agent may ask for.
func askedByAgent(token AccessToken) []asked {
	caller := Caller{Token: &token}
	return []asked{
		{"CheckToken", func(s *Store, t *testing.T, of target) error { return s.CheckToken(t.Context(), token) }},
		{"RevokeFamily", func(s *Store, t *testing.T, of target) error { return s.RevokeFamily(t.Context(), token, of.family) }},
		{"Begin", func(s *Store, t *testing.T, of target) error {
			return errOf(s.Begin(t.Context(), token, NewTransaction{ActionType: "buy", Lifetime: time.Minute}))
		}},
		{"Begin in a session", func(s *Store, t *testing.T, of target) error {
			return errOf(s.Begin(t.Context(), token, NewTransaction{ActionType: "buy", Session: of.session, Value: 1, Lifetime: time.Minute}))
		}},
		{"Commit", func(s *Store, t *testing.T, of target) error {
			return errOf(s.Commit(t.Context(), token, of.transaction, Commit{}))
		}},
		{"ChangeHold", func(s *Store, t *testing.T, of target) error {
			return errOf(s.ChangeHold(t.Context(), token, of.transaction, NewHold{Lifetime: new(time.Minute)}))
		}},
		{"RequestMore", func(s *Store, t *testing.T, of target) error {
			return errOf(s.RequestMore(t.Context(), token, of.session, NewSessionRequest{}))
		}},
		{"Charge with an idempotency key", func(s *Store, t *testing.T, of target) error {
			return errOf(s.Charge(t.Context(), caller, of.session, Charge{Count: 1, Idempotency: &Idempotency{Key: "k"}}))
		}},
	}
}
