package webhook

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The vector of the reference implementations of Standard Webhooks.
func TestASignatureIsThatOfTheStandard(t *testing.T) {
	t.Parallel()
	secret := must(base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))(t)
	header := http.Header{}
	Sign(header, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`), [][]byte{secret})
	for name, want := range map[string]string{
		"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
		"webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
	} {
		if got := header.Get(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestEachSecretSigns(t *testing.T) {
	t.Parallel()
	header := http.Header{}
	Sign(header, "id", time.Unix(1, 0), nil, [][]byte{{1}, {2}})
	signatures := strings.Fields(header.Get("webhook-signature"))
	if len(signatures) != 2 || signatures[0] == signatures[1] || !strings.HasPrefix(signatures[1], "v1,") {
		t.Errorf("signed %q", signatures)
	}
}
