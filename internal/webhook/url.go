package webhook

import (
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/idna"
)

// hostOf returns the host of a webhook's URL, without the port, in one spelling of those that net/http connects to.
func hostOf(text string) string {
	parsed, err := url.Parse(text)
	if err != nil {
		return ""
	}
	host := parsed.Hostname()
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		host = ascii
	}
	if address, err := netip.ParseAddr(host); err == nil {
		return address.Unmap().String()
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// MaskURL returns the URL of a webhook for a reader who must not have what it may contain as a credential: its scheme and host, and
// "/…" for a path or a query behind them.
func MaskURL(text string) string {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" {
		return "…"
	}
	masked := parsed.Scheme + "://" + parsed.Host
	if parsed.Path == "" && parsed.RawQuery == "" {
		return masked
	}
	if parsed.Path == "/" && parsed.RawQuery == "" {
		return masked + "/"
	}
	return masked + "/…"
}
