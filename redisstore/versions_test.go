package redisstore

import (
	"context"

	"github.com/google/uuid"
	"remit/money"
)

// version is a version of the service, as far as it charges sessions and refreshes tokens.
type version interface {
	create(context.Context, tenant, NewSession) (uuid.UUID, error)
	charge(context.Context, AccessToken, uuid.UUID, Charge) (Usage, error)
	batch(context.Context, AccessToken, uuid.UUID, []Charge) error // the first error of a charge
	begin(context.Context, AccessToken, NewTransaction) (uuid.UUID, error)
	commit(ctx context.Context, t AccessToken, session, transaction uuid.UUID, value money.MicroUSD) error
	rollback(ctx context.Context, t AccessToken, session, transaction uuid.UUID) error
	read(context.Context, AccessToken, uuid.UUID) (Usage, error)
	end(context.Context, AccessToken, uuid.UUID) error
	exchange(context.Context, tenant) (AccessToken, error)
	refresh(ctx context.Context, t AccessToken, generation uint32) (uint32, error)
	check(context.Context, AccessToken) error
}

// present is this version.
type present struct{ *Store }

func (p present) create(ctx context.Context, w tenant, n NewSession) (uuid.UUID, error) {
	session, err := p.CreateSession(ctx, w.key, n)
	return session.ID, err
}

func (p present) charge(ctx context.Context, t AccessToken, session uuid.UUID, c Charge) (Usage, error) {
	return p.Charge(ctx, Caller{Token: &t}, session, c)
}

func (p present) batch(ctx context.Context, t AccessToken, session uuid.UUID, charges []Charge) error {
	var batch []BatchCharge
	for _, c := range charges {
		batch = append(batch, BatchCharge{session, c})
	}
	_, err := asOne(p.ChargeBatch(ctx, Caller{Token: &t}, batch, nil))
	return err
}

func (p present) begin(ctx context.Context, t AccessToken, n NewTransaction) (uuid.UUID, error) {
	begun, err := p.Begin(ctx, t, n)
	return begun.ID, err
}

func (p present) commit(ctx context.Context, t AccessToken, _, transaction uuid.UUID, value money.MicroUSD) error {
	_, err := p.Commit(ctx, t, transaction, Commit{Value: &value})
	return err
}

func (p present) rollback(ctx context.Context, t AccessToken, _, transaction uuid.UUID) error {
	_, err := p.Rollback(ctx, Caller{Token: &t}, transaction, Rollback{})
	return err
}

func (p present) read(ctx context.Context, t AccessToken, session uuid.UUID) (Usage, error) {
	read, err := p.Session(ctx, Caller{Token: &t}, session)
	return read.Usage, err
}

func (p present) end(ctx context.Context, t AccessToken, session uuid.UUID) error {
	_, err := p.EndSession(ctx, Caller{Token: &t}, session)
	return err
}

func (p present) exchange(ctx context.Context, w tenant) (AccessToken, error) {
	grant, err := p.ExchangeSecret(ctx, w.agent.ID, w.secret, GrantRequest{})
	return grant.AccessToken, err
}

func (p present) refresh(ctx context.Context, t AccessToken, generation uint32) (uint32, error) {
	grant, err := p.RotateRefresh(ctx, t.Agent, t.Family, generation, GrantRequest{})
	return grant.Generation, err
}

func (p present) check(ctx context.Context, t AccessToken) error { return p.CheckToken(ctx, t) }
