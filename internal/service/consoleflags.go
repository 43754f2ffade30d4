package service

import (
	"errors"
	"log/slog"
	"net"

	"remit/console"
	"remit/server"
	"remit/server/pages"
)

// consoleFlags say whether and where the web pages are served.
type consoleFlags struct {
	Console       string `enum:",on,off" default:"" help:"Web pages at /console: on or off. Defaults to on with --console-listen or when --listen is a loopback address, and to off otherwise."`
	ConsoleListen string `help:"Address that serves only the console, over HTTPS if --listen does. Without it --listen serves the console."`
}

func (f consoleFlags) check() error {
	if f.Console == "off" && f.ConsoleListen != "" {
		return errors.New("--console-listen needs --console=on")
	}
	return nil
}

// isOn reports whether a service that listens at this address has the console.
func (f consoleFlags) isOn(listens net.Addr) bool {
	return f.Console == "on" || f.Console == "" && (f.ConsoleListen != "" || isLoopback(listens))
}

// add gives the server of this configuration the console if it has one. It returns nil otherwise.
func (f consoleFlags) add(to *server.Server, log *slog.Logger, listens net.Addr, config server.Config) *console.Console {
	if !f.isOn(listens) {
		to.Pages().Set(pages.Site{Prefix: console.Prefix})
		return nil
	}
	shown := console.New(to.Pages(), log, console.Settings{
		Creation: console.OrganizationCreation(config.Organizations.Creation), Defaults: console.SessionDefaults(config.Defaults),
	})
	to.Pages().Set(pages.Site{Prefix: console.Prefix, Answer: shown.Answer, Headers: console.WriteHeaders, Apart: f.ConsoleListen != ""})
	return shown
}

// consoleURL returns where this machine reaches the console, "" for none.
func (s *service) consoleURL() string {
	switch {
	case !s.flags.isOn(s.listener.Addr()):
		return ""
	case s.console != nil:
		return localURL(s.flags.scheme(), s.console.Addr()) + console.Prefix
	}
	return s.url() + console.Prefix
}
