package webhook

import (
	"encoding/base64"
	"net/http"
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
		wantEqual(t, name, header.Get(name), want)
	}
}
