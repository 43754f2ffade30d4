package token

import (
	"bytes"
	"encoding/base64"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

const (
	// AccessLifetime is how long an access token is valid.
	AccessLifetime = time.Hour
	// RefreshLifetime is how long a refresh token is valid.
	RefreshLifetime = 7 * 24 * time.Hour
	// MaxAccessSize is the maximum length of an access token in bytes. Longer ones are rejected unread.
	MaxAccessSize = 3072

	accessTokenType = "at+jwt" // RFC 9068 §2.1

	// maxClockSkew bounds how far the clock of the issuing instance may be ahead. A later iat is rejected, because the lifetime
	// counts from iat.
	maxClockSkew = 30 * time.Second
)

// SignAccess returns a signed JWT (RFC 7519, RFC 9068) that is valid from a.Issued until a.Expires. It returns ErrClaims for fields
// that no token has together, and ErrAccessSize when the token would exceed MaxAccessSize.
func (k *Keyring) SignAccess(a Access) (string, error) {
	text, err := k.unsigned(a)
	if err != nil {
		return "", err
	}
	signature, err := k.signing[0].method.Sign(string(text), k.signing[0].private)
	if err != nil {
		return "", err
	}
	return string(base64.RawURLEncoding.AppendEncode(append(text, '.'), signature)), nil
}

// LooksLikeJWT says whether a text has the three parts of a JWT and begins as a JSON object does, valid or not.
func LooksLikeJWT(text string) bool {
	return strings.HasPrefix(text, "eyJ") && strings.Count(text, ".") == 2
}

// CheckAccess returns the error that SignAccess would return.
func (k *Keyring) CheckAccess(a Access) error {
	_, err := k.unsigned(a)
	return err
}

// MayBeTooLong reports whether there are tokens of one agent, with as many scopes and audiences as it may have, that SignAccess refuses
// as too long. With signatures of up to 256 bytes there are none.
func (k *Keyring) MayBeTooLong() bool { return k.signing[0].signatureSize() > minRSABits/8 }

// unsigned returns the header and the claims of a token.
func (k *Keyring) unsigned(a Access) ([]byte, error) {
	if a.check() != nil {
		return nil, ErrClaims
	}
	key := k.signing[0]
	payload, err := claimsOf(a, k.issuer, uuid.New()).append(make([]byte, 0, 640))
	if err != nil {
		return nil, err
	}
	text := append(append(make([]byte, 0, 1280), key.header...), '.')
	text = base64.RawURLEncoding.AppendEncode(text, payload)
	if len(text)+1+base64.RawURLEncoding.EncodedLen(key.signatureSize()) > MaxAccessSize {
		return nil, ErrAccessSize
	}
	return text, nil
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
	header, payload, signature, ok := cutJWT(text, MaxAccessSize)
	if !ok {
		return "", "", "", ErrMalformed
	}
	for i := range len(text) {
		if !isBase64URL(text[i]) && text[i] != '.' {
			return "", "", "", ErrMalformed
		}
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
	if written, err := c.append(make([]byte, 0, len(raw))); err != nil || !bytes.Equal(written, raw) {
		return Access{}, ErrClaims
	}
	access := c.access()
	switch {
	case c.Issuer != k.issuer, c.ID == uuid.Nil, c.Organization == uuid.Nil, c.Family == uuid.Nil,
		c.Agent == uuid.Nil, c.Subject != c.Agent, c.Issued <= 0, c.Expires-c.Issued != int64(access.lifetime()/time.Second),
		len(c.Families) != len(access.Actors), access.check() != nil:
		return Access{}, ErrClaims
	case access.Issued.After(now.Add(maxClockSkew)):
		return Access{}, ErrClaims
	case !now.Before(access.Expires()):
		return Access{}, ErrExpired
	}
	return access, nil
}
