package cli_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
	await(t, func() string { return text }, func() bool {
		text = s.good("audit", "export").stdout
		return strings.Count(text, "\n") >= 8
	})
	answered := must(http.Get(serviceURL(t) + "/.well-known/jwks.json"))(t)
	defer answered.Body.Close()
	set := must(io.ReadAll(answered.Body))(t)
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n"), written(t, text), written(t, string(set))
}

func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	must(0, os.WriteFile(path, []byte(text), 0o600))(t)
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
	wantEqual(t, "signed, without keys", s.object("audit", "verify", export)["signed"], false)
	has(t, s.good("audit", "verify", export).stderr, `^remit: no signature was verified: give the issuer's keys with --jwks$`)
	wantEqual(t, "the warning with keys", s.good("audit", "verify", export, "--jwks", keys).stderr, "")
	endless := written(t, strings.Join(lines[:7], "\n")+"\n")
	wantEqual[any](t, "the last without a checkpoint", s.object("audit", "verify", endless)["last"], float64(7))
	has(t, s.good("audit", "verify", endless).stderr, `no checkpoint, so events may be missing at its end$`)
}

func TestWhatWasDoneToAnExportIsSaid(t *testing.T) {
	t.Parallel()
	lines, export, keys := exported(t)
	foreign := strings.Replace(string(must(os.ReadFile(keys))(t)), `"kid":"`, `"kid":"x`, 1)
	changed := func(at int) []string {
		all := slices.Clone(lines)
		all[at] = strings.Replace(all[at], "agent.", "agent_", 1)
		return all
	}
	s := newTerminal(t)
	for says, test := range map[string]struct {
		lines []string
		keys  string
	}{
		`event 4 \(line 4\): changed`:          {changed(3), keys},
		`the export and its checkpoint differ`: {changed(6), keys},
		`the export has no checkpoint`:         {lines[:7], keys},
		`none of the issuer's keys has signed`: {lines, written(t, foreign)},
	} {
		s.fails(exitFailed, says, "audit", "verify", written(t, strings.Join(test.lines, "\n")+"\n"), "--jwks", test.keys)
	}
	s.fails(exitUsage, "no such file", "audit", "verify", export+"-none")
}
