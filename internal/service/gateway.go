package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	goredis "github.com/redis/go-redis/v9"
	"remit/internal/gateway"
	"remit/internal/keys"
	"remit/server"
)

// gatewayCommand is the flags of the command that meters calls to models' providers.
type gatewayCommand struct {
	Config string `required:"" type:"existingfile" help:"File in YAML with the address to listen on, the price table and the providers; docs/gateway.md describes it. Read again when it changes."`
	storeFlags
	metricsFlags
	logFlags
	traceFlags
}

// Validate is called by the flag parser.
func (c *gatewayCommand) Validate() error {
	if c.RedisURL == "" {
		return errors.New("set --redis-url: the gateway works on the Redis of the service, which keeps the URL of its own in data/redis.url")
	}
	return errors.Join(c.storeFlags.check(), c.traceFlags.check())
}

// meter is a running gateway, with a server in its process that listens nowhere.
type meter struct {
	*service
	flags    *gatewayCommand
	gateway  *gateway.Gateway
	accepts  net.Listener
	scrapers net.Listener // nil without --metrics-listen
}

// Run meters until SIGINT or SIGTERM.
func (c *gatewayCommand) Run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	output := c.logFlags.open(os.Stderr, os.Stdout)
	hideLibraries(output.log)
	goredis.SetLogger(redisLog{output.log})
	m := &meter{flags: c, service: &service{output: output, log: output.log, closers: []func(){output.flush}}}
	defer m.close()
	if err := m.open(ctx); err != nil {
		return err
	}
	return m.run(ctx)
}

// open reads the config, takes the addresses and builds the server. Nothing is served yet.
func (m *meter) open(ctx context.Context) error {
	traces, err := m.flags.traceFlags.open(ctx, m.log)
	if err != nil {
		return err
	}
	m.closers = append(m.closers, func() { traces.flush(m.log) })
	m.gateway, err = gateway.Open(m.flags.Config, gateway.Options{
		Log: m.log, AccessLog: m.output.requests, Tracer: traces.tracer, RestartTraces: m.flags.traceFlags.restarts(),
		Connections: m.flags.connections(m.log),
	})
	if err != nil {
		return err
	}
	if err := m.listen(); err != nil {
		return err
	}
	if m.store, err = m.flags.openStore(string(m.flags.RedisURL), traces.tracer, m.log); err != nil {
		return err
	}
	m.closers = append(m.closers, func() { _ = m.store.Close() })
	// Without an issuer of its own it waits for that of the service: its own address is none.
	if m.keys, err = keys.Open(m.flags.Flags, keys.Issuer{Given: m.flags.Issuer}, m.store, m.log); err != nil {
		return err
	}
	m.server = server.New(server.Config{
		Store: m.store, Version: release(), Log: m.log, Limits: m.flags.limits(), MetricsApart: m.scrapers != nil, Tracer: traces.tracer,
		Collectors: m.gateway.Collectors(),
	})
	m.settings = &operatorSettings{store: m.store, server: m.server, output: m.output}
	return nil
}

func (m *meter) listen() (err error) {
	if m.accepts, err = net.Listen("tcp", m.gateway.Listen()); err != nil {
		return fmt.Errorf("cannot listen on %s: %w", m.gateway.Listen(), err)
	}
	m.closers = append(m.closers, func() { _ = m.accepts.Close() })
	if m.scrapers, err = listenApart(m.flags.MetricsListen, "metrics"); err != nil || m.scrapers == nil {
		return err
	}
	m.closers = append(m.closers, func() { _ = m.scrapers.Close() })
	return nil
}

// connections returns how many connections of clients the limit on open files allows, and logs it. Each may need one to a provider.
func (c *gatewayCommand) connections(log *slog.Logger) int {
	descriptors := openFiles()
	allowed := max(1, (socketsFor(descriptors, c.redisServers()).clients)/2)
	log.Info("connections limited by open files (RLIMIT_NOFILE)", "open_files", descriptors, "connections", allowed)
	return allowed
}

// run serves until ctx ends, then stops. It answers 503 until the keys are loaded, and a gateway that has no keys yet ends without waiting,
// because it has no calls.
func (m *meter) run(ctx context.Context) error {
	following, unfollow := context.WithCancel(ctx)
	defer unfollow()
	served := make(chan error, 1)
	m.gateway.Join(m.server)
	go func() { served <- m.gateway.Serve(following, m.accepts) }()
	if m.scrapers != nil {
		m.log.Info("metrics", "url", localURL("http", m.scrapers.Addr())+"/metrics")
	}
	serveApart(m.log, "the metrics listener", m.scrapers, m.server.ServeMetrics)
	err := m.load(ctx)
	if ctx.Err() != nil {
		return nil // a stop before the gateway was ready is no failure
	}
	if err != nil {
		return err
	}
	m.followRedis(following)
	m.announceGateway(ctx)
	select {
	case <-ctx.Done():
		m.log.Info("stopping: waiting for calls in progress")
	case err = <-served:
		err = fmt.Errorf("cannot serve: %w", err)
	}
	m.gateway.Stop()
	bounded, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	_ = m.server.Shutdown(bounded) // it serves metrics only
	return err
}

func (m *meter) announceGateway(ctx context.Context) {
	warnings, err := m.store.Ready(ctx)
	if err != nil {
		m.log.Warn("Redis is not writable; /readyz reports when it is", "cause", err)
	}
	for _, warning := range warnings {
		m.log.Warn(warning)
	}
	m.log.Info("metering", "url", localURL(m.gateway.Scheme(), m.accepts.Addr()))
}
