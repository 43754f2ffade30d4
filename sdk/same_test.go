package sdk

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
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
	name    string
	command []string
	env     []string
}

// step is the name of a call and its outcome, as the program prints them.
type step [2]string

// scenario is what a program is to do with the service, or with a test that plays it.
type scenario struct {
	name   string
	answer http.Handler
	loses  []string // methods of requests whose first answer is lost, if they succeed
}

var update = flag.Bool("update", false, "write the traces in testdata/same as the Go SDK makes them")

// The three SDKs make the same calls. Each call sends the request and has the outcome that the scenario's trace names, also where
// each first answer is lost.
func TestTheSDKsBehaveTheSame(t *testing.T) {
	t.Parallel()
	languages := buildAll(t)
	service := serviceproc.Run(t)
	target := must(url.Parse(service.URL))(t)
	for _, s := range []scenario{
		{"service", httputil.NewSingleHostReverseProxy(target), []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch}},
		{"contract", http.HandlerFunc(serveContract), []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}},
		{"identity", httputil.NewSingleHostReverseProxy(target), nil}, // an assertion and a proof are good for one attempt
		{"identity-contract", http.HandlerFunc(serveIdentity), nil},
	} {
		t.Run(s.name, func(t *testing.T) { compareAll(t, languages, s) })
	}
}

func compareAll(t *testing.T, languages []language, s scenario) {
	t.Helper()
	file := filepath.Join("testdata", "same", s.name+".txt")
	for i, l := range languages {
		steps, sent := l.run(t, s)
		var trace []string
		for _, one := range steps {
			trace = append(trace, strings.TrimRight(one[0]+" → "+one[1], " "))
		}
		trace = append(append(trace, ""), sent...)
		if *update && i == 0 {
			noError(t, os.WriteFile(file, []byte(strings.Join(trace, "\n")+"\n"), 0o644))
		}
		text := must(os.ReadFile(file))(t)
		compare(t, l.name, trace, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"))
	}
}

// buildAll builds the programs. The test compares the others with the Go program, which comes first.
func buildAll(t *testing.T) []language {
	t.Helper()
	build(t, typeScriptDir)
	tool.Reads(t, "../test/same", "python/src")
	binary := must(serviceproc.Build("remit/test/same"))(t)
	packages := must(filepath.Abs("python/src"))(t)
	python := func(program string) []string {
		return []string{tool.Python(t), "-B", "-W", "error", "../test/same/" + program}
	}
	return []language{
		{"Go", []string{binary}, nil},
		{"TypeScript", []string{tool.Path(t, "node"), "typescript/build/same.js"}, nil},
		{"Python", python("same.py"), []string{"PYTHONPATH=" + packages}},
		{"Python with asyncio", python("awaited.py"), []string{"PYTHONPATH=" + packages}}, // the same program
	}
}

// run runs the program, and returns what it prints and the requests it sends. A request whose first answer is lost counts once.
func (l language) run(t *testing.T, s scenario) (steps []step, sent []string) {
	t.Helper()
	var mu sync.Mutex
	lost := map[string]bool{}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if isOfALease(r) {
			s.answer.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		s.answer.ServeHTTP(answer, r)
		attempt := fmt.Sprint(r.Method, r.URL, r.Header.Get("Idempotency-Key"), string(body))
		mu.Lock()
		again := lost[attempt]
		lose := slices.Contains(s.loses, r.Method) && !again && answer.Code < 300
		lost[attempt] = again || lose
		if !again && (s.name != "service" || answer.Code != http.StatusServiceUnavailable) { // 503: of a busy machine, it is sent again
			sent = append(sent, normalized(r, body))
		}
		mu.Unlock()
		if lose {
			panic(http.ErrAbortHandler)
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()) // fails only when the program is gone
	}))
	defer front.Close()
	command := exec.CommandContext(t.Context(), l.command[0], append(l.command[1:], s.name)...)
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
	return steps, slices.Clone(sent)
}

var (
	anID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9]{13}-[0-9]+`) // the second of an event
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

// normalized returns the part of a request that must be the same in all SDKs: its method, path, query and body, and its idempotency
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
	place := r.URL.EscapedPath()
	if query := r.URL.Query().Encode(); query != "" {
		place += "?" + query
	}
	if key != "" {
		key = " key:" + key
	}
	return anID.ReplaceAllString(fmt.Sprintf("%s %s %s%s", r.Method, place, sorted, key), "ID")
}

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
func compare(t *testing.T, what string, got, want []string) {
	t.Helper()
	for i, line := range want {
		if i == len(got) || got[i] != line {
			t.Errorf("%s is %q, want %s", what, got[i:min(i+1, len(got))], line)
			return
		}
	}
	if len(got) > len(want) {
		t.Errorf("%s has the extra %s", what, got[len(want)])
	}
}
