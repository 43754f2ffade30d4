package client

import (
	"context"
	"iter"
	"net/http"
	"strconv"
	"time"

	"github.com/goccy/go-json"
)

// Organization calls the service with an API key.
type Organization struct {
	caller *caller
}

// OrganizationParams describe a new organization.
type OrganizationParams struct {
	Name     string `json:"name"`              // 1 to 200 characters
	Metadata any    `json:"metadata,omitzero"` // a JSON object of at most 16 KiB

	// BootstrapToken is required by services that run with --organizations=token.
	BootstrapToken Credential `json:"-"`

	IdempotencyKey string `json:"-"` // at least 32 characters; empty: a random one
}

// OrganizationInfo is an organization as the service returns it.
type OrganizationInfo struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	APIKey    Credential      `json:"api_key,omitzero"` // only in the response to its creation
	Metadata  json.RawMessage `json:"metadata"`
	CreatedAt time.Time       `json:"created_at"`
	Quotas    Quantities      `json:"quotas,omitzero"` // the quotas by name; nil: not returned
	Usage     Quantities      `json:"usage,omitzero"`  // the usage by name
}

// Quantities are integers by name, such as agents. Newer services may add names. Values that are not integers are left out.
type Quantities map[string]int64

// UnmarshalJSON implements json.Unmarshaler.
func (q *Quantities) UnmarshalJSON(text []byte) error {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(text, &values); err != nil {
		return err
	}
	if values == nil {
		return nil
	}
	*q = Quantities{}
	for name, value := range values {
		if n, err := strconv.ParseInt(string(value), 10, 64); err == nil {
			(*q)[name] = n
		}
	}
	return nil
}

// RotateKeyParams are the options of an API key's rotation. The zero value works.
type RotateKeyParams struct {
	// Grace is how long the current key stays valid, to the second; nil: the service's default, 5 minutes. 0 ends it at
	// once; if the response is then lost, the organization is locked out.
	Grace *time.Duration

	IdempotencyKey string // empty: a random one
}

// RotatedKey is a new API key. The previous one ends at PreviousExpiresAt.
type RotatedKey struct {
	APIKey            Credential `json:"api_key"`
	PreviousExpiresAt time.Time  `json:"previous_expires_at"`
}

// Info reads the organization. The id must be that of the API key's organization.
func (o *Organization) Info(ctx context.Context, id string) (OrganizationInfo, error) {
	return decoded[OrganizationInfo](ctx, o.caller, call{method: http.MethodGet, path: organizationPath(id)})
}

// RotateKey replaces the API key of the organization with this id. This Organization continues to use its current key, which
// stays valid for the grace time.
func (o *Organization) RotateKey(ctx context.Context, id string, p RotateKeyParams) (RotatedKey, error) {
	return o.caller.rotateKey(ctx, organizationPath(id)+"/api-key/rotate", p)
}

// ChargeMany is Agent.ChargeMany for sessions of the whole organization.
func (o *Organization) ChargeMany(ctx context.Context, charges []SessionCharge, options BatchOptions) ([]Result, error) {
	return o.caller.chargeMany(ctx, charges, options)
}

// Transactions yields the organization's transactions, newest first, without their states and metadata.
func (o *Organization) Transactions(ctx context.Context, f TransactionFilter) iter.Seq2[TransactionInfo, error] {
	return o.caller.transactions(ctx, f)
}

// Transaction returns the transaction with this id. An organization may read it and roll it back, but not commit it.
func (o *Organization) Transaction(id string) *Transaction { return openTransaction(o.caller, id) }

// Events yields an agent's audit trail as Agent.Events does.
func (o *Organization) Events(ctx context.Context, agentID, after string) iter.Seq2[Event, error] {
	return o.caller.events(ctx, agentID, after, eventWait)
}

// ListEvents yields an agent's audit trail as Agent.ListEvents does.
func (o *Organization) ListEvents(ctx context.Context, agentID, after string) iter.Seq2[Event, error] {
	return o.caller.events(ctx, agentID, after, 0)
}

// seconds rounds up to whole seconds, so that a short duration does not become 0, which means the default.
func seconds(d time.Duration) int64 {
	whole := int64(d / time.Second)
	if d%time.Second > 0 {
		whole++
	}
	return whole
}

// secondsOrNil is seconds for an optional field in which 0 does not mean the default.
func secondsOrNil(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	return new(seconds(*d))
}
