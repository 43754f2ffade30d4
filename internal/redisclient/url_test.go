package redisclient

import (
	"crypto/tls"
	"net"
	"strings"
	"testing"
)

func TestURLsSayWhereRedisIs(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"redis://localhost": "redis://localhost:6379/0", "redis://localhost/": "redis://localhost:6379/0",
		"redis://localhost:6380": "redis://localhost:6380/0", "redis://10.0.0.1:6380": "redis://10.0.0.1:6380/0",
		"redis://[::1]": "redis://[::1]:6379/0", "redis://[::1]:6380": "redis://[::1]:6380/0", "redis://localhost/3": "redis://localhost:6379/3",
		"redis://:pw@localhost": "redis://:pw@localhost:6379/0", "redis://u:pw@localhost": "redis://u:pw@localhost:6379/0",
		"redis://u@localhost":                     "redis://u:@localhost:6379/0",
		"redis://u%40v:p%3Aw%2F%3F@localhost:1/2": "redis://u%40v:p%3Aw%2F%3F@localhost:1/2",
		"redis://u:p@w@localhost":                 "redis://u:p%40w@localhost:6379/0",
		"rediss://localhost":                      "rediss://localhost:6379/0", "rediss://u:pw@[::1]:6380/1": "rediss://u:pw@[::1]:6380/1",
		"unix:///run/redis.sock": "unix:///run/redis.sock?db=0", "unix:///run/redis.sock?db=2": "unix:///run/redis.sock?db=2",
		"unix://u:pw@/run/redis.sock":                  "unix://u:pw@/run/redis.sock?db=0",
		"redis+sentinel://s1/main":                     "redis+sentinel://s1:26379/main/0",
		"redis+sentinel://u:pw@s1:1,s2,[::1]:3/main/4": "redis+sentinel://u:pw@s1:1,s2:26379,[::1]:3/main/4",
		"rediss+sentinel://s1,s2/main":                 "rediss+sentinel://s1:26379,s2:26379/main/0",
		"redis+cluster://n1":                           "redis+cluster://n1:6379", "redis+cluster://n1/": "redis+cluster://n1:6379",
		"redis+cluster://u:pw@n1,n2:1,n3": "redis+cluster://u:pw@n1:6379,n2:1,n3:6379",
		"rediss+cluster://n1,n2":          "rediss+cluster://n1:6379,n2:6379",
	} {
		options := must(parseURL(given))(t)
		wantEqual(t, given, usualURL(options), want)
		if options.SentinelUsername != options.Username || options.SentinelPassword != options.Password {
			t.Errorf("%s: to sentinels user %q, password %q", given, options.SentinelUsername, options.SentinelPassword)
		}
		if options.TLSConfig == nil {
			continue
		}
		server, _, err := net.SplitHostPort(options.Addrs[0])
		if err != nil || options.MasterName != "" || options.IsClusterMode {
			server = "" // TLS checks the name of each address
		}
		if c := options.TLSConfig; c.ServerName != server || c.MinVersion != tls.VersionTLS12 || c.InsecureSkipVerify {
			t.Errorf("%s: TLS %+v", given, c)
		}
	}
}

func TestURLsThatAreRefusedStayUnquoted(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"", "localhost:6379", "u:hunter2@localhost:6379", "u:hunter2://@localhost", "http://u:hunter2@localhost",
		"Redis://u:hunter2@localhost", "redis+unix://u:hunter2@localhost", "redis+://u:hunter2@localhost",
		"redis+sentinels://u:hunter2@localhost/main", "unix+cluster://u:hunter2@localhost", "redis://", "redis://u:hunter2@",
		"redis://u:hunter2@:6379", "redis://u:hunter2@localhost:", "redis://u:hunter2@localhost:http", "redis://u:hunter2@localhost:63:79",
		"redis://u:hunter2@localhost:65536", "redis://u:hunter2@localhost:-1", "redis://u:hunter2@localhost:0",
		"redis://u:hunter2@]localhost[", "redis://u:hunter2@local host", "redis://u:hunter2@localhost#1", "redis://u:hunter2@local%68ost",
		"redis://u:hunter2@localhost/x", "redis://u:hunter2@localhost/-1", "redis://u:hunter2@localhost/1/2", "redis://u:hunter2@one,two",
		"redis://u:hunter2@localhost?max_retries=5", "redis://u:hunter2@localhost/1?protocol=3",
		"rediss://u:hunter2@localhost?skip_verify=true", "redis://u:hunter2%@localhost", "redis://u%zz:hunter2@localhost",
		"redis://hunter2?@localhost", "redis://:hunter2", "unix://u:hunter2@run/redis.sock", "unix://", "unix:///run/redis.sock?db=x",
		"unix:///run/redis.sock?db=1&password=hunter2", "unix:///run/redis.sock?password=hunter2", "redis+sentinel://u:hunter2@s1",
		"redis+sentinel://u:hunter2@s1/", "redis+sentinel://u:hunter2@s1//1", "redis+sentinel://u:hunter2@s1,/main",
		"redis+sentinel://u:hunter2@s1/main/x", "redis+cluster://u:hunter2@n1,,n2", "redis+cluster://u:hunter2@n1/0",
		"redis+cluster://u:hunter2@n1?read_only=true",
	} {
		if options, err := parseURL(url); err == nil {
			t.Errorf("%s is accepted, with addresses %q", url, options.Addrs)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error holds the password: %v", url, err)
		}
	}
}
