package redisstore

import (
	"testing"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

// A forged key may name any organization: it must not fill that organization's share.
func TestCallsWithUnprovenKeysStayOutOfOrganizationsFlows(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		own := flow{Owner: w.key.Organization}
		forged := APIKey{Organization: w.key.Organization, Hash: [32]byte{9}}
		wantError(t, "a forged key", errOf(s.Organization(t.Context(), forged)), ErrInvalidAPIKey)
		wantEqual(t, "the flow of a forged key", s.core.Proven.Flow(forged), kernel.UnprovenFlow)
		must(s.Organization(t.Context(), w.key))(t)
		wantEqual(t, "the flow of a good key", s.core.Proven.Flow(w.key), own)
		wantEqual(t, "the flow of what takes authority away", s.core.Proven.Urgent(w.key), flow{Owner: own.Owner, Kind: kernel.Urgent})
		must(s.RotateAPIKey(t.Context(), w.key, APIKey{Hash: [32]byte{2}}, 0, nil))(t)
		wantEqual(t, "the flow of the key that took its place", s.core.Proven.Flow(APIKey{Organization: w.key.Organization, Hash: [32]byte{2}}), own)
		wantEqual(t, "the flow of a key that was rotated", s.core.Proven.Flow(w.key), kernel.UnprovenFlow)
	})
}

// A key's calls lose the share of their organization, and their urgency, when it is forgotten.
func TestRotatingKeysDoesNotEvictAnotherOrganizationsProvenKey(t *testing.T) {
	t.Parallel()
	p := kernel.NewProvenKeys()
	calm, busy := APIKey{Organization: uuid.New(), Hash: [32]byte{1}}, APIKey{Organization: uuid.New(), Hash: [32]byte{1}}
	p.Note(calm, nil)
	for i := range kernel.MaxProven + 1 {
		p.Note(busy, nil)
		next := [32]byte{byte(i), byte(i >> 8), 1}
		p.Rotated(busy, next, i%2 == 0)
		busy.Hash = next
	}
	wantEqual(t, "the flow of another organization's key", p.Urgent(calm), flow{Owner: calm.Organization, Kind: kernel.Urgent})
}

func TestBothKeysOfARotationWithGraceHaveTheirOrganizationsShareUntilOneIsRefused(t *testing.T) {
	t.Parallel()
	p := kernel.NewProvenKeys()
	old := APIKey{Organization: uuid.New(), Hash: [32]byte{1}}
	next, own := APIKey{Organization: old.Organization, Hash: [32]byte{2}}, flow{Owner: old.Organization}
	p.Note(old, nil)
	p.Rotated(old, next.Hash, false)
	p.Note(APIKey{Organization: old.Organization, Hash: [32]byte{9}}, ErrInvalidAPIKey) // a forged one says nothing of them
	wantEqual(t, "the flows within the grace", []flow{p.Flow(old), p.Flow(next)}, []flow{own, own})
	p.Note(old, ErrInvalidAPIKey)
	wantEqual(t, "the flows after it", []flow{p.Flow(old), p.Flow(next)}, []flow{kernel.UnprovenFlow, own})
}

// Its signature is good for up to an hour more.
func TestARevokedAgentLeavesItsOrganizationsFlowOnceItsTokenWasRefused(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		grant := w.exchange(t, s)
		calls := map[string]func(Caller) error{
			"charge": func(c Caller) error { return errOf(s.Charge(t.Context(), c, w.session.ID, Charge{Count: 1})) },
			"batch":  func(c Caller) error { return chargeTwice(t.Context(), s, c, w.session.ID, nil) },
			"begin":  func(c Caller) error { return errOf(s.Begin(t.Context(), *c.Token, NewTransaction{})) },
			"check":  func(c Caller) error { return s.CheckToken(t.Context(), *c.Token) },
			"list":   func(c Caller) error { return errOf(s.Sessions(t.Context(), c, Query{Limit: 1})) },
			"events": func(c Caller) error { return errOf2(s.Events(t.Context(), c, w.agent.ID, "", 1)) },
		}
		held := s.Remembered(grant.AccessToken)
		must(s.Charge(t.Context(), Caller{Token: held}, w.session.ID, Charge{Count: 1}))(t)
		wantEqual(t, "the flow of a live token", held.Flow(), flow{Owner: w.key.Organization})
		must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
		for name, call := range calls {
			held := s.Remembered(grant.AccessToken)
			wantError(t, name, call(Caller{Token: held}), ErrInvalidToken)
			wantEqual(t, name+": the flow of a token that was refused", held.Flow(), kernel.UnprovenFlow)
		}
	})
}

// Forged keys cost nothing to make: as many as there may be, exchanges do not share their flow.
func TestExchangesDoNotWaitForAFloodOfForgedKeys(t *testing.T) {
	t.Parallel()
	p := kernel.NewProvenKeys()
	forged := p.Of(Caller{Key: &APIKey{Organization: uuid.New(), Hash: [32]byte{9}}, Urgent: true})
	if forged == (flow{}) || forged.Owner != uuid.Nil || forged.Kind == kernel.Urgent {
		t.Fatalf("a forged key has the flow %v", forged)
	}
	wantEqual(t, "the flow of another forged key", p.Of(Caller{Key: &APIKey{Organization: uuid.New(), Hash: [32]byte{9}}}), forged)
}
