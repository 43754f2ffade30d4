package monitoring

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"remit/test/serviceproc"
	"remit/test/suite"
)

func TestMain(m *testing.M) { os.Exit(serviceproc.Tests{M: m}.Run()) }

// A service and a gateway produce every metric except a panic. Then Prometheus must have every series that the dashboard, the alerts and the
// pages name.
func TestDashboardAlertsAndPagesMatchTheMetrics(t *testing.T) {
	t.Parallel()
	s := startService(t)
	address := suite.Must(url.Parse(s.metrics))(t)
	p := startPrometheus(t, address.Host, strings.TrimPrefix(s.gateway, "http://"))
	// Prometheus must scrape the counters at 0 first, because rates need two values.
	eventually(t, "both are scraped", func() bool {
		values, err := p.query(t, `remit_shed_total`)
		return err == nil && len(values) == 2
	})
	s.waitForEvents()
	t.Cleanup(s.beginCall("endless=1,pace=50"))
	s.work()
	s.freeze()
	// A queue that has just seen Redis stall is short for a while: it sheds what it expects to be late.
	eventually(t, "nothing is shed any more", s.acceptsBurst)
	s.work()
	s.flood()
	service, gateway := s.scrape(s.metrics), s.scrape(s.gateway+"/metrics")

	t.Run("dashboard", func(t *testing.T) { everyQueryReturnsData(t, p) })
	t.Run("annotations and variables", func(t *testing.T) { theRestOfTheDashboardIsWellFormed(t, p) })
	t.Run("alerts", func(t *testing.T) { theAlertsAreEvaluated(t, p) })
	t.Run("names", func(t *testing.T) { everyNameIsOfAMetric(t, service, gateway) })
	t.Run("promtool check metrics", func(t *testing.T) {
		promtool(t, service, "check", "metrics")
		promtool(t, gateway, "check", "metrics")
	})
}

func TestPromtoolAcceptsTheConfiguration(t *testing.T) {
	t.Parallel()
	promtool(t, "", "check", "config", "prometheus.yml")
	promtool(t, "", "check", "rules", "alerts.yml")
	if suite.Long { // it plays hours of many series
		promtool(t, "", "test", "rules", "alerts_test.yml")
	}
}

func (s *service) scrape(url string) string {
	s.Helper()
	status, body := get(s.T, url)
	if status != http.StatusOK {
		s.Fatalf("%d %s", status, body)
	}
	return body
}

var eventually = suite.Eventually

// dashboard is the part of Grafana's format that the tests read.
type dashboard struct {
	Annotations struct{ List []struct{ Name, Expr string } }
	Templating  struct{ List []struct{ Name, Type string } }
	Panels      []struct {
		ID          int
		Type, Title string
		Description string
		Datasource  struct{ UID string }
		Targets     []struct{ Expr, LegendFormat string }
	}
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	var d dashboard
	suite.NoError(t, json.Unmarshal([]byte(read(t, "../grafana/remit.json")), &d))
	return d
}

func read(t *testing.T, file string) string {
	t.Helper()
	return string(suite.Must(os.ReadFile(file))(t))
}

// filled replaces the variables of a query like Grafana: all instances, and a rate over the whole test.
var filled = strings.NewReplacer("$__rate_interval", "2m", "$instance", ".*", "$job", ".*")

// mayBe0 are the series that the test does not produce, or only for a moment.
var mayBe0 = []string{"panics", "lost", "missed", "stale", "timeout", "stalled", "{{queue}} waiting", "{{queue}} in flight"}

type query struct{ panel, expr, legend string }

func everyQueryReturnsData(t *testing.T, p prometheus) {
	missing := readDashboard(t).queries(t)
	if len(missing) < 50 {
		t.Errorf("only %d queries: the test no longer finds them", len(missing))
	}
	for deadline := time.Now().Add(20 * time.Second); len(missing) > 0 && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		missing = slices.DeleteFunc(missing, func(q query) bool { return q.hasData(t, p) })
	}
	for _, q := range missing {
		t.Errorf("%s has no data for %s", q.panel, q.expr)
	}
}

// hasData reports whether the query returns a value above 0, or any value if it may be 0.
func (q query) hasData(t *testing.T, p prometheus) bool {
	t.Helper()
	values := suite.Must(p.query(t, filled.Replace(q.expr)))(t)
	moved := slices.ContainsFunc(values, func(v float64) bool { return v > 0 })
	return len(values) > 0 && (moved || slices.Contains(mayBe0, q.legend))
}

// queries returns the queries of all panels. It fails the test if a panel is incomplete.
func (d dashboard) queries(t *testing.T) (all []query) {
	t.Helper()
	ids := map[int]bool{}
	for _, panel := range d.Panels {
		if ids[panel.ID] {
			t.Errorf("%s has the id of another panel", panel.Title)
		}
		ids[panel.ID] = true
		if panel.Type != "row" && (panel.Datasource.UID != "${datasource}" || panel.Description == "" || len(panel.Targets) == 0) {
			t.Errorf("%s lacks the templated data source, a description or a query", panel.Title)
		}
		for _, target := range panel.Targets {
			all = append(all, query{panel.Title, target.Expr, target.LegendFormat})
		}
	}
	return all
}

func theRestOfTheDashboardIsWellFormed(t *testing.T, p prometheus) {
	d := readDashboard(t)
	for _, annotation := range d.Annotations.List {
		if _, err := p.query(t, filled.Replace(annotation.Expr)); err != nil {
			t.Errorf("%s: %v", annotation.Name, err)
		}
	}
	for _, variable := range []string{"datasource", "job", "instance"} {
		if !slices.ContainsFunc(d.Templating.List, func(v struct{ Name, Type string }) bool { return v.Name == variable }) {
			t.Errorf("the dashboard has no variable %s", variable)
		}
	}
}

func theAlertsAreEvaluated(t *testing.T, p prometheus) {
	firing := func() []string {
		var names []string
		for _, a := range p.alerts(t) {
			if a.Health != "ok" || a.LastError != "" {
				t.Errorf("%s: %s %s", a.Name, a.Health, a.LastError)
			}
			if a.State == "firing" {
				names = append(names, a.Name)
			}
		}
		return names
	}
	for _, due := range []string{"RemitTokenReused", "RemitOutcomeUnknown"} { // the others have a longer for:
		eventually(t, due+" fires", func() bool { return slices.Contains(firing(), due) })
	}

	operations := read(t, "../../docs/operations.md")
	for _, a := range p.alerts(t) {
		if runbook := a.Annotations["runbook_url"]; !strings.HasPrefix(runbook, "https://docs.example.com/operations.md#") { // test/docs follows it
			t.Errorf("%s: its runbook is %q", a.Name, runbook)
		}
		if !strings.Contains(operations, "`"+a.Name+"`") {
			t.Errorf("docs/operations.md does not name %s", a.Name)
		}
		if a.Annotations["summary"] == "" || a.Annotations["description"] == "" || !slices.Contains([]string{"critical", "warning"}, a.Labels["severity"]) {
			t.Errorf("%s lacks its summary, description or severity", a.Name)
		}
		if !strings.Contains(read(t, "../prometheus/alerts_test.yml"), "alertname: "+a.Name+"\n") {
			t.Errorf("alerts_test.yml does not test %s", a.Name)
		}
	}
}

var (
	metricName = regexp.MustCompile(`\b(?:remit|go|process)_[a-z][a-z0-9_]*\b`)
	ofAPart    = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// everyNameIsOfAMetric also checks the queries that have not run: those of alerts that do not fire, and of variables.
func everyNameIsOfAMetric(t *testing.T, service, gateway string) {
	there, parser := map[string]*dto.MetricFamily{}, expfmt.NewTextParser(model.LegacyValidation)
	for _, scrape := range []string{service, gateway} {
		maps.Copy(there, suite.Must(parser.TextToMetricFamilies(strings.NewReader(scrape)))(t))
	}
	for _, file := range []string{alertsFile, "../grafana/remit.json", "../prometheus/alerts_test.yml", "../../docs/operations.md", "../../docs/metrics.md"} {
		for _, name := range metricName.FindAllString(read(t, file), -1) {
			if there[name] == nil && there[ofAPart.ReplaceAllString(name, "")] == nil {
				t.Errorf("%s: the metric %s does not exist", file, name)
			}
		}
	}
}
