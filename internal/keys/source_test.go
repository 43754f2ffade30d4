package keys_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"remit/internal/keys"
	"remit/internal/token"
	"remit/redisstore"
	"remit/test/suite"
)

func newStore(t *testing.T) *redisstore.Store {
	t.Helper()
	store := suite.Must(redisstore.Open(redisstore.Config{URL: "redis://" + miniredis.RunT(t).Addr()}))(t)
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// open returns a source that logs to the buffer.
func open(t *testing.T, store *redisstore.Store, flags keys.Flags, issuer keys.Issuer) (*keys.Source, *bytes.Buffer) {
	t.Helper()
	log := new(bytes.Buffer)
	return suite.Must(keys.Open(flags, issuer, store, slog.New(slog.NewTextHandler(log, nil))))(t), log
}

func keyring(t *testing.T, source *keys.Source) *token.Keyring {
	t.Helper()
	return suite.Must(source.Keyring(t.Context()))(t)
}

func writeKey(t *testing.T, key []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	suite.Must(0, os.WriteFile(file, key, 0o600))(t)
	return file
}

func TestInstancesOnOneRedisShareKeysAndIssuer(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	first, _ := open(t, store, keys.Flags{}, keys.Issuer{Listens: "http://a"})
	second, _ := open(t, store, keys.Flags{}, keys.Issuer{Listens: "http://b"})
	made := keyring(t, first)
	if shared := keyring(t, second); !shared.Equal(made) || shared.Issuer() != "http://a" {
		t.Errorf("the second instance has issuer %s and keys %s, the first %s", shared.Issuer(), shared.JWKS(), made.JWKS())
	}
	if again := keyring(t, first); !again.Equal(made) {
		t.Error("reading the keys again changes them")
	}
}

func TestTheIssuerOfAnOwnRedisFollowsTheAddress(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	for _, test := range []struct {
		issuer keys.Issuer
		want   string
	}{
		{keys.Issuer{Listens: "http://a", OwnRedis: true}, "http://a"},
		{keys.Issuer{Listens: "http://b", OwnRedis: true}, "http://b"},
		{keys.Issuer{Listens: "http://c"}, "http://b"},
		{keys.Issuer{Listens: "http://c", Given: "https://remit.example"}, "https://remit.example"},
	} {
		source, _ := open(t, store, keys.Flags{}, test.issuer)
		if got := keyring(t, source).Issuer(); got != test.want {
			t.Errorf("%+v: issuer %s, want %s", test.issuer, got, test.want)
		}
	}
}

func TestKeysFromFilesLeaveRedisEmpty(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	signing := suite.Must(token.GenerateSigningKey(token.ES256))(t)
	flags := keys.Flags{SigningKey: []string{writeKey(t, signing)}, TokenKey: []string{writeKey(t, token.GenerateRefreshKey())}}
	source, _ := open(t, store, flags, keys.Issuer{Listens: "http://a"})
	if ring := keyring(t, source); source.InRedis() || !strings.Contains(string(ring.JWKS()), "P-256") {
		t.Errorf("InRedis is %t, the keys are %s", source.InRedis(), ring.JWKS())
	}
	for _, kind := range []redisstore.KeyKind{redisstore.SigningKeys, redisstore.TokenKeys} {
		if records, _, err := store.Keys(t.Context(), kind); err != nil || len(records) != 0 {
			t.Errorf("Redis stores %d %s keys, %v", len(records), kind, err)
		}
	}
	flags.TokenKey = nil
	if source, _ = open(t, store, flags, keys.Issuer{}); !source.InRedis() {
		t.Error("without a token key from a file, no key is in Redis")
	}
}

func TestAnUnusableFileIsAnError(t *testing.T) {
	t.Parallel()
	file := writeKey(t, []byte("no key"))
	for name, flags := range map[string]keys.Flags{
		"signing": {SigningKey: []string{file}}, "token": {TokenKey: []string{file}}, "encryption": {KeyEncryptionKey: file},
		"missing": {SigningKey: []string{file + "x"}},
	} {
		if _, err := keys.Open(flags, keys.Issuer{}, nil, nil); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnUnusableRecordIsLoggedAndLeftOut(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	encryption := keys.Flags{KeyEncryptionKey: writeKey(t, token.GenerateRefreshKey())}
	source, log := open(t, store, encryption, keys.Issuer{Listens: "http://a"})
	made := keyring(t, source)
	suite.Must(store.RotateKey(t.Context(), redisstore.SigningKeys, "planted", "plain:AAAA", 0, time.Hour))(t)
	if got := keyring(t, source); !got.Equal(made) || !strings.Contains(log.String(), "planted is stored unencrypted") {
		t.Errorf("the keys are %s, before %s; the log: %s", got.JWKS(), made.JWKS(), log)
	}
	source.LogStorage()
	if !strings.Contains(log.String(), "stored in Redis, encrypted") {
		t.Errorf("the log: %s", log)
	}
}

func TestUnencryptedStorageIsWarnedOf(t *testing.T) {
	t.Parallel()
	source, log := open(t, newStore(t), keys.Flags{}, keys.Issuer{})
	source.LogStorage()
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "one trust domain") {
		t.Errorf("the log: %s", log)
	}
}

func TestIsIssuer(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"https://remit.example": true, "http://127.0.0.1:8080": true, "https://remit.example/": false, "https://remit.example/x": false,
		"ftp://remit.example": false, "remit": false, "https://": false, "https://u@remit.example": false, "": false, ":": false,
	} {
		if got := keys.IsIssuer(text); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}
