package conn

import "container/list"

// share is the slots that one organization, one address, or one organization at one address holds.
type share struct {
	waiters list.List // of *slot, the newest last
	ranks   *ranking  // that orders this share
	within  ranking   // of an address: of its organizations
}

// shares are the shares of one kind that hold a slot. The zero value is ready to use.
type shares[K comparable] struct {
	byKey map[K]*share
	ranks ranking
}

// of returns the share with this key. A new one will be ordered by ranks.
func (h *shares[K]) of(key K, ranks *ranking) *share {
	known := h.byKey[key]
	if known == nil {
		if h.byKey == nil {
			h.byKey = map[K]*share{}
		}
		known = &share{ranks: ranks}
		h.byKey[key] = known
	}
	return known
}

func (h *shares[K]) size(key K) int { return h.byKey[key].size() }

func (h *shares[K]) forgetEmpty(key K) {
	if h.size(key) == 0 {
		delete(h.byKey, key)
	}
}

func (h *share) size() int {
	if h == nil {
		return 0
	}
	return h.waiters.Len()
}

func (h *share) add(p any) *list.Element {
	entry := h.waiters.PushBack(p)
	h.ranks.move(h, h.size()-1, h.size())
	return entry
}

func (h *share) remove(entry *list.Element) {
	h.waiters.Remove(entry)
	h.ranks.move(h, h.size()+1, h.size())
}

// ranking finds the largest share without a search: a size changes by one at a time, and so does the largest.
type ranking struct {
	bySize []map[*share]struct{} // the shares of each size; the last set is not empty
}

func (r *ranking) move(h *share, from, to int) {
	for len(r.bySize) <= max(from, to) {
		r.bySize = append(r.bySize, map[*share]struct{}{})
	}
	delete(r.bySize[from], h)
	if to > 0 {
		r.bySize[to][h] = struct{}{}
	}
	for last := len(r.bySize) - 1; last >= 0 && len(r.bySize[last]) == 0; last-- {
		r.bySize = r.bySize[:last]
	}
}

// largest returns one of the largest shares, nil when there is none.
func (r *ranking) largest() *share {
	if len(r.bySize) > 0 {
		for h := range r.bySize[len(r.bySize)-1] {
			return h
		}
	}
	return nil
}
