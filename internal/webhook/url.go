package webhook

import "net/url"

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
