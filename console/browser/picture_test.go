package browser

import (
	"context"
	"flag"
	"fmt"
	"image/png"
	"os"
	"strings"
	"testing"
	"time"

	"remit/internal/serviceproc"
	"remit/internal/tool"
	"remit/money"
	"remit/redisstore"
	"remit/server"
	"remit/token"

	"github.com/alicebob/miniredis/v2"
)

var update = flag.Bool("update", false, "take the picture of the README anew")

const (
	picture        = "../../docs/console.png"
	largestPicture = 150_000 // bytes
)

func TestTheReadmeShowsTheConsole(t *testing.T) {
	t.Parallel()
	if *update {
		takePicture(t)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil || !strings.Contains(string(readme), "(docs/console.png)") {
		t.Errorf("README.md shows no docs/console.png: %v", err)
	}
	file, err := os.Open(picture)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := png.Decode(file); err != nil {
		t.Error(err)
	}
	if about, err := file.Stat(); err != nil || about.Size() > largestPicture {
		t.Errorf("the picture is too large: %v, %v", about, err)
	}
}

// takePicture shows a month of a small fleet. Its Redis is one whose clock can be set.
func takePicture(t *testing.T) {
	t.Helper()
	redis := miniredis.RunT(t)
	service, err := serviceproc.LaunchWith(t.TempDir(), []string{"REMIT_LISTEN=127.0.0.1:0", "REMIT_REDIS_URL=redis://" + redis.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	defer service.Stop()
	apiKey := month(t, redis)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tool.Install(t, ".")
	cmd := tool.Command(ctx, ".", tool.Path(t, "node"), "picture.mjs", picture)
	cmd.Env = append(environment(t, service), "REMIT_KEY="+apiKey)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("picture.mjs: %v\n%s", err, output)
	}
}

// month lets a small fleet work for 30 days.
func month(t *testing.T, redis *miniredis.Miniredis) (apiKey string) {
	t.Helper()
	store, err := redisstore.Open(redisstore.Config{URL: "redis://" + redis.Addr(), RenderEvent: server.RenderEvent})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	apiKey = token.NewAPIKey(redisstore.NewRootID())
	organization, err := token.APIKeyOrganization(apiKey)
	if err != nil {
		t.Fatal(err)
	}
	key := redisstore.APIKey{Organization: organization, Hash: token.Hash(apiKey), Hint: token.Hint(apiKey)}
	const days = 30
	now := time.Now()
	redis.SetTime(now.AddDate(0, 0, 1-days))
	if _, err := store.CreateOrganization(t.Context(), "", key, "acme", "", nil); err != nil {
		t.Fatal(err)
	}
	names := []string{"planner", "researcher", "support", "invoices"}
	agents := make([]redisstore.Agent, len(names))
	for i, name := range names {
		if agents[i], err = store.CreateAgent(t.Context(), key, redisstore.Agent{Name: name, Scopes: []string{"tool:search"}}, token.Hash(name), nil); err != nil {
			t.Fatal(err)
		}
	}
	for day := range days {
		redis.SetTime(now.AddDate(0, 0, 1+day-days))
		for i, a := range agents {
			workday(t, store, key, a, 7+(day*(i+3)+i)%11-3*i)
		}
	}
	workday(t, store, key, agents[1], 18) // near its limits
	return apiKey
}

// workday gives the agent a session, and charges it so many times.
func workday(t *testing.T, store *redisstore.Store, key redisstore.APIKey, a redisstore.Agent, charges int) {
	t.Helper()
	session, err := store.CreateSession(t.Context(), key, redisstore.NewSession{Agent: a.ID, MaxActions: 20, MaxValue: 10 * money.USD, Lifetime: 4 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for i := range charges {
		charge := redisstore.Charge{Count: 1, Value: 512_000, ActionType: fmt.Sprint([]string{"llm.call", "tool.search", "tool.browse"}[i%3])}
		if _, err := store.Charge(t.Context(), redisstore.Caller{Key: &key}, session.ID, charge); err != nil {
			t.Fatal(err)
		}
	}
}
