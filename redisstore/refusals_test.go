package redisstore

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestReplyCodesAndRefusalsMatch(t *testing.T) {
	t.Parallel()
	codes := map[string]bool{}
	for _, source := range luaFiles(t) {
		_, replies, _ := strings.Cut(source, "-- Reply:")
		replies, _, _ = strings.Cut(replies, "-- Writes:")
		for _, code := range regexp.MustCompile(`\{'(\w+)'`).FindAllStringSubmatch(replies, -1) {
			codes[code[1]] = true
		}
	}
	if !codes["ok"] {
		t.Error("no script answers ok: the test reads nothing")
	}
	delete(codes, "ok")
	delete(codes, "outcome")
	wantEqual(t, "the codes in the scripts' headers", slices.Sorted(maps.Keys(codes)), slices.Sorted(maps.Keys(allRefusals())))
}

// A script that writes must not be declared as one that reads: after a lost reply it would be sent again.
func TestEveryScriptIsRunAsWhatItsHeaderSaysItIs(t *testing.T) {
	t.Parallel()
	declared := map[string]string{}
	for _, path := range storeFiles(t) {
		text := string(must(os.ReadFile(path))(t))
		for _, found := range regexp.MustCompile(`\b(?:kernel\.N|N|n)ew(?:Merged)?Script\("([\w/]+)", (?:redisclient\.)?(\w+)\)`).FindAllStringSubmatch(text, -1) {
			declared[found[1]] = strings.Replace(strings.ToLower(found[2]), "besteffort", "writes", 1)
		}
		for _, found := range regexp.MustCompile(`\b(?:kernel\.N|N|n)ew(?:Keyed|Sealed|MergedKeyed|Grant)Script\("([\w/]+)"\)`).FindAllStringSubmatch(text, -1) {
			declared[found[1]] = "writes"
		}
	}
	declared["kernel/check_live"] = "reads" // it runs inside with_proof alone, which writes
	said := map[string]string{}
	for name, source := range luaFiles(t) {
		if slices.Contains([]string{"kernel/idempotent", "kernel/with_proof", "kernel/idempotent_sealed", "kernel/dry_run"}, name) { // they stand around others
			continue
		}
		if name == "kernel/replay" { // it runs inside those alone
			delete(declared, name)
			continue
		}
		said[name] = "writes"
		if strings.Contains(source, "\n-- Writes: nothing") {
			said[name] = "reads"
		}
	}
	wantEqual(t, "how the store runs the scripts", declared, said)
}

// luaFiles returns the text of every script, by its name with its room.
func luaFiles(t *testing.T) map[string]string {
	t.Helper()
	scripts := map[string]string{}
	for _, path := range must(filepath.Glob("../lua/*/*.lua"))(t) {
		name := strings.TrimPrefix(strings.TrimSuffix(path, ".lua"), "../lua/")
		if room := filepath.Dir(name); room != "block" && room != "include" {
			scripts[name] = string(must(os.ReadFile(path))(t))
		}
	}
	if len(scripts) == 0 {
		t.Fatal("no script in ../lua")
	}
	return scripts
}

func TestStatusIsWhateverCameFirst(t *testing.T) {
	t.Parallel()
	var never time.Time
	at := time.UnixMilli
	for _, test := range []struct {
		name   string
		now    time.Time
		events lifeEvents
		want   Status
	}{
		{"in its time", at(99), lifeEvents{never, never, at(100)}, Active},
		{"at its expiry", at(100), lifeEvents{never, never, at(100)}, Expired},
		{"revoked in its time, read after it", at(200), lifeEvents{never, at(50), at(100)}, Revoked},
		{"revoked at the last moment", at(99), lifeEvents{never, at(99), at(100)}, Revoked},
		{"revoked at its expiry", at(100), lifeEvents{never, at(100), at(100)}, Expired},
		{"ended, read after its expiry", at(200), lifeEvents{at(50), never, at(100)}, Completed},
		{"ended, then revoked after its expiry", at(300), lifeEvents{at(50), at(200), at(100)}, Completed},
		{"ended in the millisecond of the revocation", at(60), lifeEvents{at(50), at(50), at(100)}, Completed},
	} {
		wantEqual(t, test.name, statusAt(test.now, test.events), test.want)
	}
}
