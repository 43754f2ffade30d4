package redisclient

import (
	"crypto/tls"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestURLsSayWhereRedisIs(t *testing.T) {
	t.Parallel()
	type parsed struct {
		addresses      []string
		database       int
		user, password string
		primary        string
		cluster        bool
		tls            bool
		serverName     string // that TLS checks, "" for that of each address
	}
	one := func(address string) parsed { return parsed{addresses: []string{address}} }
	for _, test := range []struct {
		url  string
		want parsed
	}{
		{"redis://localhost", one("localhost:6379")},
		{"redis://localhost/", one("localhost:6379")},
		{"redis://localhost:6380", one("localhost:6380")},
		{"redis://10.0.0.1:6380", one("10.0.0.1:6380")},
		{"redis://[::1]", one("[::1]:6379")},
		{"redis://[::1]:6380", one("[::1]:6380")},
		{"redis://localhost/3", parsed{addresses: []string{"localhost:6379"}, database: 3}},
		{"redis://:pw@localhost", parsed{addresses: []string{"localhost:6379"}, password: "pw"}},
		{"redis://u:pw@localhost", parsed{addresses: []string{"localhost:6379"}, user: "u", password: "pw"}},
		{"redis://u@localhost", parsed{addresses: []string{"localhost:6379"}, user: "u"}},
		{"redis://u%40v:p%3Aw%2F%3F@localhost:1/2",
			parsed{addresses: []string{"localhost:1"}, user: "u@v", password: "p:w/?", database: 2}},
		{"redis://u:p@w@localhost", parsed{addresses: []string{"localhost:6379"}, user: "u", password: "p@w"}},
		{"rediss://localhost", parsed{addresses: []string{"localhost:6379"}, tls: true, serverName: "localhost"}},
		{"rediss://u:pw@[::1]:6380/1",
			parsed{addresses: []string{"[::1]:6380"}, user: "u", password: "pw", database: 1, tls: true, serverName: "::1"}},
		{"unix:///run/redis.sock", one("/run/redis.sock")},
		{"unix:///run/redis.sock?db=2", parsed{addresses: []string{"/run/redis.sock"}, database: 2}},
		{"unix://u:pw@/run/redis.sock", parsed{addresses: []string{"/run/redis.sock"}, user: "u", password: "pw"}},
		{"redis+sentinel://s1/main", parsed{addresses: []string{"s1:26379"}, primary: "main"}},
		{"redis+sentinel://u:pw@s1:1,s2,[::1]:3/main/4",
			parsed{addresses: []string{"s1:1", "s2:26379", "[::1]:3"}, user: "u", password: "pw", primary: "main", database: 4}},
		{"rediss+sentinel://s1,s2/main", parsed{addresses: []string{"s1:26379", "s2:26379"}, primary: "main", tls: true}},
		{"redis+cluster://n1", parsed{addresses: []string{"n1:6379"}, cluster: true}},
		{"redis+cluster://u:pw@n1,n2:1,n3",
			parsed{addresses: []string{"n1:6379", "n2:1", "n3:6379"}, user: "u", password: "pw", cluster: true}},
		{"redis+cluster://n1/", parsed{addresses: []string{"n1:6379"}, cluster: true}},
		{"rediss+cluster://n1,n2", parsed{addresses: []string{"n1:6379", "n2:6379"}, cluster: true, tls: true}},
	} {
		t.Run(test.url, func(t *testing.T) {
			t.Parallel()
			options := must(parseURL(test.url))(t)
			got := parsed{
				addresses: options.Addrs, database: options.DB, user: options.Username, password: options.Password,
				primary: options.MasterName, cluster: options.IsClusterMode, tls: options.TLSConfig != nil,
			}
			if got.tls {
				got.serverName = options.TLSConfig.ServerName
				if options.TLSConfig.MinVersion != tls.VersionTLS12 || options.TLSConfig.InsecureSkipVerify {
					t.Errorf("TLS: %+v", options.TLSConfig)
				}
			}
			if !slices.Equal(got.addresses, test.want.addresses) {
				t.Errorf("addresses %q, want %q", got.addresses, test.want.addresses)
			}
			if options.SentinelUsername != test.want.user || options.SentinelPassword != test.want.password {
				t.Errorf("to sentinels: user %q, password %q", options.SentinelUsername, options.SentinelPassword)
			}
			got.addresses, test.want.addresses = nil, nil
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

func TestURLsThatAreRefusedStayUnquoted(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"",
		"localhost:6379",
		"u:hunter2@localhost:6379",
		"u:hunter2://@localhost",
		"http://u:hunter2@localhost",
		"Redis://u:hunter2@localhost",
		"redis+unix://u:hunter2@localhost",
		"redis+://u:hunter2@localhost",
		"redis+sentinels://u:hunter2@localhost/main",
		"unix+cluster://u:hunter2@localhost",
		"redis://",
		"redis://u:hunter2@",
		"redis://u:hunter2@:6379",
		"redis://u:hunter2@localhost:",
		"redis://u:hunter2@localhost:http",
		"redis://u:hunter2@localhost:63:79",
		"redis://u:hunter2@localhost:65536",
		"redis://u:hunter2@localhost:-1",
		"redis://u:hunter2@localhost:0",
		"redis://u:hunter2@]localhost[",
		"redis://u:hunter2@local host",
		"redis://u:hunter2@localhost#1",
		"redis://u:hunter2@local%68ost",
		"redis://u:hunter2@localhost/x",
		"redis://u:hunter2@localhost/-1",
		"redis://u:hunter2@localhost/1/2",
		"redis://u:hunter2@one,two",
		"redis://u:hunter2@localhost?max_retries=5",
		"redis://u:hunter2@localhost/1?protocol=3",
		"rediss://u:hunter2@localhost?skip_verify=true",
		"redis://u:hunter2%@localhost",
		"redis://u%zz:hunter2@localhost",
		"redis://hunter2?@localhost",
		"redis://:hunter2",
		"unix://u:hunter2@run/redis.sock",
		"unix://",
		"unix:///run/redis.sock?db=x",
		"unix:///run/redis.sock?db=1&password=hunter2",
		"unix:///run/redis.sock?password=hunter2",
		"redis+sentinel://u:hunter2@s1",
		"redis+sentinel://u:hunter2@s1/",
		"redis+sentinel://u:hunter2@s1//1",
		"redis+sentinel://u:hunter2@s1,/main",
		"redis+sentinel://u:hunter2@s1/main/x",
		"redis+cluster://u:hunter2@n1,,n2",
		"redis+cluster://u:hunter2@n1/0",
		"redis+cluster://u:hunter2@n1?read_only=true",
	} {
		t.Run(url, func(t *testing.T) {
			t.Parallel()
			wantRefusedURL(t, url)
		})
	}
}

func wantRefusedURL(t *testing.T, url string) {
	t.Helper()
	options, err := parseURL(url)
	if err == nil {
		t.Fatalf("accepted, with addresses %q", options.Addrs)
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error holds the password: %v", err)
	}
}
