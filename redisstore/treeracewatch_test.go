package redisstore

import "github.com/google/uuid"

// watch reads the tree by both instances in turn until it is stopped, and checks every limit in it. It returns how often it did.
func (r *racedTree) watch(root uuid.UUID, stop <-chan struct{}) int {
	last := map[uuid.UUID]*SessionTree{}
	for reads := 0; ; reads++ {
		select {
		case <-stop:
			return reads
		default:
		}
		s, before := r.instances[reads%2], r.sums()
		tree, err := s.Tree(r.t.Context(), Caller{Key: &r.key}, root)
		if isUnanswered(err) {
			continue
		}
		if err != nil {
			r.t.Error(err)
			return reads
		}
		budget, err := s.Budget(r.t.Context(), r.key)
		if isUnanswered(err) {
			continue
		}
		if err != nil || budget.Reserved+budget.Used > budget.MaxValue || budget.Reserved < tree.MaxValue {
			r.t.Errorf("the budget is %+v, of a root with %d: %v", budget, tree.MaxValue, err)
		}
		after, now := r.sums(), map[uuid.UUID]*SessionTree{}
		r.checkRead(tree, before, after, last, now)
		last = now
	}
}

// sums returns what is known of each session at this moment.
func (r *racedTree) sums() map[uuid.UUID]treeSum {
	r.lock.Lock()
	defer r.lock.Unlock()
	all := make(map[uuid.UUID]treeSum, len(r.nodes))
	for _, n := range r.nodes {
		all[n.session] = n.treeSum
	}
	return all
}

// checkRead checks a session that was read between two moments, and those below it. last has those of the read before.
func (r *racedTree) checkRead(is *SessionTree, before, after map[uuid.UUID]treeSum, last, now map[uuid.UUID]*SessionTree) {
	now[is.ID] = is
	shown := cost{is.ActionCount, is.ValueUsed + is.ValueHeld}
	counted := shown.plus(is.delegatedCost())
	if most := (cost{is.MaxActions, is.MaxValue}); !counted.within(cost{}, most) || is.ValueUsed < 0 || is.ValueHeld < 0 {
		r.t.Errorf("a session counts %v of %v: %+v", counted, most, is.Usage)
	}
	if was, known := before[is.ID]; known {
		least := was.surely.minus(after[is.ID].lost.minus(was.lost))
		if most := was.possibly.plus(after[is.ID].raised.minus(was.raised)); !counted.within(least, counted) || !shown.within(shown, most) {
			r.t.Errorf("a session shows %v and counts %v; in and below it at least %v and at most %v are used and held", shown, counted, least, most)
		}
	}
	var may cost
	for _, child := range is.Children {
		// A child that was read before its parent and lives after it had its part in between, and no limits beyond that.
		if was := last[child.ID]; was != nil && child.Status == Active {
			may = may.plus(cost{was.MaxActions, was.MaxValue})
		}
		r.checkRead(child, before, after, last, now)
	}
	if aside := is.delegatedCost(); !may.within(cost{}, aside) {
		r.t.Errorf("the children of a session may use %v, and %v is set aside for them", may, aside)
	}
}

func (u Usage) delegatedCost() cost {
	of := u.delegated()
	return cost{of.Actions, of.Value}
}
