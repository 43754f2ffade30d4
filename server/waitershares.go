package server

import "container/list"

// holder is whoever holds places: an organization, an address, or an organization at an address.
type holder struct {
	places list.List // *place, the newest last
	ranks  *ranking  // in which it stands
	within ranking   // of an address: its organizations
}

// holders are those of one kind that hold any place. The zero value is ready to use.
type holders[K comparable] struct {
	byKey map[K]*holder
	ranks ranking
}

// of returns the holder with the key. A new one will stand in ranks.
func (h *holders[K]) of(key K, ranks *ranking) *holder {
	known := h.byKey[key]
	if known == nil {
		if h.byKey == nil {
			h.byKey = map[K]*holder{}
		}
		known = &holder{ranks: ranks}
		h.byKey[key] = known
	}
	return known
}

func (h *holders[K]) size(key K) int { return h.byKey[key].size() }

func (h *holders[K]) forgetEmpty(key K) {
	if h.size(key) == 0 {
		delete(h.byKey, key)
	}
}

func (h *holder) size() int {
	if h == nil {
		return 0
	}
	return h.places.Len()
}

func (h *holder) add(p any) *list.Element {
	entry := h.places.PushBack(p)
	h.ranks.move(h, h.size()-1, h.size())
	return entry
}

func (h *holder) remove(entry *list.Element) {
	h.places.Remove(entry)
	h.ranks.move(h, h.size()+1, h.size())
}

// ranking finds the largest of its holders without a search: a size changes by one at a time, and so does the largest.
type ranking struct {
	bySize []map[*holder]struct{} // those of each size; the last is not empty
}

func (r *ranking) move(h *holder, from, to int) {
	for len(r.bySize) <= max(from, to) {
		r.bySize = append(r.bySize, map[*holder]struct{}{})
	}
	delete(r.bySize[from], h)
	if to > 0 {
		r.bySize[to][h] = struct{}{}
	}
	for last := len(r.bySize) - 1; last >= 0 && len(r.bySize[last]) == 0; last-- {
		r.bySize = r.bySize[:last]
	}
}

// largest returns one of the holders of the largest size, nil when there are none.
func (r *ranking) largest() *holder {
	if len(r.bySize) > 0 {
		for h := range r.bySize[len(r.bySize)-1] {
			return h
		}
	}
	return nil
}
