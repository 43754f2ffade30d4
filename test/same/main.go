// Command same makes every call of the Go SDK, and prints the outcome of each as JSON. same.py beside it and
// sdk/typescript/test/same.ts make the same calls. A test compares what the three print and send with the
// traces in sdk/testdata/same.
//
//	same service     makes the calls to the service at REMIT_ADDR
//	same contract    makes the calls that need states which a test cannot create; the test plays the service
//	same identity    makes the calls about keys, audiences and delegation to the service
//	same identity-contract  makes those of them whose answers the test plays
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"regexp"
	"strings"
	"time"

	"remit/client"
	"remit/money"
)

// steps holds the name and the outcome of each call, in order.
type steps [][2]string

func (s *steps) add(name string, format string, values ...any) {
	*s = append(*s, [2]string{name, fmt.Sprintf(format, values...)})
}

func main() {
	log.SetFlags(0)
	remit, err := client.FromEnv(client.Options{})
	must(err)
	var done steps
	switch os.Args[1] {
	case "service":
		o, scout := organizations(&done, remit)
		session := sessions(&done, o, scout.ID)
		charges(&done, o, session)
		transactions(&done, o, session)
		tokens(&done, remit, o, scout.ID)
		refusals(&done, remit, o, session)
		served(&done, remit, o)
		reports(&done, remit, o)
		priced(&done, session)
		ends(&done, o, scout.ID, session)
	case "contract":
		contract(&done, remit)
		fleet(&done, remit)
		contractTold(&done, remit.Organization("rmk_1"))
	case "identity":
		identity(&done, remit)
	case "identity-contract":
		contractIdentity(&done, remit)
	}
	must(json.NewEncoder(os.Stdout).Encode(done))
}

var ctx = context.Background()

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func get[T any](value T, err error) T {
	must(err)
	return value
}

func count[T any](list func(func(T, error) bool)) (n int) {
	for _, err := range list {
		must(err)
		n++
	}
	return n
}

// answered returns an error's text from the status on, without the request id.
func answered(err error) string {
	return regexp.MustCompile(`\d{3} [^(]*`).FindString(err.Error())
}

func as[E error](err error) E {
	var found E
	if !errors.As(err, &found) {
		log.Fatalf("unexpected error: %v", err)
	}
	return found
}

func organizations(done *steps, remit *client.Client) (*client.Organization, client.AgentInfo) {
	made := get(remit.CreateOrganization(ctx, client.OrganizationParams{Name: "acme", Metadata: map[string]int{"tier": 1}}))
	done.add("create an organization", "%s %t", made.Name, made.APIKey != "")
	key := get(remit.Organization(string(made.APIKey)).RotateKey(ctx, made.ID, client.RotateKeyParams{}))
	done.add("rotate its API key", "%t", key.APIKey != made.APIKey)
	o := remit.Organization(string(key.APIKey))
	info := get(o.Info(ctx, made.ID))
	done.add("read an organization", "%s %s %t", info.Name, info.Metadata, info.APIKey == "")
	scout := get(o.CreateAgent(ctx, client.AgentParams{Name: "scout", Scopes: []string{"read", "pay", "transactions:rollback"}}))
	done.add("create an agent", "%s %s %q", scout.Name, scout.Status, scout.Scopes)
	done.add("read an agent", "%s", get(o.GetAgent(ctx, scout.ID)).Name)
	done.add("list agents", "%d", count(o.Agents(ctx, client.AgentFilter{Status: "active"})))
	rotated := get(o.RotateAgentSecret(ctx, scout.ID, client.RotateSecretParams{}))
	done.add("rotate an agent's secret", "%t", rotated.Secret != scout.Secret)
	scout.Secret = rotated.Secret
	os.Setenv("REMIT_API_KEY", string(key.APIKey))
	os.Setenv("REMIT_AGENT", scout.ID)
	os.Setenv("REMIT_SECRET", string(scout.Secret))
	return o, scout
}

func sessions(done *steps, o *client.Organization, scout string) *client.Session {
	made := get(o.CreateSession(ctx, client.SessionParams{AgentID: scout, MaxActions: 10, MaxValue: new(5 * money.USD), Scopes: []string{"read", "transactions:rollback"}}))
	done.add("create a session", "%d %s %q %s", made.MaxActions, made.MaxValue, made.Scopes, made.Status)
	done.add("read a session", "%d", get(o.GetSession(ctx, made.ID)).MaxActions)
	done.add("list sessions", "%d", count(o.Sessions(ctx, client.SessionFilter{AgentID: scout, Status: "active"})))
	changed := get(o.UpdateSession(ctx, made.ID, client.SessionLimits{MaxActions: 20}))
	done.add("change a session's limits", "%d %s", changed.MaxActions, changed.MaxValue)
	os.Setenv("REMIT_SESSION", made.ID)
	session := get(client.SessionFromEnv(client.Options{}))
	agent, own := get(client.AgentFromEnv(client.Options{})), get(client.OrganizationFromEnv(client.Options{}))
	done.add("settings from the environment", "%t %t %d", session.ID() == made.ID, agent.ID() == scout, count(own.Agents(ctx, client.AgentFilter{})))
	return session
}

func shown(u client.Usage) string {
	return fmt.Sprintf("%d of %d, %s of %s, %s held", u.ActionCount, u.MaxActions, u.ValueUsed, u.MaxValue, u.ValueHeld)
}

func charges(done *steps, o *client.Organization, session *client.Session) {
	done.add("charge", "%s", shown(get(session.Charge(ctx, client.Charge{ActionType: "llm.call", Value: 37 * money.USD / 100, Count: 2, Scope: "read"}))))
	results := get(session.ChargeMany(ctx, []client.Charge{{Value: money.USD}, {Value: 9 * money.USD}}, client.BatchOptions{}))
	done.add("charge many", "%s; %s", shown(results[0].Usage), as[*client.LimitReached](results[1].Err).Limit)
	lease(done, o, session)
	limit := as[*client.LimitReached](second(session.Charge(ctx, client.Charge{Value: 9 * money.USD})))
	done.add("a limit is reached", "%s %s %d %s %s", limit.Limit, limit.RemainingValue, limit.NeededActions, limit.NeededValue, answered(limit))
	below := as[*client.LimitBelowUsage](second(o.UpdateSession(ctx, session.ID(), client.SessionLimits{MaxActions: 1})))
	done.add("limits below what is used", "%s %s", below.Limit, answered(below))
}

func lease(done *steps, o *client.Organization, session *client.Session) {
	allowed := get(o.UpdateSession(ctx, session.ID(), client.SessionLimits{MaxLease: new(time.Minute)}))
	done.add("allow leases", "%d", allowed.MaxLeaseSeconds)
	leased := get(session.Lease(ctx, client.LeaseOptions{}))
	done.add("lease", "%t", true)
	must(leased.Charge(ctx, client.Charge{ActionType: "llm.call", Value: money.USD / 4}))
	done.add("charge a lease", "%t", true)
	must(leased.Close(ctx))
	must(leased.Close(ctx))
	info := get(session.Get(ctx))
	done.add("close a lease", "%d %s", info.ActionCount, info.ValueUsed)
	done.add("a lease was closed", "%t", errors.Is(leased.Charge(ctx, client.Charge{}), client.ErrLeaseClosed))
}

func second[T any](_ T, err error) error { return err }

// block is the Go form of a transaction block: a function with a deferred rollback that commits at its end.
func block(session *client.Session, work func() error) (client.TransactionInfo, error) {
	tx := get(session.Begin(ctx, client.TransactionParams{ActionType: "payment", Value: money.USD / 2}))
	err := func() error {
		defer func() { _ = tx.Rollback(ctx, "not finished") }() // does nothing after a Commit
		if err := work(); err != nil {
			return err
		}
		return tx.Commit(ctx, client.CommitParams{})
	}()
	return get(tx.Get(ctx)), err
}

func transactions(done *steps, o *client.Organization, session *client.Session) {
	tx := get(session.Begin(ctx, client.TransactionParams{ActionType: "payment", PreState: map[string]int{"balance": 7}, Value: money.USD}))
	done.add("begin", "%s %s %s", tx.Info().Status, tx.Info().ValueHeld, tx.Info().PreState)
	must(tx.Commit(ctx, client.CommitParams{Value: new(3 * money.USD / 4)}))
	done.add("commit", "%s %s", tx.Info().Status, tx.Info().Value)
	done.add("a transaction was settled here", "%t", errors.Is(tx.Commit(ctx, client.CommitParams{}), client.ErrTransactionDone))
	opened := o.Transaction(tx.ID())
	done.add("open a transaction by its id", "%s", get(opened.Get(ctx)).Status)
	must(opened.Reverse(ctx, "wrong account"))
	done.add("reverse", "%s %s", opened.Info().Status, opened.Info().Reason)

	bare := get(session.Begin(ctx, client.TransactionParams{ActionType: "edit"}))
	must(o.Transaction(bare.ID()).Rollback(ctx, "never mind"))
	done.add("roll back", "%s %s", get(bare.Get(ctx)).Status, bare.Info().PreState)
	elsewhere := as[*client.TransactionNotPending](bare.Commit(ctx, client.CommitParams{}))
	done.add("a transaction was settled elsewhere", "%s", elsewhere.TransactionStatus)
	final := get(session.Begin(ctx, client.TransactionParams{ActionType: "mail", Irreversible: true}))
	must(final.Commit(ctx, client.CommitParams{}))
	done.add("a transaction is irreversible", "%s", as[*client.TransactionNotReversible](o.Transaction(final.ID()).Reverse(ctx, "")).TransactionStatus)

	ended, err := block(session, func() error { return nil })
	done.add("a block that ends normally", "%s %s %v", ended.Status, ended.Value, err == nil)
	failed, err := block(session, func() error { return errors.New("the act failed") })
	done.add("a block that an error ends", "%s %s %v", failed.Status, failed.Reason, err.Error() == "the act failed")
	done.add("list transactions", "%d", count(o.Transactions(ctx, client.TransactionFilter{SessionID: session.ID()})))
}

func tokens(done *steps, remit *client.Client, o *client.Organization, scout string) {
	agent := get(client.AgentFromEnv(client.Options{}))
	first := get(agent.Token(ctx))
	done.add("an access token", "%t", strings.HasPrefix(first, "eyJ"))
	must(agent.Refresh(ctx))
	done.add("renew it", "%t", get(agent.Token(ctx)) != first)
	pair := get(remit.Exchange(ctx, scout, os.Getenv("REMIT_SECRET")))
	done.add("exchange a secret", "%t %d", pair.RefreshToken != "", pair.ExpiresIn)
	verified := get(remit.Verify(ctx, string(pair.AccessToken), "read"))
	done.add("verify a token", "%t %q", verified.AgentID == scout, verified.Scopes)
	introspection := get(o.Introspect(ctx, string(pair.AccessToken)))
	done.add("introspect a token", "%t %t %q", introspection.Active, introspection.AgentID == scout, strings.Fields(introspection.Scope))
}

func refusals(done *steps, remit *client.Client, o *client.Organization, session *client.Session) {
	lacks := as[*client.InsufficientScope](second(session.Charge(ctx, client.Charge{Scope: "pay"})))
	done.add("a scope is lacking", "%s", lacks.RequiredScope)
	wrong := second(remit.Verify(ctx, "nonsense", ""))
	done.add("a credential is wrong", "%t", errors.Is(wrong, client.ErrUnauthorized))
	const nobody = "00000000-0000-4000-8000-000000000000"
	done.add("nothing is there", "%t", errors.Is(second(o.GetSession(ctx, nobody)), client.ErrNotFound))
	get(session.Charge(ctx, client.Charge{IdempotencyKey: "own"}))
	reused := second(session.Charge(ctx, client.Charge{IdempotencyKey: "own", Count: 2}))
	done.add("a key was used for another request", "%t", errors.Is(reused, client.ErrKeyReused))
	invalid := second(o.CreateSession(ctx, client.SessionParams{AgentID: "nobody"}))
	done.add("a field is invalid", "%s: %s", as[*client.Problem](invalid).Fields[0].Field, answered(invalid))
}

func ends(done *steps, o *client.Organization, scout string, session *client.Session) {
	must(session.End(ctx))
	must(o.EndSession(ctx, session.ID()))
	done.add("end a session", "%s", get(session.Get(ctx)).Status)
	over := as[*client.SessionNotActive](second(session.Charge(ctx, client.Charge{})))
	done.add("a session has ended", "%s", over.SessionStatus)
	for event, err := range o.Events(ctx, scout, "") {
		must(err)
		done.add("follow an audit trail", "%s %s", event.Type, event.Actor.Type)
		break
	}
	var trail []string
	for event, err := range o.ListEvents(ctx, scout, "") {
		must(err)
		trail = append(trail, string(event.Type))
		if event.Type == "lease.settled" {
			done.add("an event of a lease", "%t", event.LeaseID != "")
		}
	}
	done.add("read an audit trail to its end", "%s %s", trail[0], trail[len(trail)-1])
	must(o.RevokeAgent(ctx, scout))
	done.add("revoke an agent", "%s", get(o.GetAgent(ctx, scout)).Status)
}
