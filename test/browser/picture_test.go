package browser

import (
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"remit/internal/token"
	"remit/money"
	"remit/redisstore"
	"remit/test/serviceproc"
	"remit/test/suite"

	"github.com/alicebob/miniredis/v2"
)

var update = flag.Bool("update", false, "take the picture of the README anew")

const (
	picture        = "../../docs/console.png"
	largestPicture = 120_000 // bytes
)

var pictureSize = image.Pt(960, 960) // pixels

// TestTheReadmeShowsTheConsole looks at the picture. In the long run it takes another one, too.
func TestTheReadmeShowsTheConsole(t *testing.T) {
	t.Parallel()
	if *update {
		takePicture(t, picture)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil || !strings.Contains(string(readme), "(docs/console.png)") {
		t.Errorf("README.md shows no docs/console.png: %v", err)
	}
	checkPicture(t, picture)
	if suite.Long {
		another := filepath.Join(t.TempDir(), "console.png")
		takePicture(t, another)
		checkPicture(t, another)
	}
}

func checkPicture(t *testing.T, path string) {
	t.Helper()
	text := must(os.ReadFile(path))(t)
	shown := must(png.Decode(bytes.NewReader(text)))(t)
	if size := shown.Bounds().Size(); size != pictureSize || len(text) > largestPicture {
		t.Errorf("%s has %v pixels and %d bytes, want %v and at most %d", path, size, len(text), pictureSize, largestPicture)
	}
}

// takePicture shows a month of a small fleet. Its Redis is one whose clock can be set.
func takePicture(t *testing.T, path string) {
	t.Helper()
	redis := miniredis.RunT(t)
	service := launch(t, "redis://"+redis.Addr())
	apiKey := month(t, redis)
	if output, err := node(t, time.Minute, service, []string{"REMIT_KEY=" + apiKey}, "picture.mjs", path).CombinedOutput(); err != nil {
		t.Fatalf("picture.mjs: %v\n%s", err, output)
	}
}

// launch runs a service on a Redis until the test ends.
func launch(t *testing.T, redisURL string) *serviceproc.Service {
	t.Helper()
	service := must(serviceproc.LaunchWith(t.TempDir(), []string{"REMIT_LISTEN=127.0.0.1:0", "REMIT_REDIS_URL=" + redisURL}))(t)
	t.Cleanup(func() { must(0, service.Stop())(t) })
	return service
}

func newOrganization(t *testing.T, store *redisstore.Store, name string) (apiKey string, key redisstore.APIKey) {
	t.Helper()
	id := redisstore.NewRootID()
	apiKey = token.NewAPIKey(id)
	key = redisstore.APIKey{Organization: id, Hash: token.Hash(apiKey), Hint: token.Hint(apiKey)}
	must(store.CreateOrganization(t.Context(), "", key, name, "", nil))(t)
	return apiKey, key
}

// month lets a small fleet work for 30 days.
func month(t *testing.T, redis *miniredis.Miniredis) string {
	t.Helper()
	store := must(redisstore.Open(redisstore.Config{URL: "redis://" + redis.Addr(), KeepsFeeds: true}))(t)
	defer store.Close()
	const days = 30
	now := time.Now()
	redis.SetTime(now.AddDate(0, 0, 1-days))
	apiKey, key := newOrganization(t, store, "acme")
	names := []string{"planner", "researcher", "support", "invoices"}
	agents := make([]redisstore.Agent, len(names))
	for i, name := range names {
		agents[i] = must(store.CreateAgent(t.Context(), key, redisstore.Agent{Name: name, Scopes: []string{"tool:search"}}, token.Hash(name), nil))(t)
	}
	for day := range days {
		redis.SetTime(now.AddDate(0, 0, 1+day-days))
		for i, a := range agents {
			workday(t, store, key, a, 7+(day*(i+3)+i)%11-3*i)
		}
	}
	return apiKey
}

// workday gives the agent a session, and charges it so many times.
func workday(t *testing.T, store *redisstore.Store, key redisstore.APIKey, a redisstore.Agent, charges int) {
	t.Helper()
	wanted := redisstore.NewSession{Agent: a.ID, MaxActions: 20, MaxValue: 10 * money.USD, Lifetime: 4 * time.Hour}
	session := must(store.CreateSession(t.Context(), key, wanted))(t)
	for i := range charges {
		charge := redisstore.Charge{Count: 1, Value: 512_000, ActionType: fmt.Sprint([]string{"llm.call", "tool.search", "tool.browse"}[i%3])}
		must(store.Charge(t.Context(), redisstore.Caller{Key: &key}, session.ID, charge))(t)
	}
}
