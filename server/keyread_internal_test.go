package server

import (
	"context"
	"errors"
	"testing"

	"remit/internal/token"
	"remit/server/internal/web"
)

func TestAPanicWhileKeysAreReadIsAnErrorOfThatRead(t *testing.T) {
	t.Parallel()
	s := &Server{}
	s.FollowKeys(func(context.Context) (*token.Keyring, error) { panic("no keys") })
	for range 2 { // the second read is not held up by the first
		if err := s.ReadKeys(t.Context()); !errors.Is(err, web.ErrPanic) {
			t.Errorf("it ends with %v", err)
		}
	}
}
