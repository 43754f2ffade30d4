package webhook

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/token"
	"remit/redisstore/webhooks"
)

func TestASecretIsFormattedAsReceiversTakeIt(t *testing.T) {
	t.Parallel()
	secret := NewSecret()
	text, found := strings.CutPrefix(FormatSecret(secret), "whsec_")
	decoded, err := base64.StdEncoding.DecodeString(text)
	if !found || err != nil || !bytes.Equal(decoded, secret) || len(secret) != 32 {
		t.Errorf("%q of %d bytes, %v", FormatSecret(secret), len(secret), err)
	}
}

func TestARotationKeepsTheEarlierSecretsForTheirTime(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_000_000)
	until := func(s webhooks.Secret) int64 { return s.Until - at.UnixMilli() }
	secrets := []webhooks.Secret{{Sealed: "a"}}
	secrets = Rotate(secrets, webhooks.Secret{Sealed: "b"}, at, at.Add(time.Minute))
	if len(secrets) != 2 || secrets[0].Sealed != "b" || secrets[0].Until != 0 || secrets[1].Sealed != "a" || until(secrets[1]) != 60_000 {
		t.Fatalf("rotated to %+v", secrets)
	}
	for _, test := range []struct {
		name  string
		grace time.Duration
		want  []int64
	}{
		{"a shorter grace ends the earlier ones sooner", time.Second, []int64{1000, 1000}},
		{"a longer one does not prolong them", time.Hour, []int64{3_600_000, 60_000}},
		{"none ends them at once", 0, nil},
	} {
		rotated := Rotate(secrets, webhooks.Secret{Sealed: "c"}, at, at.Add(test.grace))
		if len(rotated) != 1+len(test.want) || rotated[0].Sealed != "c" {
			t.Errorf("%s: %+v", test.name, rotated)
			continue
		}
		for i, want := range test.want {
			if until(rotated[i+1]) != want {
				t.Errorf("%s: %+v", test.name, rotated)
			}
		}
	}
	for range 9 {
		secrets = Rotate(secrets, webhooks.Secret{Sealed: "d"}, at, at.Add(time.Minute))
	}
	if len(secrets) != maxSecrets || secrets[0].Until != 0 {
		t.Errorf("after many rotations %+v", secrets)
	}
}

func TestOnlyTheKeyAndTheWebhookOfASecretOpenIt(t *testing.T) {
	t.Parallel()
	key := must(token.ParseKeyEncryptionKey([]byte(base64.StdEncoding.EncodeToString(make([]byte, 32)))))(t)
	id := uuid.New()
	w := webhooks.Webhook{ID: id, Settings: webhooks.Settings{Secrets: []webhooks.Secret{SealSecret(key, id, []byte("new")), SealSecret(key, id, []byte("old"))}}}
	now := time.UnixMilli(1000)
	w.Settings.Secrets[1].Until = 1001
	opened, err := open(key, w, now)
	if err != nil || len(opened) != 2 || string(opened[0]) != "new" || string(opened[1]) != "old" {
		t.Errorf("opened %q, %v", opened, err)
	}
	if opened, err := open(key, w, time.UnixMilli(1001)); err != nil || len(opened) != 1 {
		t.Errorf("after the grace time %q, %v", opened, err)
	}
	if _, err := open(nil, w, now); err == nil {
		t.Error("opened without the key")
	}
	w.ID = uuid.New()
	if _, err := open(key, w, now); err == nil {
		t.Error("opened for another webhook")
	}
}
