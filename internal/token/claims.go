package token

import (
	"cmp"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// claims is the exact claim set, in the order in which it is written. A token whose claims differ in a single byte from what
// would be written was not issued here.
type claims struct {
	Issuer       string       `json:"iss"`
	Subject      uuid.UUID    `json:"sub"`
	ID           uuid.UUID    `json:"jti"`
	Agent        uuid.UUID    `json:"agent_id"`
	Organization uuid.UUID    `json:"org_id"`
	Family       uuid.UUID    `json:"fam"`
	Scopes       []string     `json:"scopes"`
	Client       uuid.UUID    `json:"client_id,omitzero"`
	Audience     Audience     `json:"aud,omitzero"`
	Confirmation confirmation `json:"cnf,omitzero"`
	Actor        *actor       `json:"act,omitzero"`
	Families     []uuid.UUID  `json:"act_fam,omitempty"` // of the actors: not in act, which has identities alone (RFC 8693 §4.1)
	Session      uuid.UUID    `json:"session_id,omitzero"`
	Issued       int64        `json:"iat"`
	Expires      int64        `json:"exp"`
}

// confirmation names the key that a token is bound to (RFC 7800 §3, RFC 9449 §6.1).
type confirmation struct {
	Thumbprint string `json:"jkt"`
}

// actor is who acts on the subject's behalf (RFC 8693 §4.1), with who acts on its behalf.
type actor struct {
	Subject uuid.UUID `json:"sub"`
	Actor   *actor    `json:"act,omitzero"`
}

func claimsOf(a Access, issuer string, id uuid.UUID) claims {
	c := claims{
		Issuer: issuer, Subject: a.Agent, ID: id, Agent: a.Agent, Organization: a.Organization, Family: a.Family, Scopes: a.Scopes,
		Client: a.Client, Audience: a.Audience, Confirmation: confirmation{a.Thumbprint}, Session: a.Session,
		Issued: a.Issued.Unix(), Expires: a.Expires().Unix(),
	}
	for i := range a.Actors {
		c.Actor = &actor{a.Actors[len(a.Actors)-1-i].Agent, c.Actor}
		c.Families = append(c.Families, a.Actors[i].Family)
	}
	return c
}

func (c claims) access() Access {
	a := Access{
		Agent: c.Agent, Organization: c.Organization, Family: c.Family, Scopes: c.Scopes, Issued: time.Unix(c.Issued, 0),
		Audience: c.Audience, Client: c.Client, Thumbprint: c.Confirmation.Thumbprint, Session: c.Session,
	}
	for one := c.Actor; one != nil; one = one.Actor {
		next := Actor{Agent: one.Subject}
		if i := len(a.Actors); i < len(c.Families) {
			next.Family = c.Families[i]
		}
		a.Actors = append(a.Actors, next)
	}
	if lasts := c.Expires - c.Issued; a.Delegated() && lasts > 0 && lasts < int64(AccessLifetime/time.Second) {
		a.Lifetime = time.Duration(lasts) * time.Second
	}
	return a
}

// append writes the claims without reflection. It returns an error for texts that are not UTF-8.
func (c claims) append(text []byte) ([]byte, error) {
	text, err := jsontext.AppendQuote(append(text, `{"iss":`...), c.Issuer)
	for _, id := range []struct {
		name string
		id   uuid.UUID
	}{{"sub", c.Subject}, {"jti", c.ID}, {"agent_id", c.Agent}, {"org_id", c.Organization}, {"fam", c.Family}} {
		text = appendMember(text, id.name, id.id)
	}
	text, failed := appendTexts(append(text, `,"scopes":`...), c.Scopes)
	err = cmp.Or(err, failed)
	if c.Client != uuid.Nil {
		text = appendMember(text, "client_id", c.Client)
	}
	if len(c.Audience) > 0 {
		text, failed = c.Audience.append(append(text, `,"aud":`...))
		err = cmp.Or(err, failed)
	}
	if c.Confirmation.Thumbprint != "" {
		text, failed = jsontext.AppendQuote(append(text, `,"cnf":{"jkt":`...), c.Confirmation.Thumbprint)
		text, err = append(text, '}'), cmp.Or(err, failed)
	}
	text = appendFamilies(c.Actor.append(text), c.Families)
	if c.Session != uuid.Nil {
		text = appendMember(text, "session_id", c.Session)
	}
	text = strconv.AppendInt(append(text, `,"iat":`...), c.Issued, 10)
	text = strconv.AppendInt(append(text, `,"exp":`...), c.Expires, 10)
	return append(text, '}'), err
}

// append writes the actor as the member act, and nothing for no actor.
func (a *actor) append(text []byte) []byte {
	if a == nil {
		return text
	}
	text = append(appendID(append(text, `,"act":{"sub":"`...), a.Subject), '"')
	return append(a.Actor.append(text), '}')
}

// appendFamilies appends the families of actors, and nothing for no actor.
func appendFamilies(text []byte, families []uuid.UUID) []byte {
	opening := `,"act_fam":["`
	for _, family := range families {
		text = append(appendID(append(text, opening...), family), '"')
		opening = `,"`
	}
	if len(families) > 0 {
		text = append(text, ']')
	}
	return text
}

// appendMember appends a member of an object that is not its first.
func appendMember(text []byte, name string, id uuid.UUID) []byte {
	text = append(append(append(text, `,"`...), name...), `":"`...)
	return append(appendID(text, id), '"')
}

func appendTexts(text []byte, texts []string) ([]byte, error) {
	var err, failed error
	text = append(text, '[')
	for i, one := range texts {
		if i > 0 {
			text = append(text, ',')
		}
		text, failed = jsontext.AppendQuote(text, one)
		err = cmp.Or(err, failed)
	}
	return append(text, ']'), err
}

// appendID is redisstore.AppendID, which this package does not know. A token has seven of them.
func appendID(text []byte, id uuid.UUID) []byte {
	var digits [32]byte
	hex.Encode(digits[:], id[:])
	written := [36]byte{8: '-', 13: '-', 18: '-', 23: '-'}
	copy(written[:8], digits[:8])
	copy(written[9:13], digits[8:12])
	copy(written[14:18], digits[12:16])
	copy(written[19:23], digits[16:20])
	copy(written[24:], digits[20:])
	return append(text, written[:]...)
}
