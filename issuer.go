package main

import (
	"context"
	"errors"
	"net/url"
)

// settleIssuer finds the issuer that all instances on this Redis share. The first of them that was not told one sets it.
func (k *keySource) settleIssuer(ctx context.Context) (err error) {
	switch {
	case k.issuer != "":
		return nil
	case k.ownRedis:
		if err = k.store.SetIssuer(ctx, k.ownURL); err == nil {
			k.issuer = k.ownURL
		}
	default:
		k.issuer, err = k.store.KeepIssuer(ctx, k.ownURL)
		if err == nil && !isIssuer(k.issuer) {
			err = errors.New("the issuer that Redis keeps is no URL of a host")
		}
	}
	return err
}

// isIssuer says whether a URL can be an issuer that clients discover the service by (RFC 8414 §2): its metadata lies at
// a path of its own, so it has none.
func isIssuer(text string) bool {
	issuer, err := url.Parse(text)
	return err == nil && (issuer.Scheme == "https" || issuer.Scheme == "http") && issuer.Host != "" &&
		text == issuer.Scheme+"://"+issuer.Host
}
