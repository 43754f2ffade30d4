package service

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// operate runs `remit organizations …` on a Redis and returns what it printed, and its exit status.
func operate(t *testing.T, redisURL string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := command(t, append([]string{"organizations"}, args...)...)
	cmd.Env = append(cmd.Env, "REMIT_REDIS_URL="+redisURL)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func operated(t *testing.T, redisURL string, args ...string) string {
	t.Helper()
	stdout, stderr, status := operate(t, redisURL, args...)
	if status != 0 {
		t.Fatalf("organizations %v: exit %d: %s", args, status, stderr)
	}
	return stdout
}

// becomes waits until the condition holds. Instances read the operator's settings every two seconds.
func becomes(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in 20 s: %s", what)
		}
	}
}

func TestTheOperatorSuspendsRekeysAndDeletesAnOrganization(t *testing.T) {
	t.Parallel()
	url := startRedis(t)
	env := []string{"REMIT_REDIS_URL=" + url}
	instances := []*program{start(t, env).ready(t), start(t, env).ready(t)}
	id, key := instances[0].createOrganization(t)
	otherID, otherKey := instances[0].createOrganization(t)
	instances[0].createAgent(t, key)
	onAll := func(what string, holds func(p *program) bool) {
		t.Helper()
		for _, p := range instances {
			becomes(t, what, func() bool { return holds(p) })
		}
	}

	listed := operated(t, url, "list")
	if !regexp.MustCompile(`(?m)^`+id+`  acme  active  .*  1  +0  +0$`).MatchString(listed) || !strings.Contains(listed, otherID) {
		t.Errorf("list: %s", listed)
	}
	operated(t, url, "suspend", id)
	onAll("the key is refused", func(p *program) bool { return p.organizationStatus(t, id, key) == http.StatusForbidden })
	var shown struct{ Status, Name string }
	if err := json.Unmarshal([]byte(operated(t, url, "show", id, "--json")), &shown); err != nil || shown.Status != "suspended" || shown.Name != "acme" {
		t.Errorf("show: %+v, %v", shown, err)
	}
	late := start(t, env).ready(t) // an instance that starts now refuses it from its first request on
	is(t, "a new instance", late.organizationStatus(t, id, key), http.StatusForbidden)
	operated(t, url, "resume", id)
	onAll("the key is accepted", func(p *program) bool { return p.organizationStatus(t, id, key) == http.StatusOK })

	fresh := regexp.MustCompile(`rmk_\w+`).FindString(operated(t, url, "new-key", id))
	if old, now := instances[1].organizationStatus(t, id, key), instances[1].organizationStatus(t, id, fresh); old != 401 || now != 200 {
		t.Errorf("after new-key the old one answers %d, the new one %d", old, now)
	}

	stdout, stderr, status := operate(t, url, "delete", id)
	if status != 1 || stdout != "" || !strings.Contains(stderr, "--yes") {
		t.Errorf("delete without --yes: %d %s %s", status, stdout, stderr)
	}
	if deleted := operated(t, url, "delete", id, "--yes"); !strings.Contains(deleted, id+" is deleted") {
		t.Errorf("delete: %s", deleted)
	}
	if listed := operated(t, url, "list"); strings.Contains(listed, id) || !strings.Contains(listed, otherID) {
		t.Errorf("after the deletion: %s", listed)
	}
	onAll("the key of the deleted one is unknown", func(p *program) bool { return p.organizationStatus(t, id, fresh) == http.StatusUnauthorized })
	is(t, "the other organization", instances[0].organizationStatus(t, otherID, otherKey), http.StatusOK)
	for _, p := range append(instances, late) {
		if strings.Contains(p.Stderr(), fresh) {
			t.Error("the new key is logged")
		}
	}
}

func TestTheOperatorSetsQuotas(t *testing.T) {
	t.Parallel()
	url := startRedis(t)
	p := start(t, []string{"REMIT_REDIS_URL=" + url}).ready(t)
	id, key := p.createOrganization(t)
	p.createAgent(t, key)
	shown := operated(t, url, "quota", id, "agents=1,bytes=1000000")
	if !regexp.MustCompile(`(?m)^agents +1 +1$`).MatchString(shown) || !regexp.MustCompile(`(?m)^bytes +\d+ +1000000$`).MatchString(shown) {
		t.Errorf("quota prints %s", shown)
	}
	create := func() int {
		var answer map[string]any
		return p.post(t, "/v1/agents", key, `{"name":"n","scopes":[]}`, &answer)
	}
	becomes(t, "another agent is refused", func() bool { return create() == http.StatusForbidden })
	quotas := func() map[string]int64 {
		var document struct{ Quotas, Usage map[string]int64 }
		if err := json.Unmarshal([]byte(operated(t, url, "quota", id, "--json")), &document); err != nil || document.Usage["agents"] == 0 {
			t.Errorf("%+v, %v", document, err)
		}
		return document.Quotas
	}
	if got := quotas()["agents"]; got != 1 {
		t.Errorf("the quota of agents is %d, want 1", got)
	}
	operated(t, url, "quota", id, "agents=default")
	becomes(t, "another agent is created", func() bool { return create() == http.StatusCreated })
	before := quotas() // what else cannot be read is in redisstore: TestParseQuotasReadsPairsAndRefusesEverythingElse
	if _, stderr, status := operate(t, url, "quota", id, "agents=-1"); status != 1 || strings.Count(stderr, "\n") != 1 || !maps.Equal(quotas(), before) {
		t.Errorf("exit %d: %s; %v became %v", status, stderr, before, quotas())
	}
}

func TestOrganizationCommandsRejectUnknownIds(t *testing.T) {
	t.Parallel()
	url := startRedis(t)
	p := start(t, []string{"REMIT_REDIS_URL=" + url}).ready(t)
	p.createOrganization(t)
	_ = p.stop(t) // an instance at work writes, if only what says that it is ready
	before := everythingIn(t, url)
	for _, command := range [][]string{
		{"show"}, {"suspend"}, {"resume"}, {"delete", "--yes"}, {"delete"}, {"new-key"}, {"new-key", "--grace=1h"},
	} {
		for what, test := range map[string]struct{ id, reason string }{
			"unknown":   {"018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1", "no such organization"},
			"malformed": {"018f3c2a", `"018f3c2a" is not an organization id`},
			"in braces": {"{018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1}", "is not an organization id"},
		} {
			stdout, stderr, status := operate(t, url, append(command, test.id)...)
			if status != 1 || stdout != "" || !strings.HasPrefix(stderr, "remit: ") || !strings.Contains(stderr, test.reason) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%v, %s: exit %d, printed %q and %q", command, what, status, stdout, stderr)
			}
		}
	}
	if after := everythingIn(t, url); after != before {
		t.Errorf("%s became %s", before, after)
	}
}

// At a terminal the command asks for the organization's name instead of --yes.
func TestDeletionAtATerminalAsksForTheOrganizationsName(t *testing.T) {
	t.Parallel()
	url := startRedis(t)
	p := start(t, []string{"REMIT_REDIS_URL=" + url}).ready(t)
	id, key := p.createOrganization(t)
	typing := func(name string) (string, int) {
		cmd := command(t, "organizations", "delete", id)
		cmd.Env = append(cmd.Env, "REMIT_REDIS_URL="+url)
		terminal := must(pty.Start(cmd))(t)
		defer terminal.Close()
		must(terminal.WriteString(name + "\n"))(t)
		shown, _ := io.ReadAll(terminal) // ends with an error when the other side has closed, on Linux
		_ = cmd.Wait()                   // its status says more
		return string(shown), cmd.ProcessState.ExitCode()
	}
	if shown, status := typing("ACME"); status != 1 || !strings.Contains(shown, "the name does not match; nothing was changed") {
		t.Errorf("a wrong name: exit %d, %s", status, shown)
	}
	is(t, "after a wrong name the organization", p.organizationStatus(t, id, key), http.StatusOK)
	if shown, status := typing("acme"); status != 0 || !strings.Contains(shown, id+" is deleted") {
		t.Errorf("its name: exit %d, %s", status, shown)
	}
}

var bootstrapLine = regexp.MustCompile(`\brmb_\w+`)

// bootstrapTokens returns the bootstrap tokens that a program has printed, once it has ended.
func (p *program) bootstrapTokens(t *testing.T) []string {
	t.Helper()
	_ = p.stop(t)
	if strings.Contains(p.Stderr(), "rmb_") {
		t.Errorf("the bootstrap token is logged: %s", p.Stderr())
	}
	return bootstrapLine.FindAllString(p.Stdout(), -1)
}

// Instances that start concurrently on an empty Redis agree on one token, and one of them prints it. Later ones print none.
func TestPublicServicesPrintOneBootstrapTokenOnceAndRequireIt(t *testing.T) {
	t.Parallel()
	url := startRedis(t)
	env := []string{"REMIT_REDIS_URL=" + url, "REMIT_LISTEN=0.0.0.0:0", "REMIT_ACCESS_LOG=all"}
	var instances []*program
	for range 3 {
		instances = append(instances, start(t, env))
	}
	made := ""
	for _, p := range instances {
		made = cmp.Or(made, bootstrapLine.FindString(p.ready(t).Stdout()))
	}
	later := start(t, env).ready(t)
	with := func(p *program, token string) int {
		response, _ := p.create(t, "Authorization", "Bearer "+token)
		return response.StatusCode
	}
	if response, body := later.create(t); response.StatusCode != http.StatusUnauthorized {
		t.Errorf("without the token: %s %s", response.Status, body)
	}
	for _, p := range append(instances, later) {
		is(t, "with the token", with(p, made), http.StatusCreated)
	}
	fresh := strings.TrimSpace(operated(t, url, "new-bootstrap-token"))
	becomes(t, "the new token creates", func() bool { return with(later, fresh) == http.StatusCreated })
	is(t, "with the token of before", with(later, made), http.StatusUnauthorized)
	if strings.Contains(later.Stdout(), "Try it") {
		t.Error("the quickstart of an open service is printed")
	}
	printed := 0
	for _, p := range instances {
		printed += len(p.bootstrapTokens(t))
	}
	again := start(t, env).ready(t)
	if late := append(later.bootstrapTokens(t), again.bootstrapTokens(t)...); printed != 1 || len(late) != 0 {
		t.Errorf("the first instances printed %d tokens, later ones %q", printed, late)
	}
}
