package redisclient

import (
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

const (
	redisPort    = "6379"
	sentinelPort = "26379"
)

var errUnknownScheme = errors.New(
	"redis url: unknown scheme; want redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://")

// parseURL reads one of
//
//	redis://[user:password@]host[:port][/db]
//	unix://[user:password@]/path/of/socket[?db=0]
//	redis+sentinel://[user:password@]host[:port],…/name-of-primary[/db]
//	redis+cluster://[user:password@]host[:port],…
//
// with rediss for TLS 1.2 or later. Other query parameters are refused: they would change bounds that the store relies
// on. Errors never quote the URL, which may hold a password.
func parseURL(text string) (*redis.UniversalOptions, error) {
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		return nil, errUnknownScheme
	}
	options := &redis.UniversalOptions{}
	base, topology, _ := strings.Cut(scheme, "+")
	if base == "rediss" {
		options.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	rest, query, _ := strings.Cut(rest, "?")
	rest, err := cutCredentials(rest, options)
	if err != nil {
		return nil, err
	}
	switch {
	case scheme == "unix":
		return options, unixSocket(options, rest, query)
	case query != "":
		return nil, errors.New("redis url: query parameters are not accepted")
	case base != "redis" && base != "rediss":
		return nil, errUnknownScheme
	}
	hosts, path, _ := strings.Cut(rest, "/")
	switch topology {
	case "":
		if scheme != base {
			return nil, errUnknownScheme
		}
		return options, errors.Join(setHosts(options, hosts, redisPort, 1), setDatabase(options, path))
	case "sentinel":
		return options, errors.Join(setHosts(options, hosts, sentinelPort, 0), setPrimary(options, path))
	case "cluster":
		options.IsClusterMode = true
		if path != "" {
			return nil, errors.New("redis url: a cluster has no databases")
		}
		return options, setHosts(options, hosts, redisPort, 0)
	}
	return nil, errUnknownScheme
}

func cutCredentials(rest string, options *redis.UniversalOptions) (string, error) {
	authority, _, _ := strings.Cut(rest, "/")
	at := strings.LastIndexByte(authority, '@')
	if at < 0 {
		return rest, nil
	}
	user, password, _ := strings.Cut(rest[:at], ":")
	var err1, err2 error
	options.Username, err1 = url.PathUnescape(user)
	options.Password, err2 = url.PathUnescape(password)
	if err1 != nil || err2 != nil {
		return "", errors.New("redis url: user or password is not percent-encoded")
	}
	options.SentinelUsername, options.SentinelPassword = options.Username, options.Password
	return rest[at+1:], nil
}

func unixSocket(options *redis.UniversalOptions, path, query string) error {
	if !strings.HasPrefix(path, "/") {
		return errors.New("redis url: a unix socket needs an absolute path")
	}
	path, err := url.PathUnescape(path)
	if err != nil {
		return errors.New("redis url: the path is not percent-encoded")
	}
	options.Addrs = []string{path} // go-redis takes an address that starts with a slash for a socket
	if query == "" {
		return nil
	}
	database, found := strings.CutPrefix(query, "db=")
	if !found {
		return errors.New("redis url: of the query parameters only db is accepted")
	}
	return setDatabase(options, database)
}

// setHosts accepts any number of hosts when most is 0.
func setHosts(options *redis.UniversalOptions, hosts, defaultPort string, most int) error {
	addresses := strings.Split(hosts, ",")
	if most > 0 && len(addresses) > most {
		return errors.New("redis url: several hosts need redis+sentinel:// or redis+cluster://")
	}
	for _, address := range addresses {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			host, port = withoutBrackets(address), defaultPort
		}
		if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 || !isHost(host) {
			return errors.New("redis url: want host or host:port")
		}
		options.Addrs = append(options.Addrs, net.JoinHostPort(host, port))
	}
	if options.TLSConfig != nil && len(addresses) == 1 {
		options.TLSConfig.ServerName, _, _ = net.SplitHostPort(options.Addrs[0])
	}
	return nil
}

func withoutBrackets(address string) string {
	inner, opened := strings.CutPrefix(address, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if opened && closed {
		return inner
	}
	return address
}

// isHost says whether it is an IP address or can be the name of a host, as it stands: what else a URL may hold there
// (%41, #fragment) would be read in another way elsewhere.
func isHost(text string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"
	return net.ParseIP(text) != nil || text != "" && strings.Trim(text, letters) == ""
}

func setPrimary(options *redis.UniversalOptions, path string) error {
	name, database, _ := strings.Cut(path, "/")
	if name == "" {
		return errors.New("redis url: redis+sentinel:// needs the name of the primary as its path")
	}
	options.MasterName = name
	return setDatabase(options, database)
}

func setDatabase(options *redis.UniversalOptions, text string) error {
	if text == "" {
		return nil
	}
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return errors.New("redis url: the database is a number")
	}
	options.DB = int(number)
	return nil
}
