package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"time"
)

// Organization calls the service with an API key.
type Organization struct {
	caller *caller
}

// OrganizationParams describe a new organization.
type OrganizationParams struct {
	Name     string `json:"name"`              // 1 to 200 characters
	Metadata any    `json:"metadata,omitzero"` // a JSON object of at most 16 KiB

	// BootstrapToken is needed by services that run with --organizations=token.
	BootstrapToken Credential `json:"-"`
}

// OrganizationInfo is an organization as the service shows it.
type OrganizationInfo struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	APIKey    Credential      `json:"api_key,omitzero"` // in the answer to its creation only
	Metadata  json.RawMessage `json:"metadata"`
	CreatedAt time.Time       `json:"created_at"`
}

// RotatedKey is a new API key. The one before it ends at PreviousExpiresAt, or has ended.
type RotatedKey struct {
	APIKey            Credential `json:"api_key"`
	PreviousExpiresAt time.Time  `json:"previous_expires_at"`
}

// Info reads the organization; id must be its own.
func (o *Organization) Info(ctx context.Context, id string) (OrganizationInfo, error) {
	var info OrganizationInfo
	err := o.caller.do(ctx, call{method: http.MethodGet, path: organizationPath(id)}, &info)
	return info, err
}

// RotateKey gives the organization, by its id, a new API key; the present one stays valid for the grace time, to the
// second. This Organization goes on with the key it has. If the answer is lost, so is the new key: without a grace
// time the organization is then locked out.
func (o *Organization) RotateKey(ctx context.Context, id string, grace time.Duration) (RotatedKey, error) {
	var rotated RotatedKey
	err := o.caller.do(ctx, call{
		method: http.MethodPost, path: organizationPath(id) + "/api-key/rotate", body: graceParams{seconds(grace)}, effect: once,
	}, &rotated)
	return rotated, err
}

// DoMany is Agent.DoMany for sessions of the whole organization.
func (o *Organization) DoMany(ctx context.Context, actions []SessionAction, options BatchOptions) ([]Result, error) {
	return o.caller.doMany(ctx, actions, options)
}

// Transactions yields the organization's transactions, newest first, without their states and metadata.
func (o *Organization) Transactions(ctx context.Context, f TransactionFilter) iter.Seq2[TransactionInfo, error] {
	return o.caller.transactions(ctx, f)
}

// Transaction is the transaction with this id. An organization may read it and roll it back, and not commit it.
func (o *Organization) Transaction(id string) *Transaction { return openTransaction(o.caller, id) }

// Events yields an agent's audit trail as Agent.Events does.
func (o *Organization) Events(ctx context.Context, agentID, after string) iter.Seq2[Event, error] {
	return o.caller.events(ctx, agentID, after)
}

// graceParams is the body of all rotations.
type graceParams struct {
	Grace int64 `json:"grace_seconds"` // 0 too, for the service's default for an API key is another
}

// seconds rounds up, for the service counts whole ones: nothing short turns into 0, which would mean its default.
func seconds(d time.Duration) int64 {
	whole := int64(d / time.Second)
	if d%time.Second > 0 {
		whole++
	}
	return whole
}
