package cli

import (
	"context"

	"remit/client"
)

type sessionKeyCommands struct {
	Create createSessionKey `cmd:"" help:"Create a key of an active session and print it: a credential for that session alone."`
	List   listSessionKeys  `cmd:"" help:"List a session's keys, newest first."`
	Delete deleteSessionKey `cmd:"" help:"Delete a session key at once."`
}

type createSessionKey struct {
	asOrganization
	Session string `arg:"" name:"session-id" help:"The session's id."`
	Name    string `env:"-" help:"Name of the key, for people: who or what has it."`
}

// Run creates the key.
func (c *createSessionKey) Run() error {
	return c.call(func(ctx context.Context, o *client.Organization) error {
		made, err := o.CreateSessionKey(ctx, c.Session, client.SessionKeyParams{Name: c.Name})
		if err != nil {
			return err
		}
		ShownOnce("session key")
		key := string(made.Key)
		return c.Show(struct {
			client.SessionKeyInfo
			Key string `json:"key"`
		}{made, key}, []Fact{
			{"ID", made.ID}, {"SESSION", made.SessionID}, {"NAME", made.Name}, {"CREATED", moment(made.CreatedAt)}, {"SESSION KEY", key},
		})
	})
}

type listSessionKeys struct {
	asOrganization
	Session string `arg:"" name:"session-id" help:"The session's id."`
}

// Run lists the keys.
func (c *listSessionKeys) Run() error {
	return c.call(func(ctx context.Context, o *client.Organization) error {
		return list(c.Output, each(o.SessionKeys(ctx, c.Session)), "ID\tNAME\tCREATED", func(k client.SessionKeyInfo) []string {
			return []string{k.ID, k.Name, moment(k.CreatedAt)}
		})
	})
}

type deleteSessionKey struct {
	asOrganization
	Session string `arg:"" name:"session-id" help:"The session's id."`
	ID      string `arg:"" name:"key-id" help:"The key's id, as the list shows it."`
}

// Run deletes the key.
func (c *deleteSessionKey) Run() error {
	facts := func(e ended) []Fact { return []Fact{{"KEY", e.ID}, {"STATUS", "deleted"}} }
	return callAndShow(c, facts, func(ctx context.Context, o *client.Organization) (ended, error) {
		return ended{ID: c.ID, Deleted: true}, o.DeleteSessionKey(ctx, c.Session, c.ID)
	})
}
