package webhook

import (
	"encoding/base64"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/token"
	"remit/redisstore/webhooks"
)

func TestARotationKeepsTheEarlierSecretsForTheirTime(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_000_000)
	rotate := func(secrets []webhooks.Secret, name string, grace time.Duration) []webhooks.Secret {
		return Rotate(secrets, webhooks.Secret{Sealed: name}, at, at.Add(grace))
	}
	until := func(name string, grace int64) webhooks.Secret {
		return webhooks.Secret{Sealed: name, Until: at.UnixMilli() + grace}
	}
	secrets := rotate([]webhooks.Secret{{Sealed: "a"}}, "b", time.Minute)
	for grace, want := range map[time.Duration][]webhooks.Secret{
		time.Second: {{Sealed: "c"}, until("b", 1000), until("a", 1000)}, // a shorter grace ends the earlier ones sooner
		time.Hour:   {{Sealed: "c"}, until("b", 3_600_000), until("a", 60_000)},
		0:           {{Sealed: "c"}},
	} {
		if rotated := rotate(secrets, "c", grace); !slices.Equal(rotated, want) {
			t.Errorf("with a grace of %s it is %+v, want %+v", grace, rotated, want)
		}
	}
	for range 9 {
		secrets = rotate(secrets, "d", time.Minute)
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
