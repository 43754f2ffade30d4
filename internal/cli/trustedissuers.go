package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"remit/client"
)

type trustedIssuerCommands struct {
	Create createTrustedIssuer `cmd:"" help:"Trust an issuer: its tokens become tokens of agents."`
	List   listTrustedIssuers  `cmd:"" help:"List the organization's trusted issuers, newest first."`
	Show   showTrustedIssuer   `cmd:"" help:"Show a trusted issuer."`
	Update updateTrustedIssuer `cmd:"" help:"Change a trusted issuer's keys, rules and description."`
	Delete deleteTrustedIssuer `cmd:"" help:"Trust an issuer no more."`
}

// issuerFlags are the flags of a trusted issuer that can be changed.
type issuerFlags struct {
	JWKS    keyFile `name:"jwks" env:"-" type:"path" placeholder:"FILE" help:"The issuer's public keys: a JWK Set, a JWK or PEM."`
	JWKSURI string  `name:"jwks-uri" env:"-" placeholder:"URL" help:"Where the issuer's public keys are, instead: https, with a public address."`
	Rules   []rule  `name:"rule" sep:"none" env:"-" placeholder:"AGENT:CLAIM=VALUE,…" help:"Which tokens become tokens of which agent: those with all of these claims. A value may end with /* or :*. Repeatable. Also as JSON, for claims with commas."`

	Description *string `env:"-" help:"A description for people."`
}

// rule is a flag: the id of an agent, and claims.
type rule client.TrustRule

var errNotRule = errors.New(`must be AGENT:CLAIM=VALUE,CLAIM=VALUE… or {"agent_id": "…", "claims": {"…": "…"}}`)

// UnmarshalText is called by the flag parser. Values have no comma, except in JSON.
func (r *rule) UnmarshalText(text []byte) error {
	if bytes.HasPrefix(text, []byte("{")) {
		return r.readJSON(text)
	}
	agent, claims, found := strings.Cut(string(text), ":")
	if !found || agent == "" {
		return errNotRule
	}
	r.AgentID, r.Claims = agent, map[string]string{}
	for claim := range strings.SplitSeq(claims, ",") {
		name, value, found := strings.Cut(claim, "=")
		if _, twice := r.Claims[name]; !found || name == "" || twice {
			return errNotRule
		}
		r.Claims[name] = value
	}
	return nil
}

// readJSON reads a rule in the form of the API.
func (r *rule) readJSON(text []byte) error {
	read := json.NewDecoder(bytes.NewReader(text))
	read.DisallowUnknownFields()
	if err := read.Decode((*client.TrustRule)(r)); err != nil || read.More() || r.AgentID == "" || len(r.Claims) == 0 {
		return errNotRule
	}
	return nil
}

func rulesOf(flags []rule) []client.TrustRule {
	var rules []client.TrustRule
	for _, r := range flags {
		rules = append(rules, client.TrustRule(r))
	}
	return rules
}

type createTrustedIssuer struct {
	asOrganization
	Issuer string `arg:"" help:"The issuer as its tokens name it in iss: an https URL, or spiffe://TRUST-DOMAIN."`
	issuerFlags
}

// Validate is called by the flag parser.
func (c *createTrustedIssuer) Validate() error {
	if (c.JWKS == "") == (c.JWKSURI == "") || c.Rules == nil {
		return errors.New("set either --jwks or --jwks-uri, and at least one --rule")
	}
	return nil
}

// Run creates the trusted issuer.
func (c *createTrustedIssuer) Run() error {
	return callAndShow(c, factsOfIssuer, func(ctx context.Context, o *client.Organization) (client.TrustedIssuerInfo, error) {
		keys, err := c.JWKS.read()
		if err != nil {
			return client.TrustedIssuerInfo{}, err
		}
		return o.CreateTrustedIssuer(ctx, client.TrustedIssuerParams{
			Issuer: c.Issuer, JWKSURI: c.JWKSURI, JWKS: keys, Rules: rulesOf(c.Rules), Description: orZero(c.Description),
		})
	})
}

type listTrustedIssuers struct{ asOrganization }

// Run lists the trusted issuers.
func (c *listTrustedIssuers) Run() error {
	return c.call(func(ctx context.Context, o *client.Organization) error {
		return list(c.Output, each(o.TrustedIssuers(ctx)), "ID\tISSUER\tKEYS AT\tRULES\tCREATED", func(i client.TrustedIssuerInfo) []string {
			return []string{i.ID, i.Issuer, i.JWKSURI, fmt.Sprint(len(i.Rules)), moment(i.CreatedAt)}
		})
	})
}

// issuerID is the argument of commands for one trusted issuer.
type issuerID struct {
	ID string `arg:"" help:"The trusted issuer's id."`
}

type showTrustedIssuer struct {
	asOrganization
	issuerID
}

// Run shows the trusted issuer.
func (c *showTrustedIssuer) Run() error {
	return callAndShow(c, factsOfIssuer, func(ctx context.Context, o *client.Organization) (client.TrustedIssuerInfo, error) {
		return o.GetTrustedIssuer(ctx, c.ID)
	})
}

type updateTrustedIssuer struct {
	asOrganization
	issuerID
	issuerFlags
}

// Validate is called by the flag parser.
func (c *updateTrustedIssuer) Validate() error {
	if c.JWKS == "" && c.JWKSURI == "" && c.Rules == nil && c.Description == nil {
		return errors.New("set at least one of --jwks, --jwks-uri, --rule and --description")
	}
	return nil
}

// Run changes the trusted issuer and shows it.
func (c *updateTrustedIssuer) Run() error {
	return callAndShow(c, factsOfIssuer, func(ctx context.Context, o *client.Organization) (client.TrustedIssuerInfo, error) {
		keys, err := c.JWKS.read()
		if err != nil {
			return client.TrustedIssuerInfo{}, err
		}
		changes := client.TrustedIssuerChanges{JWKSURI: c.JWKSURI, JWKS: keys, Rules: rulesOf(c.Rules), Description: c.Description}
		return o.UpdateTrustedIssuer(ctx, c.ID, changes)
	})
}

type deleteTrustedIssuer struct{ showTrustedIssuer }

// Run deletes the trusted issuer.
func (c *deleteTrustedIssuer) Run() error {
	facts := func(e ended) []Fact { return []Fact{{"TRUSTED ISSUER", e.ID}, {"STATUS", "deleted"}} }
	return callAndShow(c, facts, func(ctx context.Context, o *client.Organization) (ended, error) {
		return ended{ID: c.ID, Deleted: true}, o.DeleteTrustedIssuer(ctx, c.ID)
	})
}

func factsOfIssuer(i client.TrustedIssuerInfo) []Fact {
	facts := []Fact{
		{"ID", i.ID}, {"ISSUER", i.Issuer}, {"KEYS", shownKeys(i.JWKS)}, {"KEYS AT", i.JWKSURI},
		{"DESCRIPTION", i.Description}, {"CREATED", moment(i.CreatedAt)},
	}
	for _, r := range i.Rules {
		var claims []string
		for _, name := range slices.Sorted(maps.Keys(r.Claims)) {
			claims = append(claims, name+"="+r.Claims[name])
		}
		facts = append(facts, Fact{"AGENT " + r.AgentID, strings.Join(claims, ", ")})
	}
	return facts
}
