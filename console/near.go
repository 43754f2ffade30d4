package console

import (
	"cmp"
	"slices"

	"remit/internal/chart"
)

// nearest sorts sessions by how near a limit they are, the nearest first, and leaves out those that are not.
func nearest(rows []sessionRow) []sessionRow {
	near := slices.DeleteFunc(rows, func(s sessionRow) bool { return !s.isNear() })
	slices.SortStableFunc(near, func(a, b sessionRow) int { return cmp.Compare(b.nearness(), a.nearness()) })
	return near
}

// isNear reports whether an active session has used most of a limit.
func (s sessionRow) isNear() bool {
	return s.Status == statusActive && slices.ContainsFunc(s.limits(), func(u chart.Usage) bool { return u.Level() != chart.Free })
}

// nearness returns the share of the limit that is nearest, in millionths: whole percents would not tell 99.1 % from 99.9 %.
func (s sessionRow) nearness() (most int64) {
	for _, u := range s.limits() {
		most = max(most, u.ShareOf(1_000_000))
	}
	return most
}

// limits returns the bars of what the session may use up. A limit of 0 is not one that it comes near to.
func (s sessionRow) limits() []chart.Usage {
	return slices.DeleteFunc([]chart.Usage{s.Actions(), s.Value()}, func(u chart.Usage) bool { return u.Limit == 0 })
}
