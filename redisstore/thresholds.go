package redisstore

import (
	"slices"
	"strconv"
	"strings"

	"remit/redisstore/internal/kernel"
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
	return "=" + strings.Join(kernel.Map(t, strconv.Itoa), " ")
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

// thresholdsAt reads thresholds from a session's flags (budgets/include/flags.lua).
func thresholdsAt(r *reply, i int) Thresholds {
	_, own, has := strings.Cut(r.Optional(i), "T")
	if !has {
		return nil
	}
	own, _, _ = strings.Cut(own, ".")
	t := Thresholds{}
	for percent := range strings.FieldsSeq(own) {
		t = append(t, int(r.Parse(percent)))
	}
	return t
}

// chargeMayRecord is MayRecord for a charge, most of which write none.
func chargeMayRecord(r *reply, err error) bool {
	return err != nil && kernel.MayRecord(r, err) || err == nil && nearLimit(r, 0)
}

// nearLimit says whether the usage at i is near a limit, as charge_session.lua has it. What a session in a tree has delegated
// counts too, but is not in the usage, so any of these is.
func nearLimit(r *reply, i int) bool {
	if r.Has(i+usageBudget) && r.Optional(i+usageBudget) != "" || r.Has(i+usageWouldRefuse) {
		return true
	}
	value, most := kernel.MoneyAt(r, i+usageValue)+kernel.MoneyAt(r, i+usageHeld), kernel.MoneyAt(r, i+usageMaxValue)
	return r.Number(i+usageActions)*5 >= r.Number(i+usageMaxActions)*4 || value*5 >= most*4 && (value > 0 || most > 0)
}

// wroteThreshold is MayRecord for an operation on an organization's budget, which returns at i whether it wrote a threshold's event.
func wroteThreshold(i int) func(*reply, error) bool {
	return func(r *reply, err error) bool { return err == nil && r.Has(i) && r.Optional(i) != "" }
}

// batchMayRecord is MayRecord for several charges of a session.
func batchMayRecord(r *reply, err error) bool {
	if err != nil {
		return kernel.MayRecord(r, err)
	}
	outcomes := r.List(0)
	for i := range outcomes.Values {
		if outcome := outcomes.List(i); outcome.Text(0) != "ok" || nearLimit(outcome, 1) {
			return true
		}
	}
	return false
}

// readMayRecord is MayRecord for the read of a session, which notes an expiry.
func readMayRecord(r *reply, err error) bool {
	const now, expires, ended = 0, 20, 21
	return err == nil && r.Optional(ended) == "" && r.Number(now) >= r.Number(expires)
}
