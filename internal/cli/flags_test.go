package cli

import (
	"testing"
	"time"

	"remit/client"
)

func TestADurationMayStartWithDays(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "30d": 30 * day, "1d12h": 36 * time.Hour,
		"0d1s": time.Second, "100000d": 100_000 * day, "-1s": -time.Second,
	} {
		var d duration
		if err := d.UnmarshalText([]byte(text)); err != nil || time.Duration(d) != want {
			t.Errorf("%q is %v, %v", text, time.Duration(d), err)
		}
	}
	for _, text := range []string{"", "d", "30", "1.5d", "-1d", "1d-1h", "100001d", "1d1d", "1h1d", "30 d", "12345678901234567890d"} {
		var d duration
		if err := d.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is %v", text, time.Duration(d))
		}
	}
}

func TestAnEmptyAddressIsNone(t *testing.T) {
	t.Parallel()
	s := service{}
	if _, err := s.client(client.Options{}); err != nil || s.Addr != "http://127.0.0.1:8080" {
		t.Errorf("%v: %s", err, s.Addr)
	}
}
