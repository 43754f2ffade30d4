package client

import (
	"context"
	"net/http"
)

// DryRunCharge reports what Charge would return now, the usage after it included, and charges nothing. It ignores OnLimit and
// IdempotencyKey.
func (s *Session) DryRunCharge(ctx context.Context, c Charge) (Usage, error) {
	body := struct {
		chargeBody
		DryRun bool `json:"dry_run"`
	}{c.body(), true}
	var u Usage
	err := s.caller.do(ctx, call{method: http.MethodPost, path: sessionPath(s.id) + "/actions", body: body}, &u)
	return u, err
}

// DryRunBegin reports whether Begin would succeed now, and begins nothing. The transaction that it returns has no ID. It ignores
// OnLimit and IdempotencyKey.
func (s *Session) DryRunBegin(ctx context.Context, p TransactionParams) (TransactionInfo, error) {
	body := struct {
		transactionBody
		DryRun bool `json:"dry_run"`
	}{p.body(s.id), true}
	var info TransactionInfo
	err := s.caller.do(ctx, call{method: http.MethodPost, path: "/v1/transactions", body: body}, &info)
	return info, err
}
