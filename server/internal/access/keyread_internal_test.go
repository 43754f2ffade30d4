package access

import (
	"context"
	"errors"
	"testing"

	"remit/internal/token"
	"remit/server/internal/web"
)

func TestAPanicWhileKeysAreReadIsAnErrorOfThatRead(t *testing.T) {
	t.Parallel()
	g := &Guard{}
	g.FollowKeys(func(context.Context) (*token.Keyring, error) { panic("no keys") })
	for range 2 { // the second read is not held up by the first
		if err := g.ReadKeys(t.Context()); !errors.Is(err, web.ErrPanic) {
			t.Errorf("it ends with %v", err)
		}
	}
}
