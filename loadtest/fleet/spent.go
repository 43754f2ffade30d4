package fleet

// checkSpent checks the limits of all sessions of a tree against what was acknowledged in and below each, at one moment between two
// looks at all ledgers: what was used before the first is used, and what was held then is held, unless it was to be settled by the
// second.
func (t *tree) checkSpent() []violation {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.nodes) == 0 {
		return nil
	}
	acknowledged := map[*session]effect{}
	for _, n := range t.nodes {
		acknowledged[n] = n.ledger.sums().acknowledged.effect
	}
	var out []violation
	t.nodes[0].sumSpent(acknowledged, &out)
	return out
}

// sumSpent returns what is surely used and held in and below the session.
func (n *session) sumSpent(acknowledged map[*session]effect, out *[]violation) state {
	before := acknowledged[n]
	sum := state{count: before.count, used: before.value + before.spent}
	if !n.ending {
		sum.held = max(before.held-n.ledger.possible().freed, 0)
	}
	for _, child := range n.children {
		below := child.sumSpent(acknowledged, out)
		sum.count, sum.used, sum.held = sum.count+below.count, sum.used+below.used, sum.held+below.held
	}
	if sum.count > n.limits.actions || sum.used+sum.held > n.limits.value {
		*out = append(*out, found(ruleExceeded, n.sdk.ID(), "in and below it %d actions, %s USD are used and %s held, of at most %d and %s", sum.count,
			sum.used, sum.held, n.limits.actions, n.limits.value))
	}
	return sum
}
