package cli

import (
	"testing"

	"remit/client"
)

func TestAnEmptyAddressIsNone(t *testing.T) {
	t.Parallel()
	s := service{}
	if _, err := s.client(client.Options{}); err != nil || s.Addr != "http://127.0.0.1:8080" {
		t.Errorf("%v: %s", err, s.Addr)
	}
}
