package client

import (
	"context"
	"net/http"
)

// DryRunCharge reports what Charge would return now, the usage after it included, and charges nothing. It ignores OnLimit and
// IdempotencyKey.
func (s *Session) DryRunCharge(ctx context.Context, c Charge) (Usage, error) {
	body := struct {
		Charge
		DryRun bool `json:"dry_run"`
	}{c, true}
	return decoded[Usage](ctx, s.caller, call{method: http.MethodPost, path: sessionPath(s.id) + "/actions", body: body})
}

// DryRun is what a transaction that was only tried would have met.
type DryRun struct {
	// WouldRefuse is the limit that would have refused it, if the session did not only observe its limits; empty: none.
	WouldRefuse string `json:"would_refuse,omitzero"`
}

// DryRunBegin reports whether Begin would succeed now, and begins nothing. Its errors are those of Begin. It ignores OnLimit and
// IdempotencyKey.
func (s *Session) DryRunBegin(ctx context.Context, p TransactionParams) (DryRun, error) {
	body := struct {
		transactionBody
		DryRun bool `json:"dry_run"`
	}{p.body(s.id), true}
	return decoded[DryRun](ctx, s.caller, call{method: http.MethodPost, path: "/v1/transactions", body: body})
}
