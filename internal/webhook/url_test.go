package webhook

import "testing"

func TestAMaskedURLShowsSchemeAndHostOnly(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"https://hooks.example.com/services/T0/B0/secret": "https://hooks.example.com/…", "https://example.com:8443/?token=secret": "https://example.com:8443/…",
		"https://example.com?token=secret": "https://example.com/…", "https://example.com/%2e": "https://example.com/…",
		"https://example.com": "https://example.com", "https://example.com/": "https://example.com/", "https://[2a00::1]:8443/a": "https://[2a00::1]:8443/…",
		"https://user:secret@example.com/": "https://example.com/", "https://example.com/#secret": "https://example.com/", "https://secret%": "…",
	} {
		wantEqual(t, url, MaskURL(url), want)
	}
}

func TestAHostHasOneRateHoweverItIsSpelled(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ url, want string }{
		{"https://Hooks.Example.com./a?b", "hooks.example.com"}, {"https://hooks.example.com:8443", "hooks.example.com"},
		{"https://ｈooks.example.com", "hooks.example.com"}, {"https://bücher.example", "xn--bcher-kva.example"},
		{"https://[2606:4700:0::1111]:8443/", "2606:4700::1111"}, {"https://[::ffff:8.8.8.8]/", "8.8.8.8"},
	} {
		wantEqual(t, test.url, hostOf(test.url), test.want)
	}
}
