package redisstore

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"remit/test/redistest"
)

// A command that the metrics do not know would be counted as another.
func TestEveryCommandOfRedisIsCountedByItsName(t *testing.T) {
	t.Parallel()
	called := regexp.MustCompile(`\b\w\.(?:client\.Call|texts)\([^"]*"(\w+)"`)
	var verbs []string
	for _, file := range must(filepath.Glob("*.go"))(t) {
		if strings.HasSuffix(file, "_test.go") { // which call others, to see that they fail
			continue
		}
		for _, call := range called.FindAllStringSubmatch(string(must(os.ReadFile(file))(t)), -1) {
			verbs = append(verbs, call[1])
		}
	}
	if len(verbs) < 4 {
		t.Errorf("%v: the test sees them no more", verbs)
	}
	s := openStore(t, Config{}, "redis://127.0.0.1:1", nil)
	for _, verb := range verbs {
		_, _ = s.client.Call(t.Context(), ownFlow, reads, verb, "key")
		if n := redistest.Gathered(t, s, "remit_redis_call_duration_seconds")[verb+" unavailable "]; n == 0 {
			t.Errorf("%s is counted by another name", verb)
		}
	}
}
