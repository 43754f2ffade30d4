package docs

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"remit/internal/redisproc"
	"remit/test/serviceproc"
)

// The commands of docs/operations.md are run as they stand there, against servers of the tests' own.

// runbook returns the block of commands on the page that has this name in a comment above it.
func runbook(t *testing.T, name string) string {
	t.Helper()
	return shownOn(t, "docs/operations.md", "(?s)<!-- runbook: "+name+" -->\n```sh\n(.*?)```")[1]
}

// follow runs the commands of a runbook, which must all succeed.
func follow(t *testing.T, name string, variables ...string) {
	t.Helper()
	if output, err := carryOut(t.Context(), runbook(t, name), variables...); err != nil {
		t.Fatalf("%s: %v: %s", name, err, output)
	}
}

// carryOut runs commands until one fails, and returns what they print.
func carryOut(ctx context.Context, commands string, variables ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "sh", "-c", commands) // as if pasted: the commands must see to -eu themselves
	shell.Env = slices.Concat([]string{"PATH=" + os.Getenv("PATH")}, admin, variables)
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	shell.Cancel = func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) }
	shell.WaitDelay = time.Second // what it left running must not hold the test
	output, err := shell.CombinedOutput()
	return string(output), err
}

// redisServer is a server that redis-cli can reach.
type redisServer struct{ dir, port, url string }

// admin is the user of the page's commands. Only this user may run them.
var admin = []string{"ADMIN=admin", "REDISCLI_AUTH=of-the-admin"}

// newRedisServer starts one with the data of the directory, until the test ends. A copy for a replica starts at once.
func newRedisServer(t *testing.T, dir string) redisServer {
	t.Helper()
	port := freePort(t)
	server := must(redisproc.Start(t.Context(), redisproc.Config{Dir: dir, Fsync: "always",
		Args: []string{"--port", port, "--bind", "127.0.0.1", "--repl-diskless-sync-delay", "0",
			"--user", "admin", "on", ">of-the-admin", "~*", "&*", "+@all",
			"--user", "default", "on", "nopass", "~*", "&*", "+@all", "-config", "-replicaof", "-failover", "-sync"}}))(t)
	t.Cleanup(func() { _ = server.Stop() })
	return redisServer{dir, port, "redis://127.0.0.1:" + port}
}

func (s redisServer) serve(t *testing.T) string {
	t.Helper()
	return serviceproc.Run(t, "--redis-url", s.url, "--refresh-grace", "0s").URL
}

// estate is an organization with agents and sessions, and what its agents hold.
type estate struct {
	*serviceproc.Caller
	key map[string]string
}

func newEstate(t *testing.T, url string) estate {
	t.Helper()
	e := estate{&serviceproc.Caller{T: t, URL: url, Kept: map[string]string{}}, map[string]string{}}
	e.Keep("API key", "api_key", "/v1/organizations", nil, `{"name":"acme"}`)
	e.key["X-API-Key"] = e.Kept["API key"]
	return e
}

// newAgent creates an agent and returns its id; its secret is kept under the name.
func (e estate) newAgent(name string) string {
	e.T.Helper()
	return fmt.Sprint(e.Keep(name, "secret", "/v1/agents", e.key, `{"name":"scout","scopes":[]}`)["id"])
}

func (e estate) newSession(agent string) string {
	e.T.Helper()
	created := e.Keep("session", "id", "/sessions", e.key, fmt.Sprintf(`{"agent_id":%q,"max_actions":100000}`, agent))
	return "/sessions/" + fmt.Sprint(created["id"])
}

// exchange opens a family; its tokens are kept under the name.
func (e estate) exchange(status int, name, agent, secret string) {
	e.T.Helper()
	answer := e.want(status, http.MethodPost, "/v1/auth/token", nil, fmt.Sprintf(`{"agent_id":%q,"secret":%q}`, agent, e.Kept[secret]))
	e.Kept[name+" access"], e.Kept[name+" 1"] = fmt.Sprint(answer["access_token"]), fmt.Sprint(answer["refresh_token"])
}

// refresh spends a refresh token and keeps its successor.
func (e estate) refresh(status int, spent, successor string) {
	e.T.Helper()
	answer := e.want(status, http.MethodPost, "/v1/auth/refresh", nil, fmt.Sprintf(`{"refresh_token":%q}`, e.Kept[spent]))
	e.Kept[successor] = fmt.Sprint(answer["refresh_token"])
}

func (e estate) as(name string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + e.Kept[name+" access"]}
}

// want checks the status of a call, and returns its answer.
func (e estate) want(status int, method, path string, header map[string]string, body string) map[string]any {
	e.T.Helper()
	got, answer := e.Call(method, path, header, body)
	if got != status {
		e.T.Errorf("%s %s: %d %v, want %d", method, path, got, answer, status)
	}
	return answer
}

// A restored copy serves as it stood: what was revoked, spent and used then is so again, and what happened since is gone,
// as the page says.
func TestBackupsAreRestoredByTheCommandsOfThePage(t *testing.T) {
	t.Parallel()
	for _, way := range []struct {
		name    string
		backup  string
		restore func(t *testing.T, backup, dir string)
	}{
		{"a copy by redis-cli", "backup", func(t *testing.T, backup, dir string) {
			started := filepath.Join(dir, "restore.pid") // of the server that the commands start, and end if they succeed
			t.Cleanup(func() { _ = exec.Command("pkill", "-KILL", "-F", started).Run() })
			follow(t, "restore", "BACKUP="+backup, "DATA="+dir)
		}},
		{"the append-only file", "backup of the append-only file", func(t *testing.T, backup, dir string) {
			noError(t, os.Rename(filepath.Join(backup, "appendonlydir"), filepath.Join(dir, "appendonlydir")))
		}},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			server, backup, dir := newRedisServer(t, t.TempDir()), t.TempDir(), t.TempDir()
			e := newEstate(t, server.serve(t))
			scout, gone, later := e.newAgent("scout"), e.newAgent("gone"), e.newAgent("later")
			session, ended := e.newSession(scout), e.newSession(scout)
			e.exchange(200, "a", scout, "scout")
			e.exchange(200, "b", scout, "scout")
			e.refresh(200, "a 1", "a 2")
			keyed := e.as("a")
			keyed["Idempotency-Key"] = "once"
			e.want(200, http.MethodPost, session+"/actions", keyed, `{"count":3,"value_usd":1.5}`)
			e.want(200, http.MethodPost, ended+"/end", e.key, "")
			e.want(200, http.MethodPost, "/v1/agents/"+gone+"/revoke", e.key, "")

			follow(t, way.backup, "REDIS="+server.url, "BACKUP="+backup, "DATA="+server.dir)

			e.want(200, http.MethodPost, session+"/actions", e.as("a"), `{"count":2,"value_usd":1}`)
			e.want(200, http.MethodPost, "/v1/agents/"+later+"/revoke", e.key, "")
			e.refresh(200, "a 2", "a 3")
			e.refresh(200, "b 1", "b 2")

			way.restore(t, backup, dir)
			e.URL = newRedisServer(t, dir).serve(t)

			state := e.want(200, http.MethodGet, session, e.key, "")
			if state["action_count"] != 3.0 || state["value_used_usd"] != 1.5 || state["status"] != "active" {
				t.Errorf("the session is %v", state)
			}
			if state := e.want(200, http.MethodGet, ended, e.key, ""); state["status"] != "completed" {
				t.Errorf("the session that was ended is %v", state)
			}
			again := e.want(200, http.MethodPost, session+"/actions", keyed, `{"count":3,"value_usd":1.5}`)
			if again["action_count"] != 3.0 {
				t.Errorf("the keyed charge was done again: %v", again)
			}
			charged := e.want(200, http.MethodPost, session+"/actions", e.as("a"), `{}`)
			if charged["action_count"] != 4.0 {
				t.Errorf("a charge after the restore: %v", charged)
			}
			e.exchange(401, "gone", gone, "gone") // of an agent revoked before the copy
			e.refresh(200, "a 3", "a 4")          // by a token newer than the copy
			e.refresh(401, "a 1", "none")         // by a token spent before the copy
			e.refresh(401, "a 4", "none")         // after that reuse

			// What the page says to monitor.
			e.exchange(200, "later", later, "later") // of an agent revoked after the copy
			e.refresh(200, "b 1", "none")            // by a token spent after the copy
			e.want(200, http.MethodPost, "/v1/agents/"+later+"/revoke", e.key, "")
			e.exchange(401, "later", later, "later") // once it is revoked again
		})
	}
}

// Redis is exchanged for a new server while agents charge: what was acknowledged is there, and nothing twice.
func TestRedisMovesToANewServerByTheCommandsOfThePage(t *testing.T) {
	t.Parallel()
	from, to := newRedisServer(t, t.TempDir()), newRedisServer(t, t.TempDir())
	e := newEstate(t, from.serve(t))
	scout := e.newAgent("scout")
	session := e.newSession(scout)
	e.exchange(200, "a", scout, "scout")

	var output string
	moved := make(chan error, 1)
	commands := runbook(t, "move")
	go func() {
		var err error
		output, err = carryOut(t.Context(), commands, "OLD="+from.url, "OLD_HOST=127.0.0.1", "OLD_PORT="+from.port,
			"NEW="+to.url, "NEW_HOST=127.0.0.1", "NEW_PORT="+to.port)
		moved <- err
	}()
	var counted, unknown float64
	var err error
	for done := false; !done; {
		switch status, answer := e.Call(http.MethodPost, session+"/actions", e.as("a"), `{}`); {
		case status == 200:
			counted++
		case answer["code"] == "outcome_unknown":
			unknown++
		case answer["code"] != "unavailable":
			t.Fatalf("a charge: %d %v", status, answer)
		}
		select {
		case err = <-moved:
			done = true
		case <-time.After(time.Millisecond):
		}
	}
	if err != nil || !strings.HasSuffix(output, "master\n") {
		t.Fatalf("the new server is not the primary: %v: %s", err, output)
	}
	e.want(503, http.MethodPost, session+"/actions", e.as("a"), `{}`)
	e.want(503, http.MethodGet, session, e.as("a"), "") // a replica may not know yet of a revocation
	if detail := e.want(503, http.MethodGet, "/readyz", nil, "")["detail"]; detail != "Redis is a replica and refuses writes" {
		t.Errorf("readyz of the instance on the old server: %v", detail)
	}

	e.URL = to.serve(t)
	state := e.want(200, http.MethodGet, session, e.as("a"), "")
	if found := state["action_count"].(float64); found < counted || found > counted+unknown || counted == 0 {
		t.Errorf("%.0f actions, of %.0f acknowledged and %.0f of unknown outcome", found, counted, unknown)
	}
	e.want(200, http.MethodPost, session+"/actions", e.as("a"), `{}`)
	e.want(200, http.MethodGet, "/readyz", nil, "")
}
