package service

import (
	"context"
	"fmt"

	"remit/internal/token"
	"remit/redisstore"
	"remit/server"
)

// operatorSettings are the settings that `remit organizations` changes in Redis while the service runs: suspended
// organizations, and the bootstrap token.
type operatorSettings struct {
	store     *redisstore.Store
	server    *server.Server
	output    output // a new bootstrap token goes to standard output, never to the log
	bootstrap bool   // the service itself generates the bootstrap token

	made      string // the token that this instance generated, or ""
	announced bool   // the output says which token is valid
}

// read applies the settings as Redis has them now.
func (o *operatorSettings) read(ctx context.Context) error {
	if err := o.store.ReadSuspensions(ctx); err != nil || !o.bootstrap {
		return err
	}
	stored, found, err := o.store.BootstrapHash(ctx)
	if err == nil && !found {
		stored, err = o.makeBootstrapToken(ctx)
	}
	if err != nil {
		return err
	}
	o.server.SetBootstrapHash(stored)
	if !o.announced {
		o.announced = true
		o.announceBootstrapToken(stored)
	}
	return nil
}

// makeBootstrapToken stores the hash of a new token unless another instance was faster, and returns the stored hash. It
// reuses its token until a call succeeds, because a call that failed may have stored it.
func (o *operatorSettings) makeBootstrapToken(ctx context.Context) ([32]byte, error) {
	if o.made == "" {
		o.made, o.announced = token.NewBootstrapToken(), false
	}
	if err := o.store.KeepFirstBootstrapHash(ctx, token.Hash(o.made)); err != nil {
		return [32]byte{}, err
	}
	stored, _, err := o.store.BootstrapHash(ctx)
	return stored, err
}

// announceBootstrapToken prints the token if this instance generated it. Redis stores only its hash.
func (o *operatorSettings) announceBootstrapToken(stored [32]byte) {
	made := o.made
	o.made = "" // a token that lost to another instance's is never stored later
	if made == "" || token.Hash(made) != stored {
		o.output.log.Info("creating organizations needs the bootstrap token that the first instance printed; " +
			"`remit organizations new-bootstrap-token` generates a new one")
		return
	}
	if o.output.json {
		fmt.Fprintf(o.output.out, "{\"bootstrap_token\":%q}\n", made)
		return
	}
	fmt.Fprintf(o.output.out, "\nBootstrap token (shown only once), needed to create organizations:\n\n%s\n\n", made)
}
