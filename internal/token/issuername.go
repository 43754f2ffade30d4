package token

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
)

const (
	// MaxIssuerName is the length of the longest issuer of other parties' tokens, in bytes.
	MaxIssuerName = 255

	spiffeScheme = "spiffe://"
)

// CheckIssuerName returns why a text cannot name a trusted issuer, in words that follow its field; nil if it can. The name is an
// https URL, which may be http on the loopback interface, or spiffe:// and a trust domain (SPIFFE-ID §2.1).
func CheckIssuerName(name string) error {
	parsed, err := url.Parse(name)
	switch {
	case len(name) > MaxIssuerName:
		return errors.New("must have at most 255 bytes")
	case strings.HasPrefix(name, spiffeScheme):
		if !isTrustDomain(name[len(spiffeScheme):]) {
			return errors.New("must be spiffe:// and a trust domain, without a path")
		}
	case err != nil || parsed.Hostname() == "" || parsed.Opaque != "" || !isVisible(name):
		return errors.New("must be an absolute URL with a host")
	case parsed.Scheme != "https" && !(parsed.Scheme == "http" && IsLoopbackHost(parsed.Hostname())):
		return errors.New("must be an https URL, or spiffe:// and a trust domain")
	case parsed.User != nil || strings.ContainsAny(name, "?#"):
		return errors.New("must have no credentials, no query and no fragment")
	}
	return nil
}

// isTrustDomain allows the characters of SPIFFE-ID §2.1: capitals are none of them.
func isTrustDomain(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789.-_") == ""
}

// isVisible says whether a text has visible ASCII characters only.
func isVisible(text string) bool {
	return strings.IndexFunc(text, func(c rune) bool { return c <= ' ' || c > '~' }) < 0
}

// IsLoopbackHost reports whether a host of a URL is this machine.
func IsLoopbackHost(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// TrustedIssuer returns the name of the issuer that the assertion names: its iss, or without one, as SPIFFE JWT-SVIDs are, the
// trust domain of its subject. It returns "" for none, and for a trust domain that its subject does not belong to.
func (a *Assertion) TrustedIssuer() string {
	domain := trustDomain(a.Subject)
	switch {
	case a.Issuer == "":
		return domain
	case strings.HasPrefix(a.Issuer, spiffeScheme) && a.Issuer != domain:
		return ""
	}
	return a.Issuer
}

// trustDomain returns spiffe:// and the trust domain of a SPIFFE ID, and "" for any other text (SPIFFE-ID §2).
func trustDomain(id string) string {
	rest, isSPIFFE := strings.CutPrefix(id, spiffeScheme)
	domain, path, hasPath := strings.Cut(rest, "/")
	if !isSPIFFE || !isTrustDomain(domain) || !hasPath || path == "" {
		return ""
	}
	return spiffeScheme + domain
}
