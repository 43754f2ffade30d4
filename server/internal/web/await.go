package web

import (
	"context"
	"time"
)

// Await runs wait until it returns, ctx ends or the patience is over. It returns only what went wrong besides that.
func Await(ctx context.Context, patience time.Duration, wait func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := wait(bounded); err != bounded.Err() {
		return err
	}
	return nil
}
