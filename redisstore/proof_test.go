package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"remit/money"
	"remit/redisstore/internal/kernel"
	"remit/test/redistest"
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
	t.Parallel()
	onEachRedis(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
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
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		p := newProof(1)
		grant := must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, GrantRequest{Proof: newProof(1)}))(t)
		other := bound(grant)
		other.Organization[0]++
		before := w.contents(t, s)
		for name, test := range map[string]struct{ err, want error }{
			"a wrong secret":       {errOf(s.ExchangeSecret(t.Context(), w.agent.ID, [32]byte{9}, GrantRequest{Proof: p})), ErrInvalidCredentials},
			"an unknown family":    {errOf(s.RotateRefresh(t.Context(), w.agent.ID, NewID(w.agent.ID), 1, GrantRequest{Proof: p})), ErrInvalidRefreshToken},
			"another key":          {errOf(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, 1, GrantRequest{Proof: newProof(2)})), ErrInvalidRefreshToken},
			"another organization": {s.UseProof(t.Context(), other, *p), ErrInvalidToken},
		} {
			wantError(t, name, test.err, test.want)
		}
		if after := w.contents(t, s); !reflect.DeepEqual(after, before) {
			t.Errorf("%q became %q", before, after)
		}
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
			t.Parallel()
			onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
				w := newTenant(t, s, NewSession{MaxActions: 1})
				grant := must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, GrantRequest{Proof: test.exchange}))(t)
				if grant.Bound != (test.exchange != nil) {
					t.Errorf("bound: %t", grant.Bound)
				}
				before := w.contents(t, s)
				next, err := s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, 1, GrantRequest{Proof: test.refresh})
				if err != test.want || next.Bound != test.bound {
					t.Fatalf("%+v, %v", next, err)
				}
				if after := w.contents(t, s); test.want != nil && !reflect.DeepEqual(after, before) {
					t.Errorf("%q became %q", before, after)
				}
				if test.want != nil { // nothing is spent
					must(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, 1, GrantRequest{Proof: newProof(1)}))(t)
				}
			})
		})
	}
}

// A thief of a spent token without its key could end the family otherwise.
func TestReuseWithoutTheKeyEndsNoBoundFamily(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
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

// A revocation by any way ends the bound access tokens of a family too.
func TestARevokedFamilyEndsItsBoundTokens(t *testing.T) {
	t.Parallel()
	for name, revoke := range map[string]func(t *testing.T, s *Store, w tenant, g Grant) error{
		"by the agent": func(t *testing.T, s *Store, w tenant, g Grant) error {
			return s.RevokeFamily(t.Context(), bound(g), g.Family)
		},
		"by the organization": func(t *testing.T, s *Store, w tenant, g Grant) error {
			return s.EndFamily(t.Context(), w.key, w.agent.ID, g.Family)
		},
		"with all others": func(t *testing.T, s *Store, w tenant, g Grant) error {
			return revokeFamilies(t.Context(), s, w.key, w.agent.ID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
				w := newTenant(t, s, NewSession{MaxActions: 5})
				grant := must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, GrantRequest{Proof: newProof(1)}))(t)
				token := bound(grant)
				charge := func() error {
					return errOf(s.Charge(t.Context(), Caller{Token: &token}, w.session.ID, Charge{Count: 1}))
				}
				wantError(t, "a charge before", charge(), nil)
				for range 2 { // the first answer may have been lost
					wantError(t, "the revocation", revoke(t, s, w, grant), nil)
				}
				wantError(t, "a charge", charge(), ErrInvalidToken)
				wantError(t, "reading the session", errOf(s.Session(t.Context(), Caller{Token: &token}, w.session.ID)), ErrInvalidToken)
				wantError(t, "a proof", s.UseProof(t.Context(), token, *newProof(1)), ErrInvalidToken)
				wantError(t, "a verification", errOf(s.VerifyProof(t.Context(), token, *newProof(1))), ErrInvalidToken)
			})
		})
	}
}

// Marks of revoked families, of both kinds, are dropped when no access token of the family can live any more.
func TestMarksOfBoundTokensAreDroppedInTime(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		lapsed := map[string]any{}
		for i := range 40 {
			id := NewID(w.agent.ID)
			lapsed[kernel.FamilyField(id)], lapsed[kernel.BoundField(id)] = i, i
		}
		must(peek(t, s).HSet(t.Context(), s.keys.Agent(w.agent.ID), lapsed).Result())(t)
		for range 200 {
			must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, GrantRequest{}))(t)
			if left := must(peek(t, s).HLen(t.Context(), s.keys.Agent(w.agent.ID)).Result())(t); left < 20 {
				return
			}
		}
		t.Error("marks of lapsed families are left")
	})
}

func TestAnAgentHasABoundNumberOfProofs(t *testing.T) {
	t.Parallel()
	const most = 100000
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
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
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
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
		if kept != 1 {
			t.Errorf("it is in %d hashes", kept)
		}
	})
}

// The hash of the period before still counts.
func TestAProofOfThePeriodBeforeIsRefused(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
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
	const rounds = 1000
	onRealRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		instances := []*Store{s, anotherInstance(t, s)}
		token := bound(w.exchange(t, s))
		for range rounds {
			p := newProof(1)
			var passed, refused atomic.Int32
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() {
					use := instances[i%2].UseProof
					if i >= 2 {
						use = func(ctx context.Context, t AccessToken, p Proof) error {
							return errOf(instances[i%2].VerifyProof(ctx, t, p))
						}
					}
					switch err := use(context.Background(), token, *p); {
					case err == nil:
						passed.Add(1)
					case errors.Is(err, ErrProofUsed):
						refused.Add(1)
					default:
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if passed.Load() != 1 || refused.Load() != 3 {
				t.Fatalf("%d passed, %d were refused", passed.Load(), refused.Load())
			}
		}
	})
}

// A lost reply leaves in doubt only whether the proof is used, so another proof may come at once.
func TestALostReplyToAProofIsUnavailable(t *testing.T) {
	t.Parallel()
	onEachProxy(t, func(t *testing.T, s *Store, p *redistest.Proxy) {
		w := newTenant(t, s, NewSession{MaxActions: 1, MaxValue: money.USD})
		token := bound(w.exchange(t, s))
		wantError(t, "a proof", s.UseProof(t.Context(), token, *newProof(1)), nil)
		for script, use := range map[*script]func(Proof) error{
			useProof:    func(p Proof) error { return s.UseProof(t.Context(), token, p) },
			verifyProof: func(p Proof) error { return errOf(s.VerifyProof(t.Context(), token, p)) },
		} {
			name := script.Name()
			wantError(t, name, use(*newProof(1)), nil)
			lost := newProof(1)
			p.LoseReplies(script.SHA(), 1)
			if err := use(*lost); !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("%s: %v", name, err)
			}
			wantError(t, name+" again", use(*lost), ErrProofUsed)
			wantError(t, name+" with another proof", use(*newProof(1)), nil)
		}
	})
}

// flag p of an agent's restricted: its tokens must be bound.
func TestAnAgentThatNeedsProofsGetsAndUsesBoundTokensOnly(t *testing.T) {
	t.Parallel()
	for _, restricted := range []string{"p", "np", "pl 1000  20000 1000 "} {
		t.Run(restricted, func(t *testing.T) {
			t.Parallel()
			onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
				w := newTenant(t, s, NewSession{MaxActions: 9, MaxValue: money.USD, MaxLease: time.Minute})
				before := w.exchange(t, s)
				of := w.furnished(t, s)
				must(peek(t, s).HSet(t.Context(), s.keys.Agent(w.agent.ID), "restricted", restricted).Result())(t)
				wantError(t, "an exchange", errOf(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, GrantRequest{})), ErrProofRequired)
				wantError(t, "a refresh", errOf(s.RotateRefresh(t.Context(), w.agent.ID, before.Family, 1, GrantRequest{})), ErrProofRequired)
				unbound, holder := before.AccessToken, bound(before)
				for _, asked := range append(askedByEither(Caller{Token: &unbound}), askedByAgent(unbound)...) {
					wantError(t, asked.name+" by an unbound token", asked.ask(s, t, of), ErrInvalidToken)
				}
				wantError(t, "reading by a bound token", errOf(s.Session(t.Context(), Caller{Token: &holder}, w.session.ID)), nil)
				must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, GrantRequest{Proof: newProof(1)}))(t)
				must(s.RotateRefresh(t.Context(), w.agent.ID, before.Family, 1, GrantRequest{Proof: newProof(1)}))(t)
				byKey := Caller{Key: &w.key}
				wantError(t, "reading by an API key", errOf(s.Session(t.Context(), byKey, w.session.ID)), nil)
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
