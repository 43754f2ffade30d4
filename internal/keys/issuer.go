package keys

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"remit/redisstore"
)

// Issuer says which iss claim access tokens carry.
type Issuer struct {
	Given    string // by --issuer; "" takes the one that all instances on this Redis share
	Listens  string // the instance's own URL, which becomes the shared issuer when Redis has none; "" waits for another's
	OwnRedis bool   // the instance started its Redis itself, so Listens replaces whatever issuer is stored there
}

// resolve returns the issuer, stores one if need be, and remembers it.
func (i *Issuer) resolve(ctx context.Context, store *redisstore.Store) (string, error) {
	if i.Given != "" {
		return i.Given, nil
	}
	issuer := i.Listens
	var err error
	if i.OwnRedis {
		err = store.SetIssuer(ctx, issuer)
	} else if issuer, err = store.KeepIssuer(ctx, issuer); err == nil && issuer == "" {
		err = fmt.Errorf("no instance of the service has stored an issuer yet: start one, or set --issuer: %w", redisstore.ErrUnavailable)
	} else if err == nil && !IsIssuer(issuer) {
		err = errors.New("the issuer stored in Redis is not the URL of a host")
	}
	if err != nil {
		return "", err
	}
	i.Given = issuer
	return issuer, nil
}

// IsIssuer reports whether a text can be an issuer: an http or https URL of a host, without a path, because clients find
// its metadata at a well-known path (RFC 8414 §2).
func IsIssuer(text string) bool {
	issuer, err := url.Parse(text)
	return err == nil && (issuer.Scheme == "https" || issuer.Scheme == "http") && issuer.Host != "" &&
		text == issuer.Scheme+"://"+issuer.Host
}
