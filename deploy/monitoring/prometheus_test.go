package monitoring

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"remit/test/serviceproc"
	"remit/test/suite"
	"remit/test/tool"
)

const alertsFile = "../prometheus/alerts.yml"

type prometheus struct{ url string }

var listeningOn = regexp.MustCompile(`Listening on"?.* address=(127\.0\.0\.1:[1-9]\d*)`)

// startPrometheus starts a Prometheus with the alerts of deploy/prometheus. It scrapes the addresses five times per second.
func startPrometheus(t *testing.T, scrapes ...string) prometheus {
	t.Helper()
	dir := t.TempDir()
	alerts := suite.Must(filepath.Abs(alertsFile))(t)
	config := fmt.Sprintf(`
global: {scrape_interval: 200ms, scrape_timeout: 200ms, evaluation_interval: 200ms}
rule_files: [%q]
scrape_configs: [{job_name: remit, static_configs: [{targets: [%s]}]}]
`, alerts, strings.Join(scrapes, ", "))
	suite.NoError(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600))
	cmd := exec.Command("prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0")
	process := suite.Must(serviceproc.StartProcess(cmd))(t)
	t.Cleanup(func() { suite.NoError(t, process.Stop()) })
	var p prometheus
	err := process.Await(func() bool {
		found := listeningOn.FindStringSubmatch(process.Output())
		if found == nil {
			return false
		}
		p.url = "http://" + found[1]
		status, _ := get(t, p.url+"/-/ready")
		return status == http.StatusOK
	})
	suite.NoError(t, err)
	return p
}

// get returns the status and the body of a response. The status is 0 if there is none.
func get(t *testing.T, address string) (int, string) {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body := suite.Must(io.ReadAll(response.Body))(t)
	return response.StatusCode, string(body)
}

func (p prometheus) api(t *testing.T, path string, data any) error {
	t.Helper()
	status, body := get(t, p.url+"/api/v1/"+path)
	answer := struct {
		Error string
		Data  any
	}{Data: data}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		return fmt.Errorf("%s: %d %s", path, status, body)
	}
	if status != http.StatusOK {
		return fmt.Errorf("%s: %s", path, answer.Error)
	}
	return nil
}

// query returns the current values of a query. It skips NaN and infinities.
func (p prometheus) query(t *testing.T, query string) ([]float64, error) {
	t.Helper()
	var data struct {
		Result []struct{ Value [2]any }
	}
	if err := p.api(t, "query?query="+url.QueryEscape(query), &data); err != nil {
		return nil, err
	}
	var values []float64
	for _, series := range data.Result {
		text, _ := series.Value[1].(string)
		if value, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(value) && !math.IsInf(value, 0) {
			values = append(values, value)
		}
	}
	return values, nil
}

// alert is a rule with the result of its last evaluation.
type alert struct {
	Name, Query, State, Health, LastError string
	Annotations                           map[string]string
	Labels                                map[string]string
}

func (p prometheus) alerts(t *testing.T) []alert {
	t.Helper()
	var data struct {
		Groups []struct{ Rules []alert }
	}
	suite.NoError(t, p.api(t, "rules", &data))
	var all []alert
	for _, group := range data.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

func promtool(t *testing.T, input string, args ...string) {
	t.Helper()
	tool.Reads(t, "../prometheus")
	cmd := exec.Command("promtool", args...)
	cmd.Dir, cmd.Stdin = "../prometheus", strings.NewReader(input)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}
