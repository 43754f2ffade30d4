package redisstore

import (
	"os"
	"regexp"
	"testing"

	"remit/redisstore/internal/kernel"
	"remit/test/redistest"
)

// A command that the metrics do not know would be counted as another.
func TestEveryCommandOfRedisIsCountedByItsName(t *testing.T) {
	t.Parallel()
	called := regexp.MustCompile(`\b(?:\w+\.)+(?:[cC]lient\.Call|[tT]exts)\([^"]*"(\w+)"`)
	var verbs []string
	for _, file := range storeFiles(t) { // without tests, which call others, to see that they fail
		for _, call := range called.FindAllStringSubmatch(string(must(os.ReadFile(file))(t)), -1) {
			verbs = append(verbs, call[1])
		}
	}
	if len(verbs) < 4 {
		t.Errorf("%v: the test sees them no more", verbs)
	}
	s := openStore(t, Config{}, "redis://127.0.0.1:1", nil)
	for _, verb := range verbs {
		_, _ = s.client.Call(t.Context(), kernel.OwnFlow, reads, verb, "key")
		if n := redistest.Gathered(t, s, "remit_redis_call_duration_seconds")[verb+" unavailable "]; n == 0 {
			t.Errorf("%s is counted by another name", verb)
		}
	}
}
