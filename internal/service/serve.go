package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"remit/console"
	"remit/internal/jwksfetch"
	"remit/internal/keys"
	"remit/internal/webhook"
	"remit/redisstore"
	"remit/server"
	"remit/server/identity"
)

const (
	// shutdownGrace bounds a stop. It ends before the 10 seconds after which Docker kills a container. Only clients that send
	// or read slowly take so long.
	shutdownGrace = 8 * time.Second
	// flushTime is the part of shutdownGrace kept for the last spans and log lines.
	flushTime = time.Second
)

var errRedisEnded = errors.New("the redis-server that this service started has ended")

// service is one running instance and what it has open.
type service struct {
	flags    *serve
	output   output
	log      *slog.Logger
	listener net.Listener
	metrics  net.Listener     // nil without --metrics-listen
	console  net.Listener     // nil without --console-listen
	pages    *console.Console // nil without a console
	redis    chosenRedis
	store    *redisstore.Store
	server   *server.Server
	webhooks *webhook.Deliverer
	keys     *keys.Source
	settings *operatorSettings
	creation identity.OrganizationCreation
	closers  []func() // in the order of opening
}

func newService(flags *serve) *service {
	output := flags.logFlags.open(os.Stderr, os.Stdout)
	hideLibraries(output.log)
	return &service{flags: flags, output: output, log: output.log, closers: []func(){output.flush}}
}

// close releases what is open, the last first.
func (s *service) close() {
	for _, release := range slices.Backward(s.closers) {
		release()
	}
}

// open takes the addresses, starts Redis if need be, and builds the server. Nothing is served yet.
func (s *service) open(ctx context.Context) error {
	if err := s.listen(); err != nil {
		return err
	}
	allowed := s.flags.sockets(s.log)
	config, err := s.flags.serverConfig(s.log, s.listener.Addr(), allowed.clients)
	if err != nil {
		return err
	}
	config.AccessLog = s.output.requests
	traces, err := s.flags.traceFlags.open(ctx, s.log)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, func() { traces.flush(s.log) })
	config.Tracer, config.RestartTraces = traces.tracer, s.flags.traceFlags.restarts()
	if s.redis, err = s.flags.chooseRedis(ctx, s.log); err != nil {
		return err
	}
	s.closers = append(s.closers, s.redis.stop)
	if s.store, err = s.flags.openStore(s.redis.url, traces.tracer, s.log); err != nil {
		return err
	}
	s.closers = append(s.closers, func() { _ = s.store.Close() })
	s.keys, err = keys.Open(s.flags.Flags, keys.Issuer{
		Given: s.flags.Issuer, Listens: s.url(), OwnRedis: s.flags.RedisURL == "",
	}, s.store, s.log)
	if err != nil {
		return err
	}
	config.Store, config.Webhooks.Encryption = s.store, s.keys.Encryption()
	s.webhooks = webhook.New(webhook.Config{
		Store: s.store, Log: s.log, Encryption: s.keys.Encryption(), AllowPrivate: s.flags.WebhookAllowPrivate,
		Sockets: allowed.webhooks,
	})
	config.KeySets = jwksfetch.New(jwksfetch.Config{AllowPrivate: s.flags.WebhookAllowPrivate, Log: s.log})
	s.closers = append(s.closers, config.KeySets.Close)
	config.Collectors = append(config.Collectors, s.webhooks, config.KeySets)
	s.server = server.New(config)
	s.pages = s.flags.consoleFlags.add(s.server, s.log, s.listener.Addr(), config)
	s.creation = config.Organizations.Creation
	s.settings = &operatorSettings{store: s.store, server: s.server, output: s.output,
		bootstrap: config.Organizations.Creation == identity.OrganizationsToken && config.Organizations.BootstrapToken == ""}
	return nil
}

func (s *service) listen() (err error) {
	if s.listener, err = net.Listen("tcp", s.flags.Listen); err != nil {
		return fmt.Errorf("cannot listen on %s: %w", s.flags.Listen, err)
	}
	s.closers = append(s.closers, func() { _ = s.listener.Close() })
	if s.metrics, err = listenApart(s.flags.MetricsListen, "metrics"); err != nil {
		return err
	}
	if s.console, err = listenApart(s.flags.ConsoleListen, "the console"); err != nil {
		return err
	}
	for _, own := range []net.Listener{s.metrics, s.console} {
		if own != nil {
			s.closers = append(s.closers, func() { _ = own.Close() })
		}
	}
	return nil
}

// url returns the URL at which this machine reaches the service.
func (s *service) url() string { return localURL(s.flags.scheme(), s.listener.Addr()) }

// run serves until ctx ends, then stops. It answers 503 until the keys are loaded, and a service that has no keys yet ends
// without draining.
func (s *service) run(ctx context.Context) error {
	served := make(chan error, 1)
	go func() { served <- s.server.Serve(s.listener) }()
	if s.metrics != nil {
		s.log.Info("metrics", "url", localURL("http", s.metrics.Addr())+"/metrics")
	}
	serveApart(s.log, "the metrics listener", s.metrics, s.server.ServeMetrics)
	serveApart(s.log, "the console's listener", s.console, s.server.ServePages)
	err := s.load(endedWith(ctx, s.redis.ended))
	if ctx.Err() != nil {
		return nil // a stop before the service was ready is no failure
	}
	if err != nil {
		return err
	}
	s.followRedis(ctx)
	defer s.deliver(ctx)()
	s.announce(ctx)
	select {
	case <-ctx.Done():
		return s.stop()
	case err := <-served:
		return fmt.Errorf("cannot serve: %w", err)
	case <-s.redis.ended:
		return errRedisEnded
	}
}

// deliver delivers events to webhooks until ctx ends or the function that it returns is called, which waits until that is done.
func (s *service) deliver(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var under sync.WaitGroup
	under.Go(func() { s.webhooks.Run(ctx) })
	return func() {
		cancel()
		under.Wait()
	}
}

// endedWith returns a context that also ends, with errRedisEnded as its cause, when our own Redis does.
func endedWith(ctx context.Context, redis <-chan struct{}) context.Context {
	ctx, end := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-ctx.Done():
		case <-redis:
			end(errRedisEnded)
		}
	}()
	return ctx
}

// stop answers accepted requests, for a bounded time.
func (s *service) stop() error {
	s.log.Info("stopping: answering accepted requests")
	bounded, cancel := context.WithTimeout(context.Background(), shutdownGrace-flushTime)
	defer cancel()
	err := s.server.Shutdown(bounded)
	if s.pages != nil {
		s.pages.Wait(bounded)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		s.log.Warn("stopped before all clients were done", "cause", err)
		return nil
	}
	return err
}
