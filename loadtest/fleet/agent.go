package fleet

import (
	"remit/client"
	"sync"
	"time"
)

// agent is one simulated agent. The SDK manages its tokens; the copies here are for the checks.
type agent struct {
	sdk    *client.Agent
	secret client.Credential

	mu        sync.Mutex // held over a refresh
	tokens    tokenPair  // the newest that were sent or received
	refreshes int        // how many succeeded
	doubt     time.Time  // when the first refresh of these tokens got no answer; zero: none
}

// take stores a new token pair.
func (a *agent) take(p tokenPair) { a.tokens, a.doubt = p, time.Time{} }
