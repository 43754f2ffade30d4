// Package client is the Go SDK of Remit. An agent obtains and renews its tokens itself. An organization manages agents and
// sessions with its API key.
//
//	remit, err := client.New("http://127.0.0.1:8080", client.Options{})
//	if err != nil {
//		return err
//	}
//	session := remit.Agent(agentID, secret).Session(sessionID)
//	left, err := session.Charge(ctx, client.Charge{ActionType: "llm.call", Value: 37 * money.USD / 100})
//	var limit *client.LimitReached
//	if errors.As(err, &limit) {
//		return fmt.Errorf("out of %s, %s USD left", limit.Limit, limit.RemainingValue)
//	}
//
// # What it guarantees
//
// A write takes effect once. Charges, batches, relative top-ups, creations, rotations and all steps of a transaction carry an
// Idempotency-Key, which stays the same when they are retried. Lost responses, 503 and 429 are retried with exponential
// backoff, full jitter and Retry-After. No other response is retried, and so no refused budget.
//
// Each Agent has one exchange or refresh in flight, shared by all goroutines. Tokens are renewed early, at a random moment
// that differs between the members of a fleet, while calls continue with the current token.
//
// An error says what happened: [ErrOutcomeUnknown] marks a write that may have taken effect; after any other error it did
// not. Errors and the output of fmt and slog never contain credentials.
//
// All types are safe for concurrent use.
package client
