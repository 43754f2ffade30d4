package redisstore

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// On a cluster go-redis sends a plain command again whose reply was lost, so each must come to the same when it happens
// twice. Add a new one here once it is known to do so.
func TestCommandsBesideScriptsMayHappenTwice(t *testing.T) {
	t.Parallel()
	safe := []string{
		"Get", "HGet", "HGetAll", "HMGet", "Info", "Ping", "Time", "Scan", "XLen", "XRangeN", "XRevRangeN", "ZCard", "ZRandMember", // read
		"ZRange", "ZRangeArgs", "ZRangeArgsWithScores", "ZRangeWithScores", "Exists", "HLen", "HRandField", // read
		"Set",            // of what does not depend on what was there
		"SetNX",          // of an issuer, which is read after it
		"ZAdd",           // of a member that is new, with score 0; of what an organization holds, whatever was there
		"ZRem",           // of a member that is gone for good
		"Unlink", "HDel", // of what is gone for good
		"PExpire", "Do", // of a mark that means nothing; ASKING, and reads
		"Close", "Pipelined", "Process", "Pipeline", "Exec", "Options", "Len", "PoolStats", // no commands; what is processed is run once
	}
	own := []string{"AddEvent", "Send", "Of", "Flow"} // methods of our own types, whose values have such names too
	direct := regexp.MustCompile(`\b(?:(?:\w+\.)*[cC]lient\.Redis\(\)|c\.redis|p|pipeline|primary|server)\.([A-Z]\w*)\(`)
	found := 0
	for _, file := range append(storeFiles(t), must(filepath.Glob("../internal/redisclient/*.go"))(t)...) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, call := range direct.FindAllStringSubmatch(string(must(os.ReadFile(file))(t)), -1) {
			if found++; !slices.Contains(safe, call[1]) && !slices.Contains(own, call[1]) {
				t.Errorf("%s: %s may happen twice on a cluster", file, call[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("%d commands are found: the test sees them no more", found)
	}
}
