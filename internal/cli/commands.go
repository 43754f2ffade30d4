// Package cli is the commands that call a running service: organizations, API keys, agents, tokens, sessions, charges,
// transactions, usage, events and webhooks. They call it only through the Go SDK.
//
//	remit org create acme
//	remit agent create scout --scopes read,payments:write
//	remit session create AGENT --max-value-usd 0.50
//	remit session watch SESSION
//
// A command prints a table, or with --json one JSON document with the API's names. Only commands that create a credential
// print one.
package cli

// Commands are the commands of this package, to be embedded in those of main.
type Commands struct {
	Org     orgCommands     `cmd:"" help:"Create organizations, show them and rotate their keys."`
	Key     keyCommands     `cmd:"" help:"Create, list, rotate and revoke the organization's API keys."`
	Agent   agentCommands   `cmd:"" help:"Create, list, show, update, suspend and revoke agents, and rotate their secrets."`
	Token   tokenCommands   `cmd:"" help:"Exchange an agent's secret, key or workload token for tokens, and inspect and verify tokens."`
	Session sessionCommands `cmd:"" help:"Create, list, show, update, watch, suspend and end sessions, and decide requests for more."`
	Budget  budgetCommands  `cmd:"" help:"Set, show and delete the organization's budget."`

	Charge      charge                `cmd:"" help:"Charge actions to a session."`
	Transaction transactionCommands   `cmd:"" help:"Begin, list, show, commit and roll back transactions."`
	Usage       usageCommand          `cmd:"" help:"Print what the organization used, by day, agent, session and action type."`
	Events      events                `cmd:"" help:"Print or follow the organization's events, or an agent's audit trail."`
	Webhook     webhookCommands       `cmd:"" help:"Create, list, change, test and delete webhooks, and look at their deliveries."`
	Issuer      trustedIssuerCommands `cmd:"" name:"trusted-issuer" help:"Trust platforms whose tokens become tokens of agents."`
	Audit       auditCommands         `cmd:"" help:"Export the organization's events, and verify an export."`
	MCP         mcpCommand            `cmd:"" name:"mcp" help:"Serve the budget of a session to the model of an agent, over the Model Context Protocol."`
	SuspendAll  suspendAll            `cmd:"" help:"Suspend all agents of the organization at once."`
	ResumeAll   resumeAll             `cmd:"" help:"Resume all agents of the organization."`
	Completion  completion            `cmd:"" help:"Print the shell script that completes the arguments of remit."`
}
