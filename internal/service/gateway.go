package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
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

// gatewayProcess is a running gateway, with a server in its process that listens nowhere.
type gatewayProcess struct {
	*service
	flags    *gatewayCommand
	gateway  *gateway.Gateway
	accepts  net.Listener
	scrapers net.Listener // nil without --metrics-listen
}

// ballast is memory that nothing touches, so it takes none of the machine's. The garbage collector counts it: with it the heap of a gateway
// with few calls in progress grows by as much before it is collected, instead of by the little that is in use, many times a second.
const ballast = 16 << 20

// Run meters until SIGINT or SIGTERM.
func (c *gatewayCommand) Run() error {
	defer runtime.KeepAlive(make([]byte, ballast))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	output := c.logFlags.open(os.Stderr, os.Stdout)
	hideLibraries(output.log)
	goredis.SetLogger(redisLog{output.log})
	g := &gatewayProcess{flags: c, service: &service{output: output, log: output.log, closers: []func(){output.flush}}}
	defer g.close()
	if err := g.open(ctx); err != nil {
		return err
	}
	return g.run(ctx)
}

// open reads the config, takes the addresses and builds the server. Nothing is served yet.
func (g *gatewayProcess) open(ctx context.Context) error {
	traces, err := g.flags.traceFlags.open(ctx, g.log)
	if err != nil {
		return err
	}
	g.closers = append(g.closers, func() { traces.flush(g.log) })
	g.gateway, err = gateway.Open(g.flags.Config, gateway.Options{
		Log: g.log, AccessLog: g.output.requests, Tracer: traces.tracer, RestartTraces: g.flags.traceFlags.restarts(),
		Connections: g.flags.connections(g.log),
	})
	if err != nil {
		return err
	}
	if err := g.listen(); err != nil {
		return err
	}
	if g.store, err = g.flags.openStore(string(g.flags.RedisURL), traces.tracer, g.log); err != nil {
		return err
	}
	g.closers = append(g.closers, func() { _ = g.store.Close() })
	// Without an issuer of its own it waits for that of the service: its own address is none.
	if g.keys, err = keys.Open(g.flags.Flags, keys.Issuer{Given: g.flags.Issuer}, g.store, g.log); err != nil {
		return err
	}
	g.server = server.New(server.Config{
		Store: g.store, Version: release(), Log: g.log, Limits: g.flags.limits(), MetricsApart: g.scrapers != nil, Tracer: traces.tracer,
		Collectors: g.gateway.Collectors(),
	})
	g.settings = &operatorSettings{store: g.store, server: g.server, output: g.output}
	return nil
}

func (g *gatewayProcess) listen() (err error) {
	if g.accepts, err = net.Listen("tcp", g.gateway.Listen()); err != nil {
		return fmt.Errorf("cannot listen on %s: %w", g.gateway.Listen(), err)
	}
	g.closers = append(g.closers, func() { _ = g.accepts.Close() })
	if g.scrapers, err = listenApart(g.flags.MetricsListen, "metrics"); err != nil || g.scrapers == nil {
		return err
	}
	g.closers = append(g.closers, func() { _ = g.scrapers.Close() })
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
func (g *gatewayProcess) run(ctx context.Context) error {
	following, unfollow := context.WithCancel(ctx)
	defer unfollow()
	served := make(chan error, 1)
	g.gateway.Join(g.server)
	go func() { served <- g.gateway.Serve(following, g.accepts) }()
	if g.scrapers != nil {
		g.log.Info("metrics", "url", localURL("http", g.scrapers.Addr())+"/metrics")
	}
	serveApart(g.log, "the metrics listener", g.scrapers, g.server.ServeMetrics)
	err := g.load(ctx)
	if ctx.Err() != nil {
		return nil // a stop before the gateway was ready is no failure
	}
	if err != nil {
		return err
	}
	g.followRedis(following)
	g.announceGateway(ctx)
	select {
	case <-ctx.Done():
		g.log.Info("stopping: waiting for calls in progress")
	case err = <-served:
		err = fmt.Errorf("cannot serve: %w", err)
	}
	g.gateway.Stop()
	bounded, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	_ = g.server.Shutdown(bounded) // it serves metrics only
	return err
}

func (g *gatewayProcess) announceGateway(ctx context.Context) {
	warnings, err := g.store.Ready(ctx)
	if err != nil {
		g.log.Warn("Redis is not writable; /readyz reports when it is", "cause", err)
	}
	for _, warning := range warnings {
		g.log.Warn(warning)
	}
	g.log.Info("metering", "url", localURL(g.gateway.Scheme(), g.accepts.Addr()))
}
