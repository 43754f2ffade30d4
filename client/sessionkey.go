package client

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// SessionKeyParams describe a new session key.
type SessionKeyParams struct {
	Name string `json:"name,omitzero"` // up to 200 characters, for people; empty: none

	IdempotencyKey string `json:"-"` // empty: a random one
}

// SessionKeyInfo is a key of a session.
type SessionKeyInfo struct {
	ID        string     `json:"id"`
	SessionID string     `json:"session_id"`
	Name      string     `json:"name,omitzero"` // empty: none
	Key       Credential `json:"key,omitzero"`  // only in the response to its creation
	CreatedAt time.Time  `json:"created_at"`
}

// CreateSessionKey creates a key of an active session, for programs that take nothing but an API key: with it they act as the session's
// agent in that session alone. Only this response holds it. A session has at most 8 at a time: [ErrTooManySessionKeys].
func (o *Organization) CreateSessionKey(ctx context.Context, sessionID string, p SessionKeyParams) (SessionKeyInfo, error) {
	return decoded[SessionKeyInfo](ctx, o.caller, o.caller.client.keyed(sessionKeysPath(sessionID), p.IdempotencyKey, p))
}

// SessionKeys lists the keys of a session, newest first, without their texts.
func (o *Organization) SessionKeys(ctx context.Context, sessionID string) ([]SessionKeyInfo, error) {
	return decoded[[]SessionKeyInfo](ctx, o.caller, call{method: http.MethodGet, path: sessionKeysPath(sessionID)})
}

// DeleteSessionKey ends a session key at once.
func (o *Organization) DeleteSessionKey(ctx context.Context, sessionID, id string) error {
	return o.caller.remove(ctx, sessionKeyPath(sessionID, id))
}

// SessionWithKey returns the session of a session key. It charges, leases, begins and settles transactions, asks for more and reads; what
// concerns more than the session is [ErrSessionKeyOnly]. It uses the key until the service refuses it.
func (c *Client) SessionWithKey(key string) (*Session, error) {
	session, agent, err := idsInSessionKey(key)
	if err != nil {
		return nil, &UnusableCredential{"session key", err}
	}
	return &Session{id: session, agent: agent, caller: &caller{client: c, bearer: hide(key)}}, nil
}

// idsInSessionKey reads which session and agent a key names. The service alone verifies it.
func idsInSessionKey(key string) (session, agent string, err error) {
	digits, found := strings.CutPrefix(key, "rmsk_")
	raw, err := base64.RawURLEncoding.DecodeString(digits)
	if !found || err != nil || len(raw) != 100 { // the name of a key, 4 ids, and a HMAC of 32
		return "", "", errors.New("it is no session key of the service")
	}
	return idText(raw[20:36]), idText(raw[36:52]), nil
}

func idText(id []byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
