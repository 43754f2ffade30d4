// Package client is the Go SDK of Remit. An agent gets, keeps and renews its tokens by itself; an organization manages
// agents and sessions with its API key.
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
// A write happens once. Charges, batches, relative top-ups, whatever is created or rotated, and all steps of a transaction
// carry an Idempotency-Key, the same over their retries. Lost answers, 503 and 429 are retried, with exponential backoff,
// full jitter and Retry-After; nothing else is, and a refused budget never.
//
// One exchange or refresh is under way per Agent, however many goroutines ask. Tokens are renewed early, at a moment
// that differs between the members of a fleet, while calls go on with the token they have.
//
// An error tells what happened: [ErrOutcomeUnknown] marks a write that may have; any other error means that it did
// not. Credentials appear in no error and in nothing that fmt or slog prints.
//
// All types are safe for use by many goroutines.
package client
