package sdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"remit/test/serviceproc"
	"remit/test/tool"
)

// language is an SDK, and a program that makes every call with it.
type language struct {
	name    string // the heading of its column
	sources []string
	command []string
	env     []string
}

// step is the name of a call and its outcome, as the program prints them.
type step [2]string

// The three SDKs make the same calls. Each call sends the same request and has the same outcome in all of them.
func TestTheSDKsBehaveTheSame(t *testing.T) {
	t.Parallel()
	languages := buildAll(t)
	service := serviceproc.Run(t)
	target, err := url.Parse(service.URL)
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, scenario := range []struct {
		name   string
		answer http.Handler
	}{
		{"service", httputil.NewSingleHostReverseProxy(target)},
		{"contract", http.HandlerFunc(serveContract)},
		{"identity", httputil.NewSingleHostReverseProxy(target)},
		{"identity-contract", http.HandlerFunc(serveIdentity)},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			rows = append(rows, compareAll(t, languages, scenario.name, scenario.answer)...)
		})
	}
	checkTable(t, languages, rows)
}

// compareAll runs a scenario in all languages, and returns the names of its calls.
func compareAll(t *testing.T, languages []language, scenario string, answer http.Handler) (made []string) {
	t.Helper()
	var firstSteps []step
	var firstSent []string
	for i, l := range languages {
		steps, sent := l.run(t, scenario, answer)
		if i == 0 {
			firstSteps, firstSent = steps, sent
			for _, s := range steps {
				made = append(made, s[0])
			}
			continue
		}
		compare(t, l.name+": outcome", steps, firstSteps)
		compare(t, l.name+": request", sent, firstSent)
	}
	return made
}

// buildAll builds the programs. The test compares the others with the Go program, which comes first.
func buildAll(t *testing.T) []language {
	t.Helper()
	buildTypeScript(t)
	tool.Reads(t, "../test/same", "python/src")
	binary, err := serviceproc.Build("remit/test/same")
	if err != nil {
		t.Fatal(err)
	}
	packages, err := filepath.Abs("python/src")
	if err != nil {
		t.Fatal(err)
	}
	python := func(program string) []string {
		return []string{tool.Python(t), "-B", "-W", "error", "../test/same/" + program}
	}
	return []language{
		{"Go", []string{"../test/same/main.go", "../test/same/contract.go", "../test/same/fleet.go", "../test/same/follow.go", "../test/same/identity.go", "../test/same/prices.go", "../test/same/reports.go", "../test/same/served.go"}, []string{binary}, nil},
		{"TypeScript", []string{"typescript/test/same.ts", "typescript/test/sameidentity.ts"}, []string{tool.Path(t, "node"), "typescript/build/same.js"}, nil},
		{"Python", []string{"../test/same/same.py", "../test/same/identity.py"}, python("same.py"), []string{"PYTHONPATH=" + packages}},
		{"Python with asyncio", nil, python("awaited.py"), []string{"PYTHONPATH=" + packages}}, // the same program, and no column
	}
}

// run runs the program, and returns what it prints and the requests it sends.
func (l language) run(t *testing.T, scenario string, answer http.Handler) (steps []step, sent []string) {
	t.Helper()
	var mu sync.Mutex
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if isOfALease(r) {
			answer.ServeHTTP(w, r)
			return
		}
		mu.Lock()
		place := len(sent)
		sent = append(sent, normalized(r, body))
		mu.Unlock()
		told := &statusWriter{ResponseWriter: w}
		answer.ServeHTTP(told, r)
		if scenario == "service" && told.status == http.StatusServiceUnavailable { // of a busy machine: it is sent again
			mu.Lock()
			sent[place] = ""
			mu.Unlock()
		}
	}))
	defer front.Close()
	command := exec.CommandContext(t.Context(), l.command[0], append(l.command[1:], scenario)...)
	command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "REMIT_ADDR=" + front.URL}, l.env...)
	var problems bytes.Buffer
	command.Stderr = &problems
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", l.name, err, problems.Bytes())
	}
	if err := json.Unmarshal(output, &steps); err != nil || len(steps) < 10 {
		t.Fatalf("%s prints %s: %v", l.name, output, err)
	}
	mu.Lock()
	defer mu.Unlock()
	return steps, slices.DeleteFunc(slices.Clone(sent), func(request string) bool { return request == "" })
}

// statusWriter keeps the status of an answer, whose parts it hands on at once.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

var (
	anID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	// To the service an omitted field and its default are the same. Credentials differ from run to run.
	defaults = map[string]any{"value_usd": 0.0, "count": 1.0, "reversible": true}
	varying  = []string{"secret", "refresh_token", "token", "client_assertion", "subject_token", "jwks"}
)

// isOfALease reports whether a request may be one that a lease sends by itself. Their number and sizes follow the pace of the
// charges, which differs from run to run. A lease also reads its session, with the token of an agent.
func isOfALease(r *http.Request) bool {
	reads := r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/v1/sessions/") && r.Header.Get("Authorization") != ""
	return reads || strings.HasSuffix(r.URL.Path, "/leases") || strings.HasSuffix(r.URL.Path, "/settle")
}

// normalized returns the part of a request that must be the same in all SDKs: its method, path and body, and its idempotency
// key, where a random key counts only as present.
func normalized(r *http.Request, body []byte) string {
	key := r.Header.Get("Idempotency-Key")
	if len(key) >= 32 {
		key = "random"
	}
	if r.Header.Get("DPoP") != "" {
		scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		key += " proof:" + scheme
	}
	var members map[string]any
	if r.Header.Get("Content-Type") == "application/x-www-form-urlencoded" {
		members = membersOf(body)
	} else if len(body) > 0 && json.Unmarshal(body, &members) != nil {
		return "no JSON: " + string(body)
	}
	if r.Method != http.MethodPatch {
		withoutDefaults(members)
	}
	for _, name := range varying {
		if members[name] != nil {
			members[name] = "…"
		}
	}
	if charges, ok := members["actions"].([]any); ok {
		for _, charge := range charges {
			withoutDefaults(charge.(map[string]any))
		}
	}
	sorted, _ := json.Marshal(members)
	return anID.ReplaceAllString(fmt.Sprintf("%s %s %s key:%s", r.Method, r.URL.Path, sorted, key), "ID")
}

// membersOf returns the parameters of a form.
func membersOf(form []byte) map[string]any {
	members := map[string]any{}
	parameters, err := url.ParseQuery(string(form))
	if err != nil {
		members["error"] = err.Error()
	}
	for name, values := range parameters {
		if members[name] = values[0]; len(values) > 1 || name == "resource" {
			members[name] = values
		}
	}
	return members
}

func withoutDefaults(members map[string]any) {
	for name, value := range defaults {
		if members[name] == value {
			delete(members, name)
		}
	}
}

// compare reports only the first difference, because it often causes the others.
func compare[T any](t *testing.T, what string, got, want []T) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("%s lacks %v", what, want[i])
		case i >= len(want):
			t.Errorf("%s has the extra %v", what, got[i])
		case !reflect.DeepEqual(got[i], want[i]):
			t.Errorf("%s is %v, want %v", what, got[i], want[i])
		default:
			continue
		}
		return
	}
}

// checkTable checks the table of docs/sdks.md against the programs: each row is a call, and the program of each column uses the
// names in it.
func checkTable(t *testing.T, languages []language, made []string) {
	t.Helper()
	page, err := os.ReadFile("../docs/sdks.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		call := strings.TrimSpace(cells[0])
		if rows++; !slices.Contains(made, call) {
			t.Errorf("docs/sdks.md has a row for %q, which no program does", call)
		}
		for i, l := range languages[:len(cells)-1] {
			for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[i+1], -1) {
				if used := lastWord.FindString(name[1]); !l.uses(t, used) {
					t.Errorf("docs/sdks.md, %s: the program in %s does not use %s", call, l.name, name[1])
				}
			}
		}
	}
	if rows == 0 {
		t.Error("docs/sdks.md has no table of calls")
	}
}

// lastWord matches the method's name in Organization.CreateAgent or session.begin(params, work).
var lastWord = regexp.MustCompile(`[A-Za-z_]+(?:\(|$)`)

func (l language) uses(t *testing.T, name string) bool {
	t.Helper()
	name = strings.TrimSuffix(name, "(")
	for _, file := range l.sources {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`).Match(text) {
			return true
		}
	}
	return false
}
