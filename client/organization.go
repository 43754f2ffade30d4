package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"strconv"
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

	IdempotencyKey string `json:"-"` // at least 32 characters; empty: a random one
}

// OrganizationInfo is an organization as the service shows it.
type OrganizationInfo struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	APIKey    Credential      `json:"api_key,omitzero"` // in the answer to its creation only
	Metadata  json.RawMessage `json:"metadata"`
	CreatedAt time.Time       `json:"created_at"`
	Quotas    Quantities      `json:"quotas,omitzero"` // how much of each it may have; nil: the service does not say
	Usage     Quantities      `json:"usage,omitzero"`  // how much of each it has
}

// Quantities are numbers by name, such as agents. A name may be new, so an unknown one is no error; what is not a whole
// number is left out.
type Quantities map[string]int64

// UnmarshalJSON is called by encoding/json.
func (q *Quantities) UnmarshalJSON(text []byte) error {
	var said map[string]json.RawMessage
	if err := json.Unmarshal(text, &said); err != nil {
		return err
	}
	if said == nil {
		return nil
	}
	*q = Quantities{}
	for name, value := range said {
		if n, err := strconv.ParseInt(string(value), 10, 64); err == nil {
			(*q)[name] = n
		}
	}
	return nil
}

// RotateKeyParams say how an API key is rotated. The zero value leaves the grace time to the service.
type RotateKeyParams struct {
	// Grace is how long the present key stays valid, to the second; nil: the service's default, 5 minutes. 0 ends it at
	// once: if the answer is lost then for good, the organization is locked out.
	Grace *time.Duration

	IdempotencyKey string // empty: a random one
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

// RotateKey gives the organization, by its id, a new API key. This Organization goes on with the key it has, which stays
// valid for the grace time.
func (o *Organization) RotateKey(ctx context.Context, id string, p RotateKeyParams) (RotatedKey, error) {
	var rotated RotatedKey
	body := struct {
		Grace *int64 `json:"grace_seconds,omitzero"`
	}{secondsOrNil(p.Grace)}
	err := o.caller.do(ctx, o.caller.client.keyed(organizationPath(id)+"/api-key/rotate", p.IdempotencyKey, body), &rotated)
	return rotated, err
}

// ChargeMany is Agent.ChargeMany for sessions of the whole organization.
func (o *Organization) ChargeMany(ctx context.Context, charges []SessionCharge, options BatchOptions) ([]Result, error) {
	return o.caller.chargeMany(ctx, charges, options)
}

// Transactions yields the organization's transactions, newest first, without their states and metadata.
func (o *Organization) Transactions(ctx context.Context, f TransactionFilter) iter.Seq2[TransactionInfo, error] {
	return o.caller.transactions(ctx, f)
}

// Transaction is the transaction with this id. An organization may read it and roll it back, and not commit it.
func (o *Organization) Transaction(id string) *Transaction { return openTransaction(o.caller, id) }

// Events yields an agent's audit trail as Agent.Events does.
func (o *Organization) Events(ctx context.Context, agentID, after string) iter.Seq2[Event, error] {
	return o.caller.events(ctx, agentID, after, eventWait)
}

// ListEvents yields an agent's audit trail as Agent.ListEvents does.
func (o *Organization) ListEvents(ctx context.Context, agentID, after string) iter.Seq2[Event, error] {
	return o.caller.events(ctx, agentID, after, 0)
}

// seconds rounds up, for the service counts whole ones: nothing short turns into 0, which would mean its default.
func seconds(d time.Duration) int64 {
	whole := int64(d / time.Second)
	if d%time.Second > 0 {
		whole++
	}
	return whole
}

// secondsOrNil is seconds of what may be left out, where 0 is not the default.
func secondsOrNil(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	return new(seconds(*d))
}
