package redisstore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"remit/internal/redisproc"
	"remit/test/redistest"
)

// The store's tests run as the user of deploy/redis/users.acl, on real Redis and on the cluster, and the operator's part of
// them as the operator's user; what they read past the store they read as Redis's default user.

const (
	aclFile      = "../deploy/redis/users.acl"
	aclPassword  = "a-password-of-the-tests"
	aclHashPlace = "#REPLACE-WITH-THE-SHA-256-OF-ITS-PASSWORD-IN-HEX"

	operatorsHashPlace = "#REPLACE-WITH-THE-SHA-256-OF-THE-OPERATORS-PASSWORD-IN-HEX"
)

// asLeastPrivileged makes the service's user of the file known to a server, or to each node of a cluster, and returns the
// URL that logs in as that user.
func asLeastPrivileged(ctx context.Context, url string) (string, error) {
	return asUser(ctx, url, "remit", aclHashPlace)
}

// asUser is asLeastPrivileged for one of the users in the file.
func asUser(ctx context.Context, url, user, hashPlace string) (string, error) {
	text, err := os.ReadFile(aclFile)
	if err != nil {
		return "", err
	}
	_, rules, found := strings.Cut(string(text), "user "+user+" ")
	rules, _, _ = strings.Cut(rules, "\n")
	if !found || !strings.Contains(rules, hashPlace) {
		return "", errors.New(aclFile + " has no user " + user + " without a password")
	}
	command := []any{"ACL", "SETUSER", user, "reset"}
	for _, rule := range strings.Fields(strings.Replace(rules, hashPlace, ">"+aclPassword, 1)) {
		command = append(command, rule)
	}
	scheme, address, _ := strings.Cut(url, "://")
	for _, node := range strings.Split(address, ",") {
		client := redis.NewClient(&redis.Options{Addr: node})
		err := client.Do(ctx, command...).Err()
		_ = client.Close()
		if err != nil {
			return "", err
		}
	}
	return scheme + "://" + user + ":" + aclPassword + "@" + address, nil
}

// asOperator returns a store for the same data that logs in as the operator's user, where there are users.
func asOperator(t *testing.T, s *Store) *Store {
	t.Helper()
	url := strings.Replace(s.config.URL, "remit:"+aclPassword+"@", "", 1)
	if url == s.config.URL {
		return s
	}
	cfg := s.config
	cfg.URL = must(asUser(t.Context(), url, "remit-operator", operatorsHashPlace))(t)
	operator := must(Open(cfg))(t)
	t.Cleanup(func() { _ = operator.Close() })
	return operator
}

// unrestricted holds peek's unrestricted stores by the tested ones; openStore closes them.
var unrestricted sync.Map

// peek returns a client for looking behind the store's back.
func peek(t *testing.T, s *Store) redis.UniversalClient {
	t.Helper()
	url := strings.Replace(s.config.URL, "remit:"+aclPassword+"@", "", 1)
	if strings.HasPrefix(url, "unix:") {
		return redistest.PlainClient(t, url) // the store's own would refuse a replica
	}
	if url == s.config.URL {
		return s.client.Redis()
	}
	if open, found := unrestricted.Load(s); found {
		return open.(*Store).client.Redis()
	}
	cfg := s.config
	cfg.URL = url
	fresh := must(Open(cfg))(t)
	open, raced := unrestricted.LoadOrStore(s, fresh)
	if raced {
		_ = fresh.Close()
	}
	return open.(*Store).client.Redis()
}

// closePeek closes what peek has opened for the store.
func closePeek(s *Store) {
	if open, found := unrestricted.LoadAndDelete(s); found {
		_ = open.(*Store).Close()
	}
}

func TestTheLeastPrivilegedUserReachesNothingElse(t *testing.T) {
	t.Parallel()
	redistest.SkipIfShort(t)
	url := must(asLeastPrivileged(t.Context(), must(realRedis())(t)))(t)
	client, ctx := redistest.PlainClient(t, url), t.Context()
	for name, err := range map[string]error{
		"a foreign key":            client.Get(ctx, "elsewhere").Err(),
		"a foreign key by script":  client.Eval(ctx, "return redis.call('GET', KEYS[1])", []string{"elsewhere"}).Err(),
		"another command":          client.FlushDB(ctx).Err(),
		"another command in Lua":   client.Eval(ctx, "return redis.call('KEYS', '*')", nil).Err(),
		"the configuration":        client.ConfigGet(ctx, "*").Err(),
		"other users":              client.ACLList(ctx).Err(),
		"a channel":                client.Publish(ctx, "remit:x", "x").Err(),
		"the keys of the service":  client.Keys(ctx, "remit:*").Err(),
		"a script it did not send": client.FunctionList(ctx, redis.FunctionListQuery{}).Err(),
	} {
		if err == nil || !strings.Contains(err.Error(), "NOPERM") && !strings.Contains(err.Error(), "can't run this command") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheServerReadsTheACLFile(t *testing.T) {
	t.Parallel()
	redistest.SkipIfShort(t)
	text := string(must(os.ReadFile(aclFile))(t))
	file := t.TempDir() + "/users.acl"
	text = strings.Replace(text, operatorsHashPlace, ">"+aclPassword, 1)
	text = strings.Replace(text, "user default off", "user default on nopass -@all +ping", 1) // which the start asks
	mustDo(t, os.WriteFile(file, []byte(strings.Replace(text, aclHashPlace, ">"+aclPassword, 1)), 0o600))
	server := redistest.StartRedis(t, redisproc.Config{Args: []string{"--aclfile", file}})
	s := openStore(t, Config{}, strings.Replace(server.URL(), "://", "://remit:"+aclPassword+"@", 1), nil)
	newTenant(t, s, NewSession{MaxActions: 1})
	wrong := openStore(t, Config{}, strings.Replace(server.URL(), "://", "://remit:wrong@", 1), nil)
	wantError(t, "with a wrong password", wrong.Ping(t.Context()), ErrUnavailable)
}

// called matches a command that a script calls.
var called = regexp.MustCompile(`\bcall\('([A-Z]+)'`)

func TestTheLeastPrivilegedUserMayRunWhatTheScriptsCall(t *testing.T) {
	t.Parallel()
	_, rules, _ := strings.Cut(string(must(os.ReadFile(aclFile))(t)), "user remit on ")
	allowed, found := strings.Fields(rules), map[string]bool{}
	for _, pattern := range []string{"../lua/*/*.lua", "../lua/*/*/*.lua"} {
		for _, script := range must(filepath.Glob(pattern))(t) {
			for _, command := range called.FindAllStringSubmatch(string(must(os.ReadFile(script))(t)), -1) {
				found[command[1]] = true
				if !slices.Contains(allowed, "+"+strings.ToLower(command[1])) {
					t.Errorf("%s calls %s, which %s does not allow", script, command[1], aclFile)
				}
			}
		}
	}
	if len(found) < 20 {
		t.Errorf("the scripts call only %v", found)
	}
}
