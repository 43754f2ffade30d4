package outbound

import (
	"strings"
	"testing"
)

func TestAWrongURLIsRefusedWithAReason(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ url, want string }{
		{"", "absolute"}, {"example.com/hook", "absolute"}, {"https://", "absolute"}, {"https:///hook", "absolute"}, {"https:hook", "absolute"},
		{"https://:443/", "absolute"}, {"ftp://example.com/", "https"}, {"file:///etc/passwd", "absolute"}, {"http://example.com/", "plain http"},
		{"https://user@example.com/", "credentials"}, {"https://user:secret@example.com/", "credentials"}, {"https://example.com/#part", "fragment"},
		{"https://example.com:0/", "port"}, {"https://example.com:65536/", "port"}, {"https://example.com:x/", "absolute"},
		{"https://example.com:22/", "port 443"}, {"https://example.com:80/", "port 443"}, {"https://example.com:1023/", "port 443"},
		{"https://example.com/\x00", "absolute"}, {"https://exa mple.com/", "absolute"},
		{"https://example.com/" + strings.Repeat("a", MaxURL), "2048"},
	} {
		if err := CheckURL(test.url, false); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.60q: %v, want %s", test.url, err, test.want)
		}
	}
	for _, url := range []string{"https://example.com", "https://example.com:8443/a/b?c=d", "https://example.com:443/", "https://example.com:1024/",
		"https://example.com:65535/", "https://[2001:db8::1]/", "HTTPS://EXAMPLE.COM/"} {
		if err := CheckURL(url, false); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	for _, url := range []string{"http://localhost:8080/hook", "http://localhost:80/hook"} {
		if err := CheckURL(url, true); err != nil {
			t.Errorf("%s, where plain http is allowed: %v", url, err)
		}
	}
}
