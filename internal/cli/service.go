package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"remit/client"
)

// callTime bounds a command: all of its requests together.
const callTime = 30 * time.Second

// defaultAddr is where a service listens by default.
const defaultAddr = "http://127.0.0.1:8080"

// service is the flags of every command that calls the service. In this package only the flags that name the service and the
// caller read environment variables, so that the command line alone says what a command does.
type service struct {
	Addr string `placeholder:"URL" help:"URL of the service. The default is http://127.0.0.1:8080."`
	Output
}

// call runs an operation within callTime and rewrites its error for people.
func (s *service) call(operation func(context.Context, *client.Client) error) error {
	remit, err := s.client(client.Options{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	return s.explain(operation(ctx, remit))
}

func (s *service) client(options client.Options) (*client.Client, error) {
	s.Addr = cmp.Or(s.Addr, defaultAddr) // an empty REMIT_ADDR counts as unset
	remit, err := client.New(s.Addr, options)
	if err != nil {
		return nil, fmt.Errorf("--addr or REMIT_ADDR: %w", s.explain(err))
	}
	return remit, nil
}

func (s *service) explain(err error) error { return explain(s.Addr, err) }
