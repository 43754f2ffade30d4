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

// FuzzHeader shows that any other is replaced.
func TestRequestIDsOfTwoInstancesNeverMeet(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	instances := []*client{api, api.another(t)}
	var seen sync.Map
	var wait sync.WaitGroup
	for worker := range 16 {
		wait.Go(func() {
			for range 25 {
				r, err := instances[worker%2].try("GET", "/healthz", nil)
				if err != nil {
					t.Error(err)
					return
				}
				if _, met := seen.Swap(r.header.Get("X-Request-Id"), true); met {
					t.Errorf("%s is given twice", r.header.Get("X-Request-Id"))
				}
			}
		})
	}
	wait.Wait()
}
