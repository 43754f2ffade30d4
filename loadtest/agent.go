package main

import (
	"remit/client"
	"sync"
	"time"
)

// agent is one simulated agent. Its tokens are the SDK's business; what is kept of them here is for the books.
type agent struct {
	sdk    *client.Agent
	secret client.Credential

	mu        sync.Mutex // held over a refresh
	tokens    tokenPair  // the newest on the wire
	refreshes int        // that worked
	doubt     time.Time  // since when these tokens may be spent, for want of an answer; zero: they are not
}

// take enters a new token pair.
func (a *agent) take(p tokenPair) { a.tokens, a.doubt = p, time.Time{} }
