package server_test

import (
	"sync"
	"testing"
)

// Which ones of clients are kept, FuzzHeader shows.
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
