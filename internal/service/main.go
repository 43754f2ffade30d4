// Package service is the process: commands and flags, configuration, TLS, logs, traces; it opens, runs and stops the service.
//
//	remit [serve]       serves HTTP, and starts its own Redis unless --redis-url names one
//	remit gateway       meters calls to the providers of language models; see package gateway
//	remit healthcheck   checks that a running service is ready
//	remit keys          generates, lists, rotates and retires keys
//	remit organizations lists, suspends and deletes organizations, for the operator
//	remit org, agent, token, session, charge, transaction, events
//	                    call a running service; see package cli
package service

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
	"remit/internal/cli"
	"remit/internal/keys"
	"remit/internal/service/operator"
)

const exitUsage = 80 // the status with which kong exits

type commands struct {
	Serve         serve             `cmd:"" help:"Serve HTTP (the default command)."`
	Gateway       gatewayCommand    `cmd:"" help:"Meter calls to the providers of language models, as their address."`
	Healthcheck   healthcheck       `cmd:"" help:"Exit 0 if the service that listens at --listen is ready."`
	Keys          keys.Commands     `cmd:"" help:"Generate, list, rotate and retire keys."`
	Organizations operator.Commands `cmd:"" help:"For the operator: list, show, suspend and delete organizations, and issue new keys."`

	cli.Commands
	versionFlag
}

// Main runs the command line of the process and exits with its status. A release passes its version, other builds "".
func Main(linked string) {
	version = linked
	var remit commands
	parser := kong.Must(&remit, kong.Name("remit"), kong.DefaultEnvars("REMIT"), versionText(),
		kong.Description("Tokens, scopes and budgets for AI agents. A flag can also be set by the environment variable shown beside it as $REMIT_…."))
	cli.Complete(parser)
	parsed, err := parser.Parse(cli.Arrange(parser.Model, os.Args[1:]))
	if err != nil && asksForJSON(os.Args[1:]) {
		logFlags{LogFormat: logJSON}.report(err)
		os.Exit(exitUsage)
	}
	parser.FatalIfErrorf(err)
	os.Exit(remit.logsOf(parsed.Command()).report(parsed.Run()))
}

// logsOf returns how a command logs.
func (c *commands) logsOf(command string) logFlags {
	if command == "gateway" {
		return c.Gateway.logFlags
	}
	return c.Serve.logFlags
}

// Run serves until SIGINT or SIGTERM.
func (c *serve) Run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	s := newService(c)
	defer s.close()
	if err := s.open(ctx); err != nil {
		return err
	}
	return s.run(ctx)
}
