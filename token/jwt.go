package token

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

const (
	// AccessLifetime is how long an access token is valid.
	AccessLifetime = time.Hour
	// RefreshLifetime is how long a refresh token is valid.
	RefreshLifetime = 7 * 24 * time.Hour
	// MaxAccessSize is the maximum length of an access token in bytes. Longer ones are rejected unread.
	MaxAccessSize = 2048

	accessTokenType = "at+jwt" // RFC 9068 §2.1

	// maxClockSkew bounds how far the clock of the issuing instance may be ahead. A later iat is rejected, because the lifetime
	// counts from iat.
	maxClockSkew = 30 * time.Second
)

// Access is the content of an access token.
type Access struct {
	Agent        uuid.UUID
	Organization uuid.UUID
	Family       uuid.UUID // the refresh token family it was issued with
	Scopes       []string
	Issued       time.Time // to the second; it expires AccessLifetime later
}

// Expires returns when the token expires.
func (a Access) Expires() time.Time { return a.Issued.Add(AccessLifetime) }

// claims is the exact claim set, in the order in which it is written. A token whose claims differ in a single byte from what
// would be written was not issued here.
type claims struct {
	Issuer       string    `json:"iss"`
	Subject      uuid.UUID `json:"sub"`
	ID           uuid.UUID `json:"jti"`
	Agent        uuid.UUID `json:"agent_id"`
	Organization uuid.UUID `json:"org_id"`
	Family       uuid.UUID `json:"fam"`
	Scopes       []string  `json:"scopes"`
	Issued       int64     `json:"iat"`
	Expires      int64     `json:"exp"`
}

// append writes the claims without reflection. It returns an error for scopes that are not UTF-8.
func (c claims) append(text []byte) ([]byte, error) {
	text, err := jsontext.AppendQuote(append(text, `{"iss":`...), c.Issuer)
	for _, id := range []struct {
		name string
		id   uuid.UUID
	}{{"sub", c.Subject}, {"jti", c.ID}, {"agent_id", c.Agent}, {"org_id", c.Organization}, {"fam", c.Family}} {
		text = append(append(append(text, `,"`...), id.name...), `":"`...)
		text = append(appendID(text, id.id), '"')
	}
	text = append(text, `,"scopes":[`...)
	for i, scope := range c.Scopes {
		if i > 0 {
			text = append(text, ',')
		}
		var failed error
		text, failed = jsontext.AppendQuote(text, scope)
		err = cmp.Or(err, failed)
	}
	text = strconv.AppendInt(append(text, `],"iat":`...), c.Issued, 10)
	text = strconv.AppendInt(append(text, `,"exp":`...), c.Expires, 10)
	return append(text, '}'), err
}

// appendID appends the id in its text form (RFC 9562 §4).
func appendID(text []byte, id uuid.UUID) []byte {
	text = hex.AppendEncode(text, id[:4])
	for _, part := range [][]byte{id[4:6], id[6:8], id[8:10], id[10:]} {
		text = hex.AppendEncode(append(text, '-'), part)
	}
	return text
}

// SignAccess returns a signed JWT (RFC 7519) that is valid for AccessLifetime from a.Issued on. It returns ErrKey when the
// token would exceed MaxAccessSize, which happens only with long scopes and RSA keys above 2048 bits.
func (k *Keyring) SignAccess(a Access) (string, error) {
	key := k.signing[0]
	payload, err := claims{
		Issuer: k.issuer, Subject: a.Agent, ID: uuid.New(), Agent: a.Agent, Organization: a.Organization,
		Family: a.Family, Scopes: a.Scopes, Issued: a.Issued.Unix(), Expires: a.Issued.Add(AccessLifetime).Unix(),
	}.append(make([]byte, 0, 512))
	if err != nil {
		return "", err
	}
	text := append(append(make([]byte, 0, 1024), key.header...), '.')
	text = base64.RawURLEncoding.AppendEncode(text, payload)
	signature, err := key.method.Sign(string(text), key.private)
	if err != nil {
		return "", err
	}
	text = base64.RawURLEncoding.AppendEncode(append(text, '.'), signature)
	if len(text) > MaxAccessSize {
		return "", fmt.Errorf("%w: its signatures make an access token longer than %d bytes", ErrKey, MaxAccessSize)
	}
	return string(text), nil
}

// VerifyAccess returns the content of an access token that a key of this keyring signed and that has not expired by now.
// Otherwise it returns ErrMalformed, ErrUnknownKey, ErrSignature, ErrClaims or ErrExpired. There is no leeway on exp; iat may
// be 30 s ahead, because another instance may have issued the token. The store decides whether agent and family are still
// active.
//
// The header must equal, byte for byte, one that the keys write. The token thus cannot choose alg, typ or kid, and cannot
// carry crit, jwk or x5u.
func (k *Keyring) VerifyAccess(text string, now time.Time) (Access, error) {
	header, payload, signature, err := split(text)
	if err != nil {
		return Access{}, err
	}
	key := k.headers[header]
	if key == nil {
		return Access{}, ErrUnknownKey
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(signature)
	if err != nil {
		return Access{}, ErrMalformed
	}
	if key.method.Verify(text[:len(header)+1+len(payload)], raw, key.private.Public()) != nil {
		return Access{}, ErrSignature
	}
	return k.readClaims(payload, now)
}

// split rejects characters outside the base64url alphabet, which decoders skip (line breaks) or treat as padding.
func split(text string) (header, payload, signature string, err error) {
	if len(text) > MaxAccessSize {
		return "", "", "", ErrMalformed
	}
	for i := range len(text) {
		if !isBase64URL(text[i]) && text[i] != '.' {
			return "", "", "", ErrMalformed
		}
	}
	header, rest, found := strings.Cut(text, ".")
	payload, signature, more := strings.Cut(rest, ".")
	if !found || !more || strings.Contains(signature, ".") {
		return "", "", "", ErrMalformed
	}
	return header, payload, signature, nil
}

func isBase64URL(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

func (k *Keyring) readClaims(payload string, now time.Time) (Access, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(payload)
	if err != nil {
		return Access{}, ErrMalformed
	}
	var c claims
	if json.Unmarshal(raw, &c, json.RejectUnknownMembers(true)) != nil {
		return Access{}, ErrClaims
	}
	if written, err := json.Marshal(c); err != nil || !bytes.Equal(written, raw) {
		return Access{}, ErrClaims
	}
	issued := time.Unix(c.Issued, 0)
	switch {
	case c.Issuer != k.issuer, c.ID == uuid.Nil, c.Organization == uuid.Nil, c.Family == uuid.Nil,
		c.Agent == uuid.Nil, c.Subject != c.Agent, c.Issued <= 0,
		c.Expires-c.Issued != int64(AccessLifetime/time.Second):
		return Access{}, ErrClaims
	case issued.After(now.Add(maxClockSkew)):
		return Access{}, ErrClaims
	case !now.Before(issued.Add(AccessLifetime)):
		return Access{}, ErrExpired
	}
	return Access{Agent: c.Agent, Organization: c.Organization, Family: c.Family, Scopes: c.Scopes, Issued: issued}, nil
}
