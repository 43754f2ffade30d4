package server_test

import (
	"errors"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"remit/server"
	"remit/test/suite"
)

// slowhttptest is a tool of attackers and of those who expect them: it opens connections and keeps each as busy as it can
// with as little as it can. In the long run this attacks the server with the timeouts that it ships with, and takes half a
// minute at the most. Nothing else runs meanwhile: all connections of an attack must be open before the first is given up.
func TestSlowhttptestDoesNotKeepOthersFromBeingServed(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	tool, err := exec.LookPath("slowhttptest")
	if err != nil {
		t.Fatal("slowhttptest is not installed; scripts/install-tools.sh installs it")
	}
	// An attack lasts well longer than the read timeout, so that connections are seen to be closed by it; and that is longer than
	// the 5 s between two reports.
	lasts, timeout := 12, 6*time.Second
	on := newPreparedTarget(t, func(s *server.Server) { s.SetTimeouts(timeout, timeout, timeout) })
	if suite.Long {
		on, lasts = newTarget(t, nil), 25 // with what it ships with: 10 s
	}
	url := "http://" + on.on.address
	attacks := map[string][]string{
		"slow headers": {"-H", "-i", "2", "-t", "GET", "-u", url + "/v1/agents"},
		"slow body":    {"-B", "-i", "2", "-s", "8192", "-t", "POST", "-f", "application/json", "-u", url + "/v1/auth/token"},
		"slow read":    {"-X", "-n", "1", "-z", "5", "-w", "1", "-y", "2", "-k", "10", "-u", url + "/healthz"},
	}
	ended := make(chan struct{})
	var attacking sync.WaitGroup
	for name, arguments := range attacks {
		attacking.Go(func() {
			arguments := append(arguments, "-c", "200", "-r", "200", "-l", strconv.Itoa(lasts), "-p", "8")
			output, err := exec.CommandContext(t.Context(), tool, arguments...).CombinedOutput()
			// It exits with 0 when its time is over, and with 1 when all connections are closed.
			if exit := (&exec.ExitError{}); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) {
				t.Errorf("%s: %v", name, err)
			}
			wantHarmless(t, name, name != "slow read", string(output))
		})
	}
	go func() { attacking.Wait(); close(ended) }()
	if served := on.serveUntil(t, ended); served < lasts {
		t.Errorf("only %d honest requests were served", served)
	}
}

// serveUntil charges a session again and again, as an honest client does, each time on a connection of its own.
func (on target) serveUntil(t *testing.T, ended <-chan struct{}) (served int) {
	t.Helper()
	for {
		select {
		case <-ended:
			return served
		default:
		}
		answers, text := on.exchange(t, on.credentials.Fill("POST /sessions/{session}/actions HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"), false)
		wantStatuses(t, answers, text, 200, 200)
		served++
		time.Sleep(20 * time.Millisecond) // a client, not a load
	}
}

var (
	colours   = regexp.MustCompile(`\x1b\[[0-9;]*m`)
	connected = regexp.MustCompile(`connected: +(\d+)`)
	available = regexp.MustCompile(`service available: +(\w+)`)
)

// wantHarmless reads the reports that slowhttptest prints every few seconds.
func wantHarmless(t *testing.T, name string, mustClose bool, output string) {
	t.Helper()
	output = colours.ReplaceAllString(output, "")
	reports := available.FindAllStringSubmatch(output, -1)
	if len(reports) < 2 {
		t.Errorf("%s: %d reports:\n%s", name, len(reports), output)
	}
	for _, report := range reports {
		wantEqual(t, name+": service available", report[1], "YES")
	}
	most, last := 0, 0
	for _, report := range connected.FindAllStringSubmatch(output, -1) {
		last = must(strconv.Atoi(report[1]))(t)
		most = max(most, last)
	}
	if most < 150 { // of 200: a busy machine may not let it open all of them, or not in time
		t.Errorf("%s: it never had more than %d connections: the test proves nothing\n%s", name, most, output)
	}
	// It goes on to its end when there is a connection that it could not open.
	if mustClose && last > 0 && !strings.Contains(output, "Exit status: No open connections left") {
		t.Errorf("%s: not every connection was closed:\n%s", name, output)
	}
}
