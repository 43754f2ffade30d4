package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"remit/client"
)

// A given session exists before the run and after it, and others may charge, suspend and end it meanwhile. So its refusals are
// counted and are no violations, and its totals are compared by an action type that only this run has.

// setUpGiven gets the tokens of the session's agent, and reads the session.
func (f *fleet) setUpGiven(ctx context.Context) error {
	a := &agent{sdk: f.remit.Agent(f.cfg.agent, f.cfg.secret), secret: client.Credential(f.cfg.secret)}
	s := &session{sdk: a.sdk.Session(f.cfg.session), agent: a}
	f.agents[0], f.sessions[0] = a, s
	if err := f.logIn(ctx, 0); err != nil {
		return err
	}
	return f.persist(ctx, opRead, time.Now(), s.get).err
}

// newOwnType returns an action type for a run. A session tells 64 of them apart.
func newOwnType() string { return fmt.Sprintf("loadtest.%08x", rand.Uint32()) }

// checkGiven checks the answer to a charge of a given session.
func checkGiven(f fact) []violation {
	switch f.reply.outcome() {
	case refused:
		return nil
	case unknown:
		return checkUnanswered(f.session, f.reply)
	}
	if _, err := readUsage(f.reply); err != nil || f.reply.status != http.StatusOK {
		return []violation{found(ruleUnreadable, f.session, "action answered %d: %v", f.reply.status, err)}
	}
	return nil
}

// reconcileGiven compares the usage of a given session with the ledger.
func (f *fleet) reconcileGiven(ctx context.Context, s *session) {
	lines, r := f.usageLines(ctx, s.sdk.Usage)
	if r.outcome() != acknowledged {
		f.audit.add([]violation{found(ruleUnchecked, s.sdk.ID(), "its usage: %s", r)})
		return
	}
	var stored charge
	for _, line := range lines {
		if line.ActionType != nil && *line.ActionType == f.ownType {
			stored = stored.plus(charge{line.ActionCount, line.Value})
		}
	}
	f.audit.add(checkOwn(s.sdk.ID(), stored, s.ledger.sums()))
}

// checkOwn compares what a session has of the run with the ledger.
func checkOwn(session string, stored charge, sums entries) []violation {
	return checkBetween(session, state{count: stored.count, used: stored.value}, sums.window().least(), sums.window().most())
}

// otherRefusals returns the refusals of a given session's charges that name no limit.
func (f *fleet) otherRefusals() []counted {
	var out []counted
	for _, k := range f.stats.kinds.sorted() {
		if f.cfg.session != "" && k.Op == opAction && !k.Fault && k.What != kindOfLimit {
			out = append(out, k)
		}
	}
	return out
}

// kindOfLimit is how kindOf describes a refusal for a limit of the session, which the totals tell apart.
var kindOfLimit = fmt.Sprintf("%d %s", http.StatusForbidden, codeLimitReached)
