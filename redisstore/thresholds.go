package redisstore

import (
	"slices"
	"strconv"
	"strings"
)

// Thresholds are the percents of a session's limits at which an event budget.threshold tells of it, ascending: 1 to 100, at most
// MostThresholds. nil are DefaultThresholds, empty ones tell nothing.
type Thresholds []int

// MostThresholds is how many thresholds a session may have.
const MostThresholds = 8

// DefaultThresholds are those of a session without its own, of agents' days and of organizations' budgets.
var DefaultThresholds = Thresholds{80, 100}

// text returns the thresholds as create_session.lua takes them.
func (t Thresholds) text() string {
	if t == nil || slices.Equal(t, DefaultThresholds) {
		return ""
	}
	percents := make([]string, len(t))
	for i, percent := range t {
		percents[i] = strconv.Itoa(percent)
	}
	return "=" + strings.Join(percents, " ")
}

// thresholdsText returns new thresholds as change_limits.lua takes them.
func thresholdsText(t *Thresholds) string {
	switch {
	case t == nil:
		return ""
	case t.text() == "":
		return "-"
	default:
		return t.text()
	}
}

// thresholdsAt reads thresholds from a session's flags (budgets/include/flags.lua). They may be missing, as the values of leaseStateAt.
func thresholdsAt(r *reply, i int) Thresholds {
	if !r.Has(i) {
		return nil
	}
	_, own, has := strings.Cut(r.Optional(i), "T")
	if !has {
		return nil
	}
	own, _, _ = strings.Cut(own, ".")
	return percentsFrom(r, own)
}

// percentsFrom reads percents with spaces between.
func percentsFrom(r *reply, text string) Thresholds {
	t := Thresholds{}
	for percent := range strings.FieldsSeq(text) {
		t = append(t, int(r.Parse(percent)))
	}
	return t
}
