package cli_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"remit/internal/auditlog"
)

// exported returns the lines of an export of an organization with some events, the file they are in, and one with the issuer's keys.
func exported(t *testing.T) (lines []string, export, keys string) {
	t.Helper()
	s := ofOrganization(t)
	agent, _ := s.newAgent("read")
	for range 3 {
		s.good("agent", "suspend", agent)
		s.good("agent", "resume", agent)
	}
	var text string
	for deadline := time.Now().Add(30 * time.Second); strings.Count(text, "\n") < 8; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the export is %s", text)
		}
		text = s.good("audit", "export").stdout
	}
	answered, err := http.Get(serviceURL(t) + "/.well-known/jwks.json")
	if err != nil {
		t.Fatal(err)
	}
	defer answered.Body.Close()
	set, err := io.ReadAll(answered.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n"), written(t, text), written(t, string(set))
}

// written returns the path of a new file with this text.
func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAnExportIsVerified(t *testing.T) {
	t.Parallel()
	lines, export, keys := exported(t)
	if len(lines) != 8 || !strings.HasPrefix(lines[7], `{"checkpoint":"`) {
		t.Fatalf("the export is %q", lines)
	}
	s := newTerminal(t)
	got := s.object("audit", "verify", export, "--jwks", keys)
	if got["first"] != float64(1) || got["last"] != float64(7) || got["signed"] != true {
		t.Errorf("%v", got)
	}
	end, err := auditlog.ReadCheckpoint(strings.TrimSuffix(strings.TrimPrefix(lines[7], `{"checkpoint":"`), `"}`))
	if err != nil || end.Organization == "" || got["organization_id"] != end.Organization || got["issuer"] != end.Issuer || got["issued_at"] == nil {
		t.Errorf("%v, want what %+v says, %v", got, end, err)
	}
	has(t, s.good("audit", "verify", export, "--jwks", keys).stdout, `LAST +7\n`, `SIGNED +true\n`, `ORGANIZATION +[0-9a-f-]{36}\n`)
	if got := s.object("audit", "verify", export); got["signed"] != false {
		t.Errorf("without keys: %v", got)
	}
	has(t, s.good("audit", "verify", export).stderr, `^remit: no signature was verified: give the issuer's keys with --jwks$`)
	if r := s.good("audit", "verify", export, "--jwks", keys); r.stderr != "" {
		t.Errorf("with keys it warns: %s", r.stderr)
	}
	endless := written(t, strings.Join(lines[:7], "\n")+"\n")
	if got := s.object("audit", "verify", endless); got["last"] != float64(7) {
		t.Errorf("without a checkpoint: %v", got)
	}
	has(t, s.good("audit", "verify", endless).stderr, `no checkpoint, so events may be missing at its end$`)
}

func TestAnExportStartsAfterAnEvent(t *testing.T) {
	t.Parallel()
	lines, _, _ := exported(t)
	s := newTerminal(t)
	got := s.object("audit", "verify", written(t, strings.Join(lines[3:], "\n")+"\n"))
	if got["first"] != float64(4) || got["last"] != float64(7) {
		t.Errorf("%v", got)
	}
}

func TestWhatWasDoneToAnExportIsSaid(t *testing.T) {
	t.Parallel()
	lines, export, keys := exported(t)
	set, err := os.ReadFile(keys)
	if err != nil {
		t.Fatal(err)
	}
	foreign := strings.Replace(string(set), `"kid":"`, `"kid":"x`, 1)
	s := newTerminal(t)
	for name, test := range map[string]struct {
		edit func(l []string) []string
		keys string
		want string
	}{
		"changed":          {func(l []string) []string { l[3] = strings.Replace(l[3], "agent.", "agent_", 1); return l }, keys, `event 4 \(line 4\): changed`},
		"dropped":          {func(l []string) []string { return append(l[:3], l[4:]...) }, keys, `event 4 \(line 4\): missing`},
		"swapped":          {func(l []string) []string { l[3], l[4] = l[4], l[3]; return l }, keys, `event 4 \(line 4\): missing`},
		"the last changed": {func(l []string) []string { l[6] = strings.Replace(l[6], "agent.", "agent_", 1); return l }, keys, `the export and its checkpoint differ`},
		"the last dropped": {func(l []string) []string { return append(l[:6], l[7]) }, keys, `the export and its checkpoint differ`},
		"no checkpoint":    {func(l []string) []string { return l[:7] }, keys, `the export has no checkpoint`},
		"others' keys":     {func(l []string) []string { return l }, written(t, foreign), `none of the issuer's keys has signed`},
		"another's ending": {func(l []string) []string { l[7] = `{"checkpoint":"a.b.c"}`; return l }, keys, `this is no checkpoint`},
		"something else":   {func([]string) []string { return []string{"x"} }, keys, `line 1: it is no JSON`},
	} {
		edited := written(t, strings.Join(test.edit(append([]string{}, lines...)), "\n")+"\n")
		r := s.run("audit", "verify", edited, "--jwks", test.keys)
		if r.exit != 1 || r.stdout != "" {
			t.Errorf("%s: exit %d, %s", name, r.exit, r.stdout)
		}
		has(t, r.stderr, test.want)
	}
	if r := s.run("audit", "verify", export+"-none"); r.exit == 0 {
		t.Error("a file that is not there is verified")
	}
	if !json.Valid([]byte(lines[0])) {
		t.Errorf("%s is no JSON", lines[0])
	}
}
