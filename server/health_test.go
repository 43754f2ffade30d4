package server_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// configure sets a parameter of a running Redis.
func configure(t *testing.T, url, parameter, value string) {
	t.Helper()
	admin := redis.NewClient(must(redis.ParseURL(url))(t))
	defer admin.Close()
	must(admin.ConfigSet(t.Context(), parameter, value).Result())(t)
}

func TestHealthzAndReadyzSayThatTheServiceCanWork(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		api.get("/healthz").is(200).exactly(fields{"status": "ok"})
		ready := api.get("/readyz").is(200).object()
		warnings, _ := ready["warnings"].([]any)
		// The servers of the tests keep nothing, and take all the memory there is.
		warnings = slices.DeleteFunc(warnings, func(warning any) bool {
			text := warning.(string)
			return strings.Contains(text, "maxmemory 0") || strings.Contains(text, "append-only file")
		})
		if ready["status"] != "ready" || len(warnings) > 0 {
			t.Errorf("it says %v", ready)
		}
	})
}

func TestReadyzIsNotReadyWhenRedisCannotBeWritten(t *testing.T) {
	t.Parallel()
	redis := privateRedis(t, "--min-replicas-to-write", "1")
	api := start(t, setup{redis: redis.URL()})
	refused := api.get("/readyz").refused(503, "unavailable")
	wantEqual(t, "the detail", refused.detail(), "Redis has fewer replicas than min-replicas-to-write and refuses writes")
	api.get("/healthz").is(200)
	configure(t, redis.URL(), "min-replicas-to-write", "0")
	api.get("/readyz").is(200)
}

func TestWithoutAKeyringTokenOperationsAreUnavailable(t *testing.T) {
	t.Parallel()
	onEachRedisWith(t, setup{noKeys: true}, func(t *testing.T, api *client) {
		w := api.newTenant()
		id := w.newSession(nil)
		needsKeys := []endpoint{
			{"GET", "/readyz", nil},
			{"GET", "/.well-known/jwks.json", nil},
			{"POST", "/v1/auth/token", fields{"agent_id": w.agent.id, "secret": w.agent.secret}},
			{"POST", "/v1/auth/refresh", fields{"refresh_token": "rmr_x"}},
			{"POST", "/v1/auth/revoke", fields{"refresh_token": "rmr_x"}},
		}
		asAnyAgent, other := asAgent("a.b.c"), uuid.NewString()
		for _, e := range slices.Concat(needsKeys, endpointsOfBoth(w, id, other), endpointsOfAgents(w, id, other), []endpoint{rollbackOf(other)}) {
			refused := w.ask(e.method, e.path, e.body, asAnyAgent).refused(503, "unavailable")
			if refused.header.Get("Retry-After") == "" {
				t.Errorf("%s: no Retry-After", refused.what)
			}
		}
		w.get("/healthz").is(200)
		w.get("/sessions/"+id, asKey(w.key)).is(200)

		api.on.server.SetKeyring(api.on.keyring)
		w.get("/readyz").is(200)
		w.get("/sessions/"+id, asAgent(w.exchange().access)).is(200)
	})
}
