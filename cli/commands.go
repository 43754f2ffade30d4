// Package cli is what people and scripts do with a running service from a terminal: organizations, agents, tokens,
// sessions, charges, transactions and events. It calls the service through the Go SDK only.
//
//	remit org create acme
//	remit agent create scout --scopes read,payments:write
//	remit session create AGENT --max-value-usd 0.50
//	remit session watch SESSION
//
// A command prints a table for people, or with --json one JSON document with the names of the API. It prints a credential
// only where one is made.
package cli

// Commands are those of this package, for main's own to embed.
type Commands struct {
	Org     orgCommands     `cmd:"" help:"Create organizations, show them and rotate their keys."`
	Agent   agentCommands   `cmd:"" help:"Create, list, show and revoke agents, and rotate their secrets."`
	Token   tokenCommands   `cmd:"" help:"Exchange an agent's secret for tokens, and inspect tokens."`
	Session sessionCommands `cmd:"" help:"Create, list, show, update, watch and end sessions."`

	Charge      charge              `cmd:"" help:"Charge actions to a session."`
	Transaction transactionCommands `cmd:"" help:"Begin, list, show, commit and roll back transactions."`
	Events      events              `cmd:"" help:"Print an agent's audit trail, and follow it."`
	Completion  completion          `cmd:"" help:"Print what a shell must read to complete the arguments of remit."`
}
