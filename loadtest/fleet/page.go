package fleet

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"runtime"
	"strings"

	"remit/internal/chart"
)

//go:embed page.html.tmpl
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// page is the data of the template.
type page struct {
	Scenario, When, About string
	Verdict               string
	Reconciled            bool
	Charts                []template.HTML
	DarkCharts            template.CSS
	Storm, Lag            string
	Operations            []operationRow
	Kinds                 []counted
	Totals                string
	Settings              []setting
}

type setting struct{ Name, Value string }

// writePage returns the report of a run: one page of HTML without external resources.
func writePage(r result) ([]byte, error) {
	f := r.fleet
	p := page{
		Scenario: string(f.cfg.scenario), When: r.began.UTC().Format("2 January 2006, 15:04 UTC"), About: about(f.cfg),
		Operations: f.operationRows(), Settings: settingsOf(r), Lag: lagOf(f), Storm: stormOf(f),
		Kinds: f.stats.kinds.sorted(), DarkCharts: template.CSS(chart.DarkCSS()), //nolint:gosec // it is constant
	}
	var totals strings.Builder
	if r.unchecked != nil {
		p.Verdict = "The totals were not checked: " + r.unchecked.Error()
	} else {
		writeTotals(&totals, f)
		lines := strings.Split(strings.TrimSpace(totals.String()), "\n")
		p.Verdict, p.Reconciled = capital(lines[len(lines)-1])+".", f.audit.clean()
	}
	p.Totals = strings.TrimSpace(totals.String())
	var err error
	if p.Charts, err = drawCharts(r); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := pageTemplate.Execute(&out, p); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

var scenarioInWords = map[scenario]string{
	steady: "Actions arrive evenly.",
	burst:  "Actions arrive at a low rate, and at five times that rate in every fifth time slot.",
	storm:  "Actions arrive evenly; half-way through, the access tokens of all agents expire at once.",
	mixed: "A realistic mix arrives evenly: charges, reads, verification by a proxy, transactions, batches, refreshes, " +
		"exchanges, sessions created and ended, lists.",
	leased: "Charges arrive evenly, each for the lease of its session.",
	trees: "A mix of requests arrives evenly for trees of sessions under a budget: charges, transactions, children created, top-ups, " +
		"ends, reads of a tree.",
}

// about describes in a sentence or two what arrives.
func about(cfg config) string {
	if cfg.rate > 0 {
		return scenarioInWords[cfg.scenario]
	}
	return strings.NewReplacer("arrives evenly", "is requested as fast as the service answers",
		"arrive evenly", "are requested as fast as the service answers").Replace(scenarioInWords[cfg.scenario])
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// settingsOf returns the flags of a run and the size of the machine.
func settingsOf(r result) []setting {
	cfg := r.fleet.cfg
	target := "a running service on this machine"
	if r.own {
		target = "started for this run, with its own Redis and an append-only file synced every second"
	}
	transactions := fmt.Sprintf("%d %% of the actions", cfg.transactions)
	switch cfg.scenario {
	case mixed, trees:
		transactions = "as in the mix"
	case leased:
		transactions = "none"
	}
	keys := "off; each request is sent once"
	if cfg.keys {
		keys = "on; writes are repeated when their answer is lost"
	}
	machine := fmt.Sprintf("%d cores", runtime.NumCPU())
	if bytes := memory(); bytes > 0 {
		machine += fmt.Sprintf(", %.0f GiB of memory", float64(bytes)/(1<<30))
	}
	return []setting{
		{"scenario", string(cfg.scenario)}, {"agents", fmt.Sprint(cfg.agents)},
		{"sessions", fmt.Sprintf("%d per agent", cfg.sessions)}, {"pace", pace(cfg)}, {"duration", cfg.duration.String()},
		{"transactions", transactions}, {"idempotency keys", keys}, {"service", target},
		{"machine", machine + ", shared by the load generator, the service and Redis"},
	}
}
