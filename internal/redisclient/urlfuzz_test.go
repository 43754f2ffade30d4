package redisclient

import (
	"fmt"
	"net"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// FuzzURL checks that an accepted URL is unambiguous: its canonical form is accepted too and means the same, also to
// go-redis's own parser. No error quotes a URL, because it may contain a password.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{
		"", "redis://", "redis://localhost", "redis://u:p@localhost:6380/3", "rediss://[::1]:1/2", "redis://[::1", "redis://::1", "redis://::1:6379", "redis://]a[", "redis://a b",
		"redis://a#b", "redis://a?b", "redis://a/0/1", "redis://a/ 1", "redis://a/-1", "redis://a/65536", "redis://a:0", "redis://a:65535", "redis://a:65536", "redis://a:", "redis://:6379",
		"redis://a:1:2", "redis://a,b", "redis://u:p%40@h", "redis://u:p%zz@h", "redis://u:p@q@h", "redis://u:p/q@h", "redis://%00:p@h", "redis://h%41", "redis://@h", "redis://:@h",
		"redis+sentinel://a,b:1,[::1]:2/main/3", "redis+sentinel://a", "redis+sentinel://a//1", "redis+sentinel://a,,b/main", "redis+sentinel://a/ma in", "rediss+sentinel://u:p@a/main",
		"redis+cluster://a,b", "redis+cluster://a,a", "redis+cluster://a/1", "rediss+cluster://a:1,b:2", "redis+cluster+sentinel://a", "redis+://a", "+sentinel://a", "REDIS://a",
		"unix:///run/redis.sock", "unix:///a?db=1", "unix:///a?db=", "unix:///a?x=1", "unix://u:p@/a", "unix://a", "unix:///%zz", "unix:///a%20b", "unix+sentinel:///a", "redis:/a", "://a", "redis://\u00e9",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseURL(text)
		if err != nil {
			wantEqual(t, text, err.Error(), errorFor(err))
			return
		}
		for _, address := range got.Addrs {
			if !strings.HasPrefix(address, "/") && !isAddress(address) {
				t.Errorf("%q names the server %q", text, address)
			}
		}
		again, err := parseURL(usualURL(got))
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%q is %q, and as %q it is %+v, %v", text, got.Addrs, usualURL(got), again, err)
		}
		if got.MasterName != "" || got.IsClusterMode {
			return
		}
		theirs, err := redis.ParseURL(usualURL(got))
		if err != nil || theirs.Addr != got.Addrs[0] || theirs.Username != got.Username || theirs.Password != got.Password || theirs.DB != got.DB {
			t.Errorf("%q is %q, to go-redis %+v, %v", text, got.Addrs, theirs, err)
		}
	})
}

// errorFor returns the error's text if it is one of this program, without parts of the URL.
func errorFor(err error) string {
	for _, known := range []string{
		errUnknownScheme.Error(), "redis url: query parameters are not accepted", "redis url: a cluster has no databases",
		"redis url: user or password is not percent-encoded", "redis url: a unix socket needs an absolute path", "redis url: the path is not percent-encoded",
		"redis url: of the query parameters only db is accepted", "redis url: several hosts need redis+sentinel:// or redis+cluster://",
		"redis url: want host or host:port", "redis url: redis+sentinel:// needs the name of the primary as its path", "redis url: the database is a number",
	} {
		if err.Error() == known {
			return known
		}
		if rest, found := strings.CutPrefix(err.Error(), known+"\n"); found { // joined
			return known + "\n" + errorFor(fmt.Errorf("%s", rest))
		}
	}
	return ""
}

func isAddress(address string) bool {
	host, port, err := net.SplitHostPort(address)
	number, portErr := strconv.ParseUint(port, 10, 16)
	return err == nil && portErr == nil && number > 0 && host != "" && (net.ParseIP(host) != nil || !strings.ContainsAny(host, ":[]@/?#%,"))
}

func usualURL(options *redis.UniversalOptions) string {
	scheme := "redis"
	if options.TLSConfig != nil {
		scheme = "rediss"
	}
	credentials := ""
	if options.Username != "" || options.Password != "" {
		credentials = url.UserPassword(options.Username, options.Password).String() + "@"
	}
	switch hosts := strings.Join(options.Addrs, ","); {
	case options.MasterName != "":
		return fmt.Sprintf("%s+sentinel://%s%s/%s/%d", scheme, credentials, hosts, options.MasterName, options.DB)
	case options.IsClusterMode:
		return fmt.Sprintf("%s+cluster://%s%s", scheme, credentials, hosts)
	case strings.HasPrefix(hosts, "/"):
		return fmt.Sprintf("unix://%s%s?db=%d", credentials, (&url.URL{Path: options.Addrs[0]}).EscapedPath(), options.DB)
	default:
		return fmt.Sprintf("%s://%s%s/%d", scheme, credentials, hosts, options.DB)
	}
}
