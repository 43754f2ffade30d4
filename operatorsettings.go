package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"remit/redisstore"
	"remit/server"
	"remit/token"
)

// operatorSettings are what `remit organizations` changes in Redis while the service runs: which organizations are
// suspended, and the bootstrap token.
type operatorSettings struct {
	store   *redisstore.Store
	service *server.Server
	log     *slog.Logger
	printed printed // a new bootstrap token goes to its standard output, and to no log
	// bootstrap says that organizations are created by a token that the service made.
	bootstrap bool

	made    string // the token that this instance made, "" for none
	settled bool   // it is known which token is kept
}

// read takes over the settings as they stand now.
func (o *operatorSettings) read(ctx context.Context) error {
	if err := o.store.ReadSuspensions(ctx); err != nil || !o.bootstrap {
		return err
	}
	kept, found, err := o.store.BootstrapHash(ctx)
	if err == nil && !found {
		kept, err = o.makeBootstrapToken(ctx)
	}
	if err != nil {
		return err
	}
	o.service.SetBootstrapHash(kept)
	if !o.settled {
		o.settled = true
		o.tellBootstrapToken(kept)
	}
	return nil
}

// makeBootstrapToken keeps the hash of a new token, unless another instance was faster, and returns the one that is kept.
// The token stays the same until it is known which: the answer may be lost.
func (o *operatorSettings) makeBootstrapToken(ctx context.Context) ([32]byte, error) {
	if o.made == "" {
		o.made, o.settled = token.NewBootstrapToken(), false
	}
	if err := o.store.KeepFirstBootstrapHash(ctx, token.Hash(o.made)); err != nil {
		return [32]byte{}, err
	}
	kept, _, err := o.store.BootstrapHash(ctx)
	return kept, err
}

// tellBootstrapToken prints the token if this instance has made it. Redis keeps its hash alone.
func (o *operatorSettings) tellBootstrapToken(kept [32]byte) {
	made := o.made
	o.made = "" // one that is not kept is never kept later
	if made == "" || token.Hash(made) != kept {
		o.log.Info("organizations are created with the bootstrap token that the first instance printed; " +
			"`remit organizations new-bootstrap-token` makes another")
		return
	}
	if o.printed.json { // which reads nothing else
		fmt.Fprintf(o.printed.out, "{\"bootstrap_token\":%q}\n", made)
		return
	}
	fmt.Fprintf(o.printed.out, "\nBootstrap token, shown this once; whoever creates an organization needs it:\n\n%s\n\n", made)
}

// follow keeps the settings as Redis has them, until ctx ends.
func (o *operatorSettings) follow(ctx context.Context) {
	for failing := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(keyPoll):
		}
		err := o.read(ctx)
		if err != nil && ctx.Err() == nil && !failing {
			o.log.Warn("suspended organizations could not be read; those of before stay suspended", "cause", err)
		}
		failing = err != nil
	}
}
