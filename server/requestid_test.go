package server_test

import (
	"strings"
	"sync"
	"testing"
)

func TestAWellFormedRequestIDIsKept(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	for _, id := range []string{"a", "0", "A-Z_a.z-09", "...", strings.Repeat("x", 64), "018f4d5e-0000-7000-8000-000000000000"} {
		for path, status := range map[string]int{"/healthz": 200, "/nothing": 404, "/v1/agents": 401, "/v1/agents/..": 400} {
			r := api.get(path, header("X-Request-Id", id)).is(status)
			if got := r.header.Get("X-Request-Id"); got != id {
				t.Errorf("%s: %q, want %q", path, got, id)
			}
			if status >= 400 && r.text("request_id") != id {
				t.Errorf("%s: the body says %q, want %q", path, r.text("request_id"), id)
			}
		}
	}
}

func TestAnyOtherRequestIDIsReplaced(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	seen := map[string]bool{}
	for _, given := range []string{
		"", strings.Repeat("x", 65), long(1000), "a b", "a/b", "a:b", "a,b", `a"b`, "<script>", "é", "a\tb", "a=b", "%20",
	} {
		id := api.get("/healthz", header("X-Request-Id", given)).is(200).header.Get("X-Request-Id")
		if id == given || len(id) > 64 || seen[id] {
			t.Errorf("%q was answered with %q", given, id)
		}
		seen[id] = true
	}
}

func TestRequestIDsOfTwoInstancesNeverMeet(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	instances := []*client{api, api.another(t)}
	var lock sync.Mutex
	seen := map[string]bool{}
	var wait sync.WaitGroup
	for worker := range 16 {
		wait.Go(func() {
			for range 25 {
				r, err := instances[worker%2].try("GET", "/healthz", nil)
				if err != nil {
					t.Error(err)
					return
				}
				lock.Lock()
				seen[r.header.Get("X-Request-Id")] = true
				lock.Unlock()
			}
		})
	}
	wait.Wait()
	if len(seen) != 400 {
		t.Errorf("%d ids for 400 requests", len(seen))
	}
}
