package fleet

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// writeTable writes the measurements: a row per operation, and how far the run was behind its schedule.
func writeTable(w io.Writer, f *fleet) {
	fmt.Fprintf(w, "%s: %s, %s, %s; %d cores, GOMAXPROCS %d\n\n",
		f.cfg.scenario, f.cfg.size(), pace(f.cfg), f.cfg.duration, runtime.NumCPU(), runtime.GOMAXPROCS(0))

	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "operation\tcount\trate/s\tp50\tp90\tp99\tp99.9\tmax\trefused\terrors\t")
	for _, row := range f.operationRows() {
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%d\t%d\t\n",
			row.Name, row.Count, row.PerSecond, strings.Join(row.Latencies, "\t"), row.Refused, row.Errors)
	}
	table.Flush()
	fmt.Fprintln(w)
	for _, line := range []string{lagOf(f), shedOf(f), stormOf(f), localOf(f)} {
		if line != "" {
			fmt.Fprintln(w, line)
		}
	}
}

// operationRow is the measurements of one operation.
type operationRow struct {
	Name            string
	Count           int64
	PerSecond       string
	Latencies       []string // p50, p90, p99, p99.9 and the longest
	Refused, Errors int64
}

func (f *fleet) operationRows() []operationRow {
	var rows []operationRow
	for op := range operations {
		s := &f.stats.all[op]
		if op >= onlySome && s.latencies.TotalCount() == 0 {
			continue
		}
		row := operationRow{op.String(), s.latencies.TotalCount(), s.perSecond(), nil, s.refused, s.errors}
		for _, percent := range []float64{50, 90, 99, 99.9, 100} {
			row.Latencies = append(row.Latencies, brief(quantile(s.latencies, percent)))
		}
		rows = append(rows, row)
	}
	return rows
}

// lagOf says how far a run was behind its schedule. It is empty in closed loop.
func lagOf(f *fleet) string {
	if f.cfg.rate == 0 {
		return ""
	}
	lag := f.stats.lag
	return fmt.Sprintf("behind schedule when sent: p50 %s, p99 %s, max %s; never sent: %d",
		brief(quantile(lag, 50)), brief(quantile(lag, 99)), brief(quantile(lag, 100)), f.unsent)
}

// shedOf says how many requests were shed, and how long the served ones took. It is empty if none was shed.
func shedOf(f *fleet) string {
	away, served := f.stats.shed.Load(), f.stats.served
	if away == 0 {
		return ""
	}
	return fmt.Sprintf("shed with 503 (among the errors): %d; served: %d, p50 %s, p99 %s",
		away, served.TotalCount(), brief(quantile(served, 50)), brief(quantile(served, 99)))
}

// stormOf describes the storm. It is empty without one.
func stormOf(f *fleet) string {
	if f.stats.stormAt.IsZero() {
		return ""
	}
	return fmt.Sprintf("storm: all access tokens expired after %s; the service refused %d requests with an expired token",
		brief(f.stats.stormAt.Sub(f.stats.timeline.start)), f.wire.refused.Load())
}

// localOf says how many actions were charged to leases without a request. It is empty without leases.
func localOf(f *fleet) string {
	if f.cfg.scenario != leased {
		return ""
	}
	return fmt.Sprintf("leases: %d of %d actions were decided without a request", f.local.Load(), f.stats.all[opLeased].latencies.TotalCount())
}

// pace describes the rate of a run.
func pace(cfg config) string {
	if cfg.rate == 0 {
		return fmt.Sprintf("closed loop, %d concurrent", closedLoopWorkers)
	}
	return fmt.Sprintf("%d actions/s, open loop", cfg.rate)
}

// writeTotals writes the totals of all sessions, and the verdict of the checks.
func writeTotals(w io.Writer, f *fleet) {
	var sum entries
	sum = sum.plus(f.started.sums)
	for _, s := range f.sessions {
		sum = sum.plus(s.ledger.sums())
	}
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range []struct {
		name  string
		tally tally
	}{
		{"acknowledged", sum.acknowledged},
		{"outcome unknown", sum.unknown},
		{"refused for " + limitActions, sum.byActions},
		{"refused for " + limitValue, sum.byValue},
	} {
		fmt.Fprintf(table, "%s\t%d requests\t%s\n", row.name, row.tally.requests, row.tally.charge)
	}
	for _, other := range f.otherRefusals() {
		fmt.Fprintf(table, "refused with %s\t%d requests\n", other.What, other.Count)
	}
	table.Flush()

	if t := sum.acknowledged.flow; t.begun > 0 {
		fmt.Fprintf(w, "transactions: %d begun with %s USD held, %d committed for %s USD and %s over, %d of them undone\n",
			t.begun, t.held, t.committed, t.spent, t.over, t.undone)
	}
	writeVerdict(w, f.audit, len(f.sessions)+f.started.ended)
}

// writeVerdict writes the first violations, the count of each broken rule, and the conclusion.
func writeVerdict(w io.Writer, a *audit, sessions int) {
	fmt.Fprintln(w)
	for _, v := range a.kept {
		fmt.Fprintln(w, v)
	}
	if more := a.total() - int64(len(a.kept)); more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
	for _, r := range a.broken() {
		fmt.Fprintf(w, "%8d × %s\n", a.counts[r], r)
	}
	unchecked := a.counts[ruleUnchecked]
	switch violations := a.total() - unchecked; {
	case violations > 0:
		fmt.Fprintf(w, "TOTALS DO NOT RECONCILE: %d violations, %d could not be checked\n", violations, unchecked)
	case unchecked > 0:
		fmt.Fprintf(w, "TOTALS ARE INCOMPLETE: no violations, %d could not be checked\n", unchecked)
	default:
		fmt.Fprintf(w, "totals of %d sessions reconcile\n", sessions)
	}
}

// brief formats d with about three digits.
func brief(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%dµs", d.Microseconds())
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.2fms", float64(d)/float64(time.Millisecond))
	case d < time.Second:
		return fmt.Sprintf("%.0fms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.2fs", d.Seconds())
}
