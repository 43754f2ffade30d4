// Command remit gives every AI agent a remit: who it is, what it may do, and how much it may do.
//
//	remit [serve]       answers HTTP, on a Redis of its own unless it is given one
//	remit healthcheck   asks a running service whether it is ready
//	remit keys          makes, lists, rotates and retires keys
//	remit organizations lists, suspends and deletes organizations, for the operator
//	remit org, agent, token, session, charge, transaction, events
//	                    call a running service; see package cli
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"remit/cli"
	"remit/money"
	"remit/redisstore"
	"remit/server"
)

const (
	// shutdownGrace is how long accepted requests may take to be answered once the service is told to stop, and what was seen
	// of them to be told. It ends before the 10 seconds after which Docker kills; only clients that are slow to send or to read
	// take so long.
	shutdownGrace = 8 * time.Second
	flushTime     = time.Second // of it, for spans and lines of the log that nobody has taken yet
)

const exitUsage = 80 // as kong exits

type commands struct {
	Serve       serve       `cmd:"" help:"Answer HTTP (the default)."`
	Healthcheck healthcheck `cmd:"" help:"Exit 0 if the service that listens at --listen is ready."`
	Keys        keyCommands `cmd:"" help:"Make, list, rotate and retire keys."`

	Organizations organizationCommands `cmd:"" help:"For the operator: list, show, suspend and delete organizations, and give them new keys."`

	cli.Commands
	versionFlag
}

type serve struct {
	Listen     string                `default:"127.0.0.1:8080" help:"Address to listen on."`
	RedisURL   redisURL              `help:"redis://, rediss://, unix://, redis+sentinel:// or redis+cluster:// URL. Without it a redis-server from the PATH is started, or else an in-memory store."`
	Durability redisstore.Durability `default:"local" enum:"local,replicated" help:"When a write is acknowledged: once the primary has it (local), or once a replica has confirmed it too (replicated)."`
	DataDir    string                `default:"data" help:"Where a redis-server of our own keeps its data."`
	Issuer     string                `help:"The iss claim of access tokens, a URL for discovery; the same on every instance. Without it the first instance on a Redis sets it."`
	keyFlags
	tlsFlags
	doorFlags
	metricsFlags
	logFlags
	traceFlags
	RefreshGrace        time.Duration  `default:"60s" help:"How long a spent refresh token gets its successor again (0 to 30m)."`
	FamilyLifetime      time.Duration  `default:"2160h" help:"How long a family of refresh tokens lives, however often it is refreshed (1h to 87600h)."`
	Retention           time.Duration  `default:"168h" help:"How long sessions and transactions stay readable after they end."`
	EventsKept          int            `default:"1000" help:"How many events of its audit trail an agent keeps, about (1 to 1000000)."`
	DefaultMaxActions   int64          `default:"1000" help:"max_actions of a session created without it."`
	DefaultMaxValueUSD  money.MicroUSD `name:"default-max-value-usd" default:"100" help:"max_value_usd of a session created without it."`
	DefaultExpiresAfter time.Duration  `name:"default-expires-in" default:"1h" help:"Lifetime of a session created without expires_in_seconds."`
}

func main() {
	var remit commands
	parser := kong.Must(&remit, kong.Name("remit"), kong.DefaultEnvars("REMIT"), versionText(),
		kong.Description("Tokens, scopes and budgets for AI agents. Flags have environment twins REMIT_… where $REMIT_… stands beside them."))
	cli.Complete(parser)
	parsed, err := parser.Parse(cli.Arrange(parser.Model, os.Args[1:]))
	if err != nil && asksForJSON(os.Args[1:]) {
		logFlags{LogFormat: logJSON}.report(err)
		os.Exit(exitUsage)
	}
	parser.FatalIfErrorf(err)
	os.Exit(remit.Serve.report(parsed.Run()))
}

// Validate is called by the flag parser.
func (c *serve) Validate() error {
	switch {
	case c.RefreshGrace < 0 || c.RefreshGrace > 30*time.Minute:
		return errors.New("--refresh-grace must be from 0 to 30m")
	case c.FamilyLifetime < time.Hour || c.FamilyLifetime > 10*365*24*time.Hour:
		return errors.New("--family-lifetime must be from 1h to 87600h")
	case c.Issuer != "" && !isIssuer(c.Issuer):
		return errors.New("--issuer must be an http or https URL of a host, without a path")
	case c.Retention < time.Second:
		return errors.New("--retention must be at least 1s")
	case c.EventsKept < 1 || c.EventsKept > 1_000_000:
		return errors.New("--events-kept must be from 1 to 1000000")
	case c.DefaultMaxActions < 1 || c.DefaultMaxActions > 1_000_000_000:
		return errors.New("--default-max-actions must be from 1 to 1000000000")
	case c.DefaultExpiresAfter < time.Second || c.DefaultExpiresAfter > 30*24*time.Hour || c.DefaultExpiresAfter%time.Second != 0:
		return errors.New("--default-expires-in must be from 1s to 720h, in whole seconds")
	case c.Durability == redisstore.Replicated && c.RedisURL == "":
		return errors.New("--durability=replicated needs --redis-url: a redis-server of our own has no replica")
	}
	return errors.Join(c.tlsFlags.check(), c.doorFlags.check(), c.traceFlags.check())
}

// Run serves until SIGINT or SIGTERM.
func (c *serve) Run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	printed := c.logFlags.open(os.Stderr, os.Stdout)
	defer printed.flush()
	return c.serve(ctx, printed)
}

var errRedisEnded = errors.New("the redis-server of our own has ended")

// endedWith returns a context that also ends, and says why, when our own Redis does.
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

func (c *serve) serve(ctx context.Context, printed printed) error {
	log := printed.log
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", c.Listen, err)
	}
	defer listener.Close()
	config, err := c.serverConfig(log, listener.Addr())
	if err != nil {
		return err
	}
	traces, err := c.traceFlags.open(ctx, log)
	if err != nil {
		return err
	}
	defer traces.flush(log)
	config.Tracer, config.RestartTraces = traces.tracer, c.traceFlags.restarts()
	config.AccessLog = printed.requests
	watched, err := c.metricsFlags.listen()
	if err != nil {
		return err
	}
	if watched != nil {
		defer watched.Close()
	}
	redis, err := c.chooseRedis(ctx, log)
	if err != nil {
		return err
	}
	defer redis.stop()
	store, err := c.openStore(redis.url, traces.tracer)
	if err != nil {
		return err
	}
	defer store.Close()
	config.Store = store
	service := server.New(config)
	served := make(chan error, 1)
	go func() { served <- service.Serve(listener) }()
	serveMetrics(log, service, watched)
	url := ownURL(c.scheme(), listener.Addr())
	settings := &operatorSettings{store: store, service: service, log: log, printed: printed,
		bootstrap: config.Organizations.Creation == server.OrganizationsToken && config.Organizations.BootstrapToken == ""}
	keys := &keySource{keyFlags: c.keyFlags, store: store, log: log, settings: settings,
		issuer: c.Issuer, ownURL: url, ownRedis: c.RedisURL == ""}
	if err := keys.load(endedWith(ctx, redis.ended), service); err != nil {
		if ctx.Err() != nil {
			return nil // told to stop before it had begun
		}
		return err
	}
	if keys.fromRedis() {
		warnOfSharedKeys(log, c.KeyEncryptionKey != "")
		go keys.follow(ctx, service)
	}
	go settings.follow(ctx)
	announce(ctx, printed, store, url, config.Organizations.Creation)
	select {
	case <-ctx.Done():
		log.Info("stopping: answering what was accepted")
	case err := <-served:
		return fmt.Errorf("cannot serve: %w", err)
	case <-redis.ended:
		return errRedisEnded
	}
	bounded, cancel := context.WithTimeout(context.Background(), shutdownGrace-flushTime)
	defer cancel()
	err = service.Shutdown(bounded)
	if errors.Is(err, context.DeadlineExceeded) {
		log.Warn("stopped before every client was done", "cause", err)
		return nil
	}
	return err
}
