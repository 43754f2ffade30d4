package keys

import (
	"context"
	"errors"
	"fmt"

	"remit/redisstore"
)

type retireKey struct {
	storeFlags
	Kind redisstore.KeyKind `arg:"" enum:"signing,token" help:"signing or token."`
	Key  string             `arg:"" help:"The key's name, as keys list shows it."`
}

// Run ends the key.
func (c *retireKey) Run() error {
	store, err := c.open()
	if err != nil {
		return err
	}
	defer store.Close()
	err = store.RetireKey(context.Background(), c.Kind, c.Key)
	if errors.Is(err, redisstore.ErrKeyInUse) {
		return fmt.Errorf("%w; rotate first", err)
	}
	if err != nil {
		return err
	}
	fmt.Printf("%s is retired; within %s no instance accepts what it signed\n", sealName(c.Kind, c.Key), PollInterval)
	return nil
}
